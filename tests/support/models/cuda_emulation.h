// What the CUDA kernels of lmwire use, for a CPU. The threads of a block are fibers of one thread: each runs until it has
// to wait for others, and then the next one does. Each lane of the tensor cores' product holds what the PTX manual says.
#ifdef __APPLE__
#define _XOPEN_SOURCE 700  // for fibers
#define _DARWIN_C_SOURCE
#endif
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ucontext.h>
#include <vector>

using std::min;

// IEEE's binary16, which some compilers lack on some processors.
struct __half {
    uint16_t bits;

    __half() = default;
    explicit __half(float number) {
        uint32_t all = std::bit_cast<uint32_t>(number), size = all & 0x7fffffff;
        if (size >= 0x47800000)
            size = size > 0x7f800000 ? 0x7e00 : 0x7c00;
        else if (size < 0x38800000)  // subnormal: the addition rounds
            size = std::bit_cast<uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000;
        else
            size = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
        bits = uint16_t(all >> 16 & 0x8000) | uint16_t(size);
    }

    operator float() const {
        uint32_t size = uint32_t(bits & 0x7fff) << 13, exponent = size & 0x0f800000;
        if (exponent == 0x0f800000)
            size += 0x70000000;
        else if (exponent)
            size += 0x38000000;
        else
            size = std::bit_cast<uint32_t>(std::bit_cast<float>(size + 0x38800000) - std::bit_cast<float>(0x38800000));
        return std::bit_cast<float>(size | uint32_t(bits & 0x8000) << 16);
    }
};

// The upper half of a float's bits.
struct __nv_bfloat16 {
    uint16_t bits;

    __nv_bfloat16() = default;
    explicit __nv_bfloat16(float number) {
        uint32_t all = std::bit_cast<uint32_t>(number);
        bits = uint16_t((all + 0x7fff + (all >> 16 & 1)) >> 16);
    }

    operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
};

struct uint4 { uint32_t x, y, z, w; };
struct Shape { const int* sizes; int operator[](int i) const { return sizes[i]; } };
struct Strides { const int64_t* steps; int64_t operator[](int i) const { return steps[i]; } };
struct Place { int x, y, z; };

namespace emulation {
constexpr int LANES = 32, STACK = 1 << 16;

struct Fiber {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(STACK);
    Place thread;
    bool is_done = false;
};
struct Barrier {
    int size = 0, waiting = 0, round = 0;
};

static ucontext_t scheduler;
static std::vector<Fiber> fibers;
static Fiber* current;
static Place block;
static Barrier all;
static std::vector<Barrier> warps;
static std::vector<float> shuffled;
static std::vector<uint32_t> fragments;
static std::function<void()> kernel;

inline void wait(Barrier& barrier) {
    int round = barrier.round;
    if (++barrier.waiting == barrier.size) {
        barrier.waiting = 0;
        barrier.round++;
    }
    while (round == barrier.round) swapcontext(&current->context, &scheduler);
}

inline void run_fiber() {
    kernel();
    current->is_done = true;
}

inline void launch(int gx, int gy, int threads_y, std::function<void()> body) {
    kernel = body;
    fibers = std::vector<Fiber>(LANES * threads_y);
    shuffled.resize(fibers.size());
    fragments.resize(6 * fibers.size());
    for (block.y = 0; block.y < gy; block.y++)
        for (block.x = 0; block.x < gx; block.x++) {
            all = {int(fibers.size())};
            warps.assign(threads_y, {LANES});
            for (size_t i = 0; i < fibers.size(); i++) {
                Fiber& fiber = fibers[i];
                getcontext(&fiber.context);
                fiber.context.uc_stack.ss_sp = fiber.stack.data();
                fiber.context.uc_stack.ss_size = STACK;
                fiber.context.uc_link = &scheduler;
                fiber.thread = {int(i) % LANES, int(i) / LANES, 0};
                fiber.is_done = false;
                makecontext(&fiber.context, run_fiber, 0);
            }
            for (bool is_running = true; is_running;) {
                is_running = false;
                for (Fiber& fiber : fibers)
                    if (!fiber.is_done) {
                        is_running = true;
                        current = &fiber;
                        swapcontext(&scheduler, &fiber.context);
                    }
            }
        }
}

inline int own() { return current->thread.y * LANES + current->thread.x; }

template <class T> float number(uint32_t pair, int index) {
    return std::bit_cast<T>(uint16_t(pair >> (16 * index)));
}

// m16n8k16: C += A B, of which each lane has 8 numbers of A, 4 of B and 4 of C.
template <class T> void multiply(float* c, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
    Barrier& warp = warps[current->thread.y];
    uint32_t taken[] = {a0, a1, a2, a3, b0, b1};
    memcpy(&fragments[6 * own()], taken, sizeof taken);
    wait(warp);
    int first = current->thread.y * LANES, lane = current->thread.x;
    for (int i = 0; i < 4; i++) {
        int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 16; k++) {
            int holder = k % 8 / 2;
            uint32_t a = fragments[6 * (first + row % 8 * 4 + holder) + (row >= 8) + 2 * (k >= 8)];
            uint32_t b = fragments[6 * (first + column * 4 + holder) + 4 + (k >= 8)];
            c[i] += number<T>(a, k % 2) * number<T>(b, k % 2);
        }
    }
    wait(warp);
}
}  // namespace emulation

#define threadIdx (emulation::current->thread)
#define blockIdx emulation::block
#define __shared__ static
#define asm(...) emulation::multiply<T>(sum, a, b, c, d, p, q)  // the names of the kernel's function

inline float rsqrtf(float number) { return 1 / std::sqrt(number); }
inline void __syncthreads() { emulation::wait(emulation::all); }
inline const uint4& __ldg(const uint4* at) { return *at; }
inline float __shfl_xor_sync(unsigned, float value, int mask) {
    using namespace emulation;
    Barrier& warp = warps[current->thread.y];
    shuffled[own()] = value;
    wait(warp);
    float found = shuffled[own() ^ mask];
    wait(warp);
    return found;
}
