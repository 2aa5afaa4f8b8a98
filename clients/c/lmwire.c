/* The lmwire host library for C; lmwire.h documents it. PROTOCOL.md has the rules that comments name, such as [H-7]. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* pipe2, and environ */
#endif
#include "lmwire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/syscall.h>
#elif defined(__APPLE__)
#include <crt_externs.h>
#include <mach-o/dyld.h>
#include <sys/event.h>
#define environ (*_NSGetEnviron())
#else
extern char **environ;
#endif

/* ---------------------------------------------------------------------------------------------------------- Tables */

/* Begin of the tables that tools/flat_tables.py writes: `make schema`. */
/* clang-format off */
#define LINE_IN_BYTES 33554432
#define QUEUED_BYTES 268435456
#define BANNER_BYTES 65536
#define CLIENT_LINE_BYTES 1048576
static const char *const FINISH_REASONS[] = {"cancelled", "capacity", "length", "stop", "timeout", "tool_calls"};

/* The form of each `done`, by command. */
static const struct { const char *command, *form; } DONE_FORMS[] = {
    {"hello", "HelloDone"}, {"load", "ModelDone"}, {"unload", "UnloadDone"}, {"generate", "ResultDone"},
    {"chat", "ResultDone"}, {"tokenize", "TokenizeDone"}, {"embed", "EmbedDone"}, {"transcribe", "TranscribeDone"},
    {"speak", "SpeakDone"}, {"cache", "CacheDone"}, {"info", "ModelDone"}, {"cancel", "CancelDone"},
    {"ping", "PingDone"}, {"stats", "StatsDone"}, {"quit", "QuitDone"},
};

/* Members of events: form, path, types as letters, and whether it is always present. */
static const struct { const char *form, *path, *types; bool required; } MEMBERS[] = {
    {"progress", "stage", "s", 1}, {"progress", "current", "i", 1}, {"progress", "total", "i", 0},
    {"progress", "unit", "s", 1}, {"token", "token", "s", 1}, {"token", "token_ids", "l", 1},
    {"token", "token_ids[]", "i", 1}, {"token", "choice", "i", 0}, {"token", "channel", "s", 0},
    {"token", "call", "b", 0}, {"token", "logprobs", "l", 0}, {"token", "logprobs[]", "o", 1},
    {"token", "logprobs[].token_id", "i", 1}, {"token", "logprobs[].token", "s", 1},
    {"token", "logprobs[].logprob", "n", 0}, {"token", "logprobs[].bytes", "l", 0},
    {"token", "logprobs[].bytes[]", "i", 1}, {"token", "logprobs[].top", "l", 0},
    {"token", "logprobs[].top[]", "o", 1}, {"token", "logprobs[].top[].token_id", "i", 1},
    {"token", "logprobs[].top[].token", "s", 1}, {"token", "logprobs[].top[].logprob", "n", 0},
    {"token", "logprobs[].top[].bytes", "l", 0}, {"token", "logprobs[].top[].bytes[]", "i", 1},
    {"token", "logprobs[].text", "s", 0}, {"token", "prompt_logprobs", "l", 0},
    {"token", "prompt_logprobs[]", "o", 1}, {"token", "prompt_logprobs[].token_id", "i", 1},
    {"token", "prompt_logprobs[].token", "s", 1}, {"token", "prompt_logprobs[].logprob", "n", 0},
    {"token", "prompt_logprobs[].bytes", "l", 0}, {"token", "prompt_logprobs[].bytes[]", "i", 1},
    {"token", "prompt_logprobs[].top", "l", 0}, {"token", "prompt_logprobs[].top[]", "o", 1},
    {"token", "prompt_logprobs[].top[].token_id", "i", 1}, {"token", "prompt_logprobs[].top[].token", "s", 1},
    {"token", "prompt_logprobs[].top[].logprob", "n", 0}, {"token", "prompt_logprobs[].top[].bytes", "l", 0},
    {"token", "prompt_logprobs[].top[].bytes[]", "i", 1}, {"token", "prompt_logprobs[].text", "s", 0},
    {"tool_call", "choice", "i", 0}, {"tool_call", "index", "i", 1}, {"tool_call", "call_id", "s", 0},
    {"tool_call", "name", "s", 0}, {"tool_call", "arguments", "s", 0}, {"tool_call", "complete", "b", 0},
    {"embedding", "index", "i", 1}, {"embedding", "offset", "i", 0}, {"embedding", "dims", "i", 1},
    {"embedding", "embedding", "sl", 1}, {"embedding", "embedding[]", "n", 1}, {"segment", "index", "i", 1},
    {"segment", "start_s", "n", 1}, {"segment", "end_s", "n", 1}, {"segment", "text", "s", 1},
    {"segment", "words", "l", 0}, {"segment", "words[]", "o", 1}, {"segment", "words[].text", "s", 1},
    {"segment", "words[].start_s", "n", 1}, {"segment", "words[].end_s", "n", 1}, {"audio", "index", "i", 1},
    {"audio", "sample_rate", "i", 1}, {"audio", "audio", "s", 1}, {"HelloDone", "protocol", "i", 1},
    {"HelloDone", "worker", "s", 1}, {"HelloDone", "pid", "i", 1}, {"HelloDone", "engines", "l", 1},
    {"HelloDone", "engines[]", "s", 1}, {"HelloDone", "features", "l", 1}, {"HelloDone", "features[]", "s", 1},
    {"HelloDone", "limits", "o", 1}, {"HelloDone", "limits.line_in_bytes", "i", 1},
    {"HelloDone", "limits.line_out_bytes", "i", 1}, {"HelloDone", "limits.requests", "i", 1},
    {"HelloDone", "limits.queued_bytes", "i", 1}, {"HelloDone", "ranks", "o", 0}, {"HelloDone", "ranks.size", "i", 1},
    {"HelloDone", "ranks.backend", "s", 1}, {"ModelDone", "path", "s", 1}, {"ModelDone", "model_type", "s", 1},
    {"ModelDone", "vocab_size", "i", 1}, {"ModelDone", "layers", "i", 1}, {"ModelDone", "hidden_size", "i", 1},
    {"ModelDone", "context_len", "i", 1}, {"ModelDone", "weights_bytes", "i", 1},
    {"ModelDone", "capabilities", "l", 1}, {"ModelDone", "capabilities[]", "s", 1},
    {"ModelDone", "quantization", "o", 0}, {"ModelDone", "quantization.bits", "i", 1},
    {"ModelDone", "quantization.group_size", "i", 1}, {"ModelDone", "adapter_path", "s", 0},
    {"ModelDone", "chat_template_name", "s", 0}, {"ModelDone", "tool_format", "s", 0},
    {"ModelDone", "tool_format_note", "s", 0}, {"ModelDone", "batch_size", "i", 0},
    {"ModelDone", "sampling_defaults", "o", 0}, {"ModelDone", "sampling_defaults.temperature", "n", 0},
    {"ModelDone", "sampling_defaults.top_p", "n", 0}, {"ModelDone", "sampling_defaults.top_k", "i", 0},
    {"ModelDone", "sampling_defaults.min_p", "n", 0}, {"ModelDone", "sampling_defaults.repetition_penalty", "n", 0},
    {"ModelDone", "reasoning_efforts", "l", 0}, {"ModelDone", "reasoning_efforts[]", "s", 1},
    {"ModelDone", "ranks", "o", 0}, {"ModelDone", "ranks.size", "i", 1}, {"ModelDone", "ranks.backend", "s", 1},
    {"ModelDone", "ranks.split", "s", 1}, {"ModelDone", "ranks.weights_bytes", "l", 1},
    {"ModelDone", "ranks.weights_bytes[]", "i", 1}, {"UnloadDone", "freed_bytes", "i", 1},
    {"ResultDone", "finish_reason", "s", 1}, {"ResultDone", "stop", "s", 0}, {"ResultDone", "seed", "i", 1},
    {"ResultDone", "usage", "o", 1}, {"ResultDone", "usage.prompt_tokens", "i", 1},
    {"ResultDone", "usage.cached_tokens", "i", 1}, {"ResultDone", "usage.completion_tokens", "i", 1},
    {"ResultDone", "usage.reasoning_tokens", "i", 0}, {"ResultDone", "usage.draft_accepted", "i", 0},
    {"ResultDone", "timings", "o", 1}, {"ResultDone", "timings.queued_ms", "n", 1},
    {"ResultDone", "timings.prefill_ms", "n", 0}, {"ResultDone", "timings.first_token_ms", "n", 0},
    {"ResultDone", "timings.total_ms", "n", 1}, {"ResultDone", "timings.prompt_tps", "n", 0},
    {"ResultDone", "timings.decode_tps", "n", 0}, {"ResultDone", "choices", "l", 0},
    {"ResultDone", "choices[]", "o", 1}, {"ResultDone", "choices[].finish_reason", "s", 1},
    {"ResultDone", "choices[].completion_tokens", "i", 1}, {"ResultDone", "choices[].stop", "s", 0},
    {"ResultDone", "cache_miss", "o", 0}, {"ResultDone", "cache_miss.known_tokens", "i", 1},
    {"ResultDone", "cache_miss.token", "s", 0}, {"TokenizeDone", "count", "i", 1}, {"EmbedDone", "count", "i", 1},
    {"EmbedDone", "dimensions", "i", 1}, {"EmbedDone", "usage", "o", 1}, {"EmbedDone", "usage.prompt_tokens", "i", 1},
    {"EmbedDone", "usage.cached_tokens", "i", 1}, {"EmbedDone", "usage.completion_tokens", "i", 1},
    {"EmbedDone", "usage.reasoning_tokens", "i", 0}, {"EmbedDone", "usage.draft_accepted", "i", 0},
    {"TranscribeDone", "finish_reason", "s", 1}, {"TranscribeDone", "duration_s", "n", 1},
    {"TranscribeDone", "timings", "o", 1}, {"TranscribeDone", "timings.queued_ms", "n", 1},
    {"TranscribeDone", "timings.prefill_ms", "n", 0}, {"TranscribeDone", "timings.first_token_ms", "n", 0},
    {"TranscribeDone", "timings.total_ms", "n", 1}, {"TranscribeDone", "timings.prompt_tps", "n", 0},
    {"TranscribeDone", "timings.decode_tps", "n", 0}, {"TranscribeDone", "language", "s", 0},
    {"SpeakDone", "finish_reason", "s", 1}, {"SpeakDone", "duration_s", "n", 1}, {"SpeakDone", "seed", "i", 1},
    {"SpeakDone", "timings", "o", 1}, {"SpeakDone", "timings.queued_ms", "n", 1},
    {"SpeakDone", "timings.prefill_ms", "n", 0}, {"SpeakDone", "timings.first_token_ms", "n", 0},
    {"SpeakDone", "timings.total_ms", "n", 1}, {"SpeakDone", "timings.prompt_tps", "n", 0},
    {"SpeakDone", "timings.decode_tps", "n", 0}, {"CacheDone", "freed_bytes", "i", 1},
    {"CancelDone", "matched", "i", 1}, {"PingDone", "state", "s", 1}, {"PingDone", "step_age_ms", "n", 0},
    {"PingDone", "active", "i", 1}, {"PingDone", "queued", "i", 1}, {"StatsDone", "uptime_ms", "n", 1},
    {"StatsDone", "requests", "o", 1}, {"StatsDone", "requests.accepted", "i", 1},
    {"StatsDone", "requests.active", "i", 1}, {"StatsDone", "requests.queued", "i", 1},
    {"StatsDone", "requests.done", "i", 1}, {"StatsDone", "requests.errors", "i", 1},
    {"StatsDone", "requests.cancelled", "i", 1}, {"StatsDone", "tokens", "o", 1},
    {"StatsDone", "tokens.prompt", "i", 1}, {"StatsDone", "tokens.completion", "i", 1},
    {"StatsDone", "memory", "o", 1}, {"StatsDone", "memory.active_bytes", "i", 1},
    {"StatsDone", "memory.cache_bytes", "i", 1}, {"StatsDone", "memory.peak_bytes", "i", 1},
    {"StatsDone", "outbox_bytes", "i", 1}, {"StatsDone", "cache", "o", 0}, {"StatsDone", "cache.bytes", "i", 1},
    {"StatsDone", "cache.budget_bytes", "i", 1}, {"StatsDone", "cache.entries", "i", 1},
    {"StatsDone", "cache.hits", "i", 1}, {"StatsDone", "cache.misses", "i", 1},
    {"StatsDone", "cache.saved_tokens", "i", 1}, {"StatsDone", "cache.evictions", "i", 1},
    {"StatsDone", "cache.mismatches", "i", 1}, {"error", "error", "s", 1}, {"error", "code", "s", 1},
    {"error", "retryable", "b", 1}, {"error", "field", "s", 0}, {"error", "bad_id", "s", 0},
    {"error", "protocols", "l", 0}, {"error", "protocols[]", "i", 1}, {"error", "loaded", "b", 0},
};

/* What is newer than 1.0: command, path, part (a value, `=` and a form, or empty), a member
 * beside it without which it does not count, and the features, of which one must be listed. */
static const struct { const char *command, *path, *part, *when, *features; } FEATURES[] = {
    {"load", "path", "=absent", "", "load.path.absent"}, {"load", "adapter_path", "", "", "load.adapter_path"},
    {"load", "draft_path", "", "", "load.draft_path"},
    {"load", "chat_template_name", "", "", "load.chat_template_name"},
    {"load", "tool_format", "", "", "load.tool_format"}, {"load", "context_len", "", "", "load.context_len"},
    {"load", "kv_bits", "", "", "load.kv_bits"}, {"load", "dtype", "", "", "load.dtype"},
    {"load", "force", "", "", "load.force"}, {"load", "reasoning_start", "", "", "load.reasoning_start"},
    {"load", "reasoning_end", "", "", "load.reasoning_end"},
    {"load", "generation_config", "", "", "load.generation_config"},
    {"generate", "suffix", "", "", "generate.suffix"},
    {"generate", "context_files", "", "", "generate.context_files"},
    {"generate", "prompt_logprobs", "", "", "generate.prompt_logprobs"},
    {"generate", "min_tokens", "", "", "generate.min_tokens"},
    {"generate", "ignore_eos", "", "", "generate.ignore_eos"},
    {"generate", "xtc_probability", "", "", "generate.xtc_probability"},
    {"generate", "xtc_threshold", "", "", "generate.xtc_threshold"},
    {"generate", "presence_penalty", "", "", "generate.presence_penalty"},
    {"generate", "frequency_penalty", "", "", "generate.frequency_penalty"},
    {"generate", "dry_multiplier", "", "", "generate.dry_multiplier"},
    {"generate", "dry_base", "", "", "generate.dry_base"},
    {"generate", "dry_allowed_length", "", "", "generate.dry_allowed_length"},
    {"generate", "dry_range", "", "", "generate.dry_range"},
    {"generate", "dry_sequence_breakers", "", "", "generate.dry_sequence_breakers"},
    {"generate", "banned_strings", "", "", "generate.banned_strings"},
    {"generate", "logit_bias", "", "", "generate.logit_bias"},
    {"generate", "stop", "=string", "", "generate.stop.string"},
    {"generate", "include_stop", "", "", "generate.include_stop"},
    {"generate", "logprobs", "", "", "generate.logprobs"},
    {"generate", "top_logprobs", "", "", "generate.top_logprobs"}, {"generate", "n", "", "", "generate.n"},
    {"generate", "format", "", "", "generate.format"}, {"generate", "truncate", "", "", "generate.truncate"},
    {"generate", "cache", "", "", "generate.cache"}, {"generate", "cache_report", "", "", "generate.cache_report"},
    {"generate", "timeout_ms", "", "", "generate.timeout_ms"},
    {"chat", "messages[].role", "developer", "", "chat.messages.role.developer"},
    {"chat", "messages[].role", "tool", "", "chat.messages.role.tool"},
    {"chat", "messages[].content[].type", "image", "", "chat.messages.content.image"},
    {"chat", "messages[].content[].type", "audio", "", "chat.messages.content.audio"},
    {"chat", "messages[].content[].type", "image_url", "", "chat.messages.content.image_url"},
    {"chat", "messages[].content[].media", "", "", "chat.messages.content.image chat.messages.content.audio"},
    {"chat", "messages[].content[].image_url", "", "", "chat.messages.content.image_url"},
    {"chat", "messages[].reasoning", "", "", "chat.messages.reasoning"},
    {"chat", "messages[].tool_calls", "", "", "chat.messages.tool_calls"},
    {"chat", "messages[].tool_calls[].type", "", "", "chat.messages.tool_calls.type"},
    {"chat", "messages[].tool_calls[].function", "", "", "chat.messages.tool_calls.function"},
    {"chat", "messages[].tool_call_id", "", "", "chat.messages.tool_call_id"},
    {"chat", "messages[].tool_call_id", "=absent", "role=tool", "chat.messages.tool_call_id.absent"},
    {"chat", "messages[].name", "", "", "chat.messages.name"}, {"chat", "tools", "", "", "chat.tools"},
    {"chat", "chat_template", "", "", "chat.chat_template"}, {"chat", "template_args", "", "", "chat.template_args"},
    {"chat", "add_generation_prompt", "", "", "chat.add_generation_prompt"},
    {"chat", "continue_final_message", "", "", "chat.continue_final_message"},
    {"chat", "prefix", "", "", "chat.prefix"}, {"chat", "tool_choice", "", "", "chat.tool_choice"},
    {"chat", "tool_choice.type", "", "", "chat.tool_choice.type"},
    {"chat", "tool_choice.function", "", "", "chat.tool_choice.function"},
    {"chat", "parallel_tool_calls", "", "", "chat.parallel_tool_calls"},
    {"chat", "reasoning", "", "", "chat.reasoning"}, {"chat", "reasoning_effort", "", "", "chat.reasoning_effort"},
    {"chat", "reasoning_budget", "", "", "chat.reasoning_budget"},
    {"chat", "strict_media", "", "", "chat.strict_media"}, {"chat", "min_tokens", "", "", "chat.min_tokens"},
    {"chat", "ignore_eos", "", "", "chat.ignore_eos"}, {"chat", "xtc_probability", "", "", "chat.xtc_probability"},
    {"chat", "xtc_threshold", "", "", "chat.xtc_threshold"},
    {"chat", "presence_penalty", "", "", "chat.presence_penalty"},
    {"chat", "frequency_penalty", "", "", "chat.frequency_penalty"},
    {"chat", "dry_multiplier", "", "", "chat.dry_multiplier"}, {"chat", "dry_base", "", "", "chat.dry_base"},
    {"chat", "dry_allowed_length", "", "", "chat.dry_allowed_length"},
    {"chat", "dry_range", "", "", "chat.dry_range"},
    {"chat", "dry_sequence_breakers", "", "", "chat.dry_sequence_breakers"},
    {"chat", "banned_strings", "", "", "chat.banned_strings"}, {"chat", "logit_bias", "", "", "chat.logit_bias"},
    {"chat", "stop", "=string", "", "chat.stop.string"}, {"chat", "include_stop", "", "", "chat.include_stop"},
    {"chat", "logprobs", "", "", "chat.logprobs"}, {"chat", "top_logprobs", "", "", "chat.top_logprobs"},
    {"chat", "n", "", "", "chat.n"}, {"chat", "format", "", "", "chat.format"},
    {"chat", "truncate", "", "", "chat.truncate"}, {"chat", "cache", "", "", "chat.cache"},
    {"chat", "cache_report", "", "", "chat.cache_report"}, {"chat", "timeout_ms", "", "", "chat.timeout_ms"},
    {"tokenize", "", "", "", "tokenize"},
    {"tokenize", "messages[].content[].type", "image_url", "", "tokenize.messages.content.image_url"},
    {"tokenize", "messages[].content[].image_url", "", "", "tokenize.messages.content.image_url"},
    {"tokenize", "messages[].tool_calls[].type", "", "", "tokenize.messages.tool_calls.type"},
    {"tokenize", "messages[].tool_calls[].function", "", "", "tokenize.messages.tool_calls.function"},
    {"tokenize", "messages[].tool_call_id", "=absent", "role=tool", "tokenize.messages.tool_call_id.absent"},
    {"tokenize", "continue_final_message", "", "", "tokenize.continue_final_message"},
    {"tokenize", "reasoning", "", "", "tokenize.reasoning"},
    {"tokenize", "reasoning_effort", "", "", "tokenize.reasoning_effort"},
    {"tokenize", "add_special_tokens", "", "", "tokenize.add_special_tokens"},
    {"tokenize", "token_ids", "", "", "tokenize.token_ids"}, {"embed", "", "", "", "embed"},
    {"embed", "input[].type", "tokens", "", "embed.input.tokens"},
    {"embed", "input[].token_ids", "", "", "embed.input.tokens"}, {"transcribe", "", "", "", "transcribe"},
    {"speak", "", "", "", "speak"}, {"cache", "", "", "", "cache"},
};
/* clang-format on */
/* End of the tables. */

enum {
    MAX_DEPTH = 100,
    MAX_ID = 24,
    READ_BYTES = 65536,
    STDERR_BYTES = 8192,
    STDERR_LINE = 1024,
    QUOTED_BYTES = 200,
    MESSAGE_BYTES = 6144,
    START_MS = 30000,
    DOWNLOAD_MS = 600000, /* uvx fetches the worker's packages at its first start */
    EXIT_MS = 5000,       /* from the end of stdout to the exit, and from SIGKILL to the exit */
    DRAIN_MS = 1000,      /* from the exit to the end of the pipes */
    POLL_MS = 50          /* between looks at the process, where the system has no descriptor for it */
};
static const int64_t MAX_INTEGER = 9007199254740991;
static const int64_t NEVER = INT64_MAX;

/* ---------------------------------------------------------------------------------------------------------- Memory */

typedef struct memory {
    void *(*allocate)(void *user, void *memory, size_t size);
    void *user;
} memory;

static void *allocate_plainly(void *user, void *block, size_t size) {
    (void)user;
    if (size == 0) {
        free(block);
        return NULL;
    }
    return realloc(block, size);
}

static const memory PLAIN = {allocate_plainly, NULL};

static void *resize(const memory *of, void *block, size_t size) { return of->allocate(of->user, block, size); }

static void release(const memory *of, void *block) {
    if (block)
        (void)of->allocate(of->user, block, 0);
}

static void *take(const memory *of, size_t size) {
    void *block = resize(of, NULL, size);
    if (block)
        memset(block, 0, size);
    return block;
}

/* Bytes that grow. */
typedef struct buffer {
    char *data;
    size_t length, capacity;
} buffer;

static bool reserve(const memory *of, buffer *into, size_t more) {
    if (into->capacity - into->length > more)
        return true; /* with space for a NUL */
    if (more > SIZE_MAX / 4 || into->length > SIZE_MAX / 4)
        return false;
    size_t capacity = into->length + more + 1;
    capacity += capacity / 2;
    char *data = resize(of, into->data, capacity);
    if (!data)
        return false;
    into->data = data;
    into->capacity = capacity;
    return true;
}

static bool append(const memory *of, buffer *into, const char *data, size_t length) {
    if (!reserve(of, into, length))
        return false;
    if (length)
        memcpy(into->data + into->length, data, length);
    into->length += length;
    into->data[into->length] = 0;
    return true;
}

/* ------------------------------------------------------------------------------------------------------------ JSON */

/* A value of a parsed text. Its children follow it in memory, each with all of its own. */
struct lmwire_value {
    union {
        const char *string;
        double number;
    } as;
    const char *name; /* of a member of an object */
    uint32_t name_length;
    uint32_t length; /* of a string in bytes, of a list or an object in children */
    uint32_t size;   /* number of values, with this one */
    uint8_t type;
    bool truth;
};

typedef struct parser {
    const unsigned char *at, *end;
    lmwire_value *values;
    size_t used, capacity;
    char *out; /* the next decoded byte; never more than were read */
} parser;

static void skip_spaces(parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

/* Return the length of the character at the beginning of a text, or 0 if it is not UTF-8. */
static size_t character_length(const unsigned char *at, const unsigned char *end) {
    static const struct {
        unsigned char mask, lead, low, high;
        size_t length;
    } FORMS[] = {{0xFF, 0xE0, 0xA0, 0xBF, 3}, {0xFF, 0xED, 0x80, 0x9F, 3}, {0xFF, 0xF0, 0x90, 0xBF, 4},
                 {0xFF, 0xF4, 0x80, 0x8F, 4}, {0xF0, 0xE0, 0x80, 0xBF, 3}, {0xFC, 0xF0, 0x80, 0xBF, 4},
                 {0xE0, 0xC0, 0x80, 0xBF, 2}};
    if (*at < 0x80)
        return 1;
    if (*at == 0xC0 || *at == 0xC1)
        return 0;
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++) {
        if ((*at & FORMS[i].mask) != FORMS[i].lead)
            continue;
        if ((size_t)(end - at) < FORMS[i].length || at[1] < FORMS[i].low || at[1] > FORMS[i].high)
            return 0;
        for (size_t k = 2; k < FORMS[i].length; k++)
            if ((at[k] & 0xC0) != 0x80)
                return 0;
        return FORMS[i].length;
    }
    return 0;
}

static bool parse_hex(parser *p, uint32_t *unit) {
    if (p->end - p->at < 4)
        return false;
    *unit = 0;
    for (int i = 0; i < 4; i++) {
        unsigned char digit = *p->at++;
        uint32_t value = digit >= '0' && digit <= '9'   ? digit - (uint32_t)'0'
                         : digit >= 'a' && digit <= 'f' ? digit - (uint32_t)'a' + 10
                         : digit >= 'A' && digit <= 'F' ? digit - (uint32_t)'A' + 10
                                                        : 16;
        if (value == 16)
            return false;
        *unit = *unit * 16 + value;
    }
    return true;
}

/* Decode \uXXXX, or a pair of them. Half a surrogate pair is no character. */
static bool parse_code(parser *p) {
    uint32_t code, low;
    if (!parse_hex(p, &code) || (code >= 0xDC00 && code <= 0xDFFF))
        return false;
    if (code >= 0xD800 && code <= 0xDBFF) {
        if (p->end - p->at < 2 || p->at[0] != '\\' || p->at[1] != 'u')
            return false;
        p->at += 2;
        if (!parse_hex(p, &low) || low < 0xDC00 || low > 0xDFFF)
            return false;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    int more = (code > 0x7F) + (code > 0x7FF) + (code > 0xFFFF);
    static const uint32_t LEADS[] = {0, 0xC0, 0xE0, 0xF0};
    *p->out++ = (char)(LEADS[more] | code >> 6 * more);
    while (more--)
        *p->out++ = (char)(0x80 | (code >> 6 * more & 0x3F));
    return true;
}

static bool parse_string(parser *p, const char **string, uint32_t *length) {
    char *start = p->out;
    p->at++;
    while (p->at < p->end && *p->at != '"') {
        if (*p->at == '\\') {
            static const char ESCAPES[] = "\"\\/bfnrt", MEANINGS[] = "\"\\/\b\f\n\r\t";
            if (++p->at == p->end)
                return false;
            if (*p->at == 'u') {
                p->at++;
                if (!parse_code(p))
                    return false;
                continue;
            }
            const char *escape = *p->at ? strchr(ESCAPES, *p->at) : NULL;
            if (!escape)
                return false;
            *p->out++ = MEANINGS[escape - ESCAPES];
            p->at++;
            continue;
        }
        size_t bytes = *p->at < ' ' ? 0 : character_length(p->at, p->end);
        if (!bytes)
            return false;
        memcpy(p->out, p->at, bytes);
        p->out += bytes;
        p->at += bytes;
    }
    if (p->at == p->end)
        return false;
    p->at++;
    *string = start;
    *length = (uint32_t)(p->out - start);
    *p->out++ = 0;
    return true;
}

/* Put the point of the present locale into a number, or take it out. It can be longer than a byte. */
static void replace_point(char *number, const char *from, const char *to) {
    char *point = strstr(number, from);
    if (point && strcmp(from, to) != 0) {
        memmove(point + strlen(to), point + strlen(from), strlen(point + strlen(from)) + 1);
        memcpy(point, to, strlen(to));
    }
}

/* Set `point` to the locale's own. localeconv is not for threads. */
static void find_point(char point[16]) {
    char half[32];
    snprintf(half, sizeof half, "%.1f", 0.5);
    size_t length = strlen(half) < 3 ? 1 : strlen(half) - 2;
    snprintf(point, 16, "%.*s", (int)length, half + 1);
}

/* Skip digits, of which there must be one. */
static bool skip_digits(parser *p) {
    const unsigned char *start = p->at;
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9')
        p->at++;
    return p->at > start;
}

static bool parse_number(parser *p, lmwire_value *into) {
    const unsigned char *start = p->at;
    bool negative = *p->at == '-', whole = true;
    p->at += negative;
    const unsigned char *digits = p->at;
    if (!skip_digits(p) || (*digits == '0' && p->at > digits + 1))
        return false;
    if (p->at < p->end && *p->at == '.') {
        whole = false;
        p->at++;
        if (!skip_digits(p))
            return false;
    }
    if (p->at < p->end && (*p->at == 'e' || *p->at == 'E')) {
        whole = false;
        p->at++;
        p->at += p->at < p->end && (*p->at == '-' || *p->at == '+');
        if (!skip_digits(p))
            return false;
    }
    double number = 0;
    if (whole && p->at - digits <= 15) { /* most numbers are token ids */
        for (; digits < p->at; digits++)
            number = number * 10 + (*digits - '0');
        number = negative ? -number : number;
    } else {
        char point[16], *text = p->out; /* as long as what was read, and there is slack for the point */
        memcpy(text, start, (size_t)(p->at - start));
        text[p->at - start] = 0;
        find_point(point);
        replace_point(text, ".", point);
        number = strtod(text, NULL);
    }
    if (!isfinite(number))
        return false; /* [F-7] */
    into->type = (uint8_t)(whole && fabs(number) <= (double)MAX_INTEGER ? LMWIRE_INTEGER : LMWIRE_NUMBER);
    into->as.number = number;
    return true;
}

static bool parse_value(parser *p, unsigned depth);

static bool parse_children(parser *p, lmwire_value *into, unsigned depth) {
    bool object = *p->at++ == '{';
    unsigned char close = object ? '}' : ']';
    into->type = (uint8_t)(object ? LMWIRE_OBJECT : LMWIRE_LIST);
    if (depth == MAX_DEPTH)
        return false;
    skip_spaces(p);
    if (p->at < p->end && *p->at == close) {
        p->at++;
        return true;
    }
    for (;;) {
        const char *name = NULL;
        uint32_t name_length = 0;
        if (object) {
            skip_spaces(p);
            if (p->at == p->end || *p->at != '"' || !parse_string(p, &name, &name_length))
                return false;
            skip_spaces(p);
            if (p->at == p->end || *p->at++ != ':')
                return false;
        }
        size_t child = p->used;
        if (!parse_value(p, depth + 1))
            return false;
        p->values[child].name = name;
        p->values[child].name_length = name_length;
        into->length++;
        if (p->at == p->end || (*p->at != ',' && *p->at != close))
            return false;
        if (*p->at++ == close)
            return true;
    }
}

static bool parse_literal(parser *p, lmwire_value *into) {
    static const struct {
        const char *word;
        uint8_t type;
        bool truth;
    } WORDS[] = {{"true", LMWIRE_BOOLEAN, true}, {"false", LMWIRE_BOOLEAN, false}, {"null", LMWIRE_NULL, false}};
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
        size_t length = strlen(WORDS[i].word);
        if ((size_t)(p->end - p->at) >= length && memcmp(p->at, WORDS[i].word, length) == 0) {
            p->at += length;
            into->type = WORDS[i].type;
            into->truth = WORDS[i].truth;
            return true;
        }
    }
    return false;
}

/* Parse a value with the spaces around it. `depth` is that of the object or list around it. */
static bool parse_value(parser *p, unsigned depth) {
    skip_spaces(p);
    if (p->at == p->end || p->used == p->capacity)
        return false;
    lmwire_value *into = &p->values[p->used++];
    memset(into, 0, sizeof *into);
    bool parsed;
    if (*p->at == '{' || *p->at == '[') {
        parsed = parse_children(p, into, depth);
    } else if (*p->at == '"') {
        into->type = LMWIRE_STRING;
        parsed = parse_string(p, &into->as.string, &into->length);
    } else if (*p->at == '-' || (*p->at >= '0' && *p->at <= '9')) {
        parsed = parse_number(p, into);
    } else {
        parsed = parse_literal(p, into);
    }
    into->size = (uint32_t)(&p->values[p->used] - into);
    skip_spaces(p);
    return parsed;
}

/* Return how many values a text can have at most: one, and one after each comma and opening bracket. */
static size_t most_values(const char *text, size_t length) {
    size_t values = 1;
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"')
            quoted = !quoted;
        else if (quoted)
            i += text[i] == '\\';
        else
            values += text[i] == ',' || text[i] == '{' || text[i] == '[';
    }
    return values;
}

/* Parse a text into one block of memory. Return NULL, and set `no_memory` if that is the reason. */
static lmwire_value *parse(const memory *of, const char *text, size_t length, bool *no_memory) {
    *no_memory = false;
    if (length > UINT32_MAX / 2)
        return NULL;
    size_t capacity = most_values(text, length);
    if (capacity > (SIZE_MAX - length - 64) / sizeof(lmwire_value))
        return NULL;
    lmwire_value *values = resize(of, NULL, capacity * sizeof *values + length + 32);
    *no_memory = !values;
    if (!values)
        return NULL;
    parser p = {(const unsigned char *)text, (const unsigned char *)text + length, values, 0, capacity, NULL};
    p.out = (char *)(values + capacity);
    if (parse_value(&p, 0) && p.at == p.end)
        return values;
    release(of, values);
    return NULL;
}

lmwire_value *lmwire_parse(const char *text, size_t length) {
    bool no_memory;
    return text ? parse(&PLAIN, text, length, &no_memory) : NULL;
}

void lmwire_value_free(lmwire_value *value) { release(&PLAIN, value); }

lmwire_type lmwire_type_of(const lmwire_value *value) { return value ? (lmwire_type)value->type : LMWIRE_NULL; }

size_t lmwire_count(const lmwire_value *value) { return lmwire_type_of(value) >= LMWIRE_LIST ? value->length : 0; }

const lmwire_value *lmwire_first(const lmwire_value *value) { return lmwire_count(value) ? value + 1 : NULL; }

const lmwire_value *lmwire_following(const lmwire_value *list, const lmwire_value *item) {
    if (!list || !item)
        return NULL;
    const lmwire_value *next = item + item->size;
    return next < list + list->size ? next : NULL;
}

const char *lmwire_name(const lmwire_value *member, size_t *length) {
    if (length)
        *length = member ? member->name_length : 0;
    return member ? member->name : NULL;
}

/* Return the last member with a name, if it is not null [F-6], [F-17]. */
static const lmwire_value *member_of(const lmwire_value *object, const char *name, size_t length) {
    const lmwire_value *found = NULL;
    if (lmwire_type_of(object) != LMWIRE_OBJECT)
        return NULL;
    for (const lmwire_value *each = lmwire_first(object); each; each = lmwire_following(object, each))
        if (each->name_length == length && memcmp(each->name, name, length) == 0)
            found = each;
    return lmwire_type_of(found) == LMWIRE_NULL ? NULL : found;
}

const lmwire_value *lmwire_get(const lmwire_value *value, const char *path) {
    while (value && path) {
        size_t length = strcspn(path, ".");
        value = member_of(value, path, length);
        path = path[length] ? path + length + 1 : NULL;
    }
    return value;
}

const char *lmwire_string(const lmwire_value *value, size_t *length) {
    bool string = lmwire_type_of(value) == LMWIRE_STRING;
    if (length)
        *length = string ? value->length : 0;
    return string ? value->as.string : NULL;
}

int64_t lmwire_integer(const lmwire_value *value, int64_t otherwise) {
    return lmwire_type_of(value) == LMWIRE_INTEGER ? (int64_t)value->as.number : otherwise;
}

double lmwire_number(const lmwire_value *value, double otherwise) {
    lmwire_type type = lmwire_type_of(value);
    return type == LMWIRE_INTEGER || type == LMWIRE_NUMBER ? value->as.number : otherwise;
}

bool lmwire_boolean(const lmwire_value *value, bool otherwise) {
    return lmwire_type_of(value) == LMWIRE_BOOLEAN ? value->truth : otherwise;
}

static bool is_text(const lmwire_value *value, const char *text) {
    size_t length;
    const char *string = lmwire_string(value, &length);
    return string && length == strlen(text) && memcmp(string, text, length) == 0;
}

static bool append_string(const memory *of, buffer *into, const char *string, size_t length, lmwire_result *failure) {
    const unsigned char *at = (const unsigned char *)string, *end = at + length, *plain = at;
    bool fits = append(of, into, "\"", 1);
    while (fits && at < end) {
        size_t bytes = character_length(at, end);
        if (!bytes) {
            *failure = LMWIRE_INVALID; /* [F-8] */
            return false;
        }
        if (*at == '"' || *at == '\\' || *at < ' ') {
            char escape[8];
            int written = *at < ' ' ? snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*at)
                                    : snprintf(escape, sizeof escape, "\\%c", *at);
            fits = append(of, into, (const char *)plain, (size_t)(at - plain)) &&
                   append(of, into, escape, (size_t)written);
            plain = at + 1;
        }
        at += bytes;
    }
    return fits && append(of, into, (const char *)plain, (size_t)(end - plain)) && append(of, into, "\"", 1);
}

/* Add a number with as few digits as read back as the same one. */
static bool append_number(const memory *of, buffer *into, double number, lmwire_result *failure) {
    char text[64], point[16];
    if (!isfinite(number)) {
        *failure = LMWIRE_INVALID;
        return false;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    find_point(point);
    replace_point(text, point, ".");
    if (strcmp(text, "-0") == 0) /* as an integer it would lose its sign */
        strcpy(text, "-0.0");
    return append(of, into, text, strlen(text));
}

/* Return whether a format goes on with a word, and skip it. */
static bool skip_word(const char **format, const char *word) {
    bool found = strncmp(*format, word, strlen(word)) == 0;
    *format += found ? strlen(word) : 0;
    return found;
}

static lmwire_result add_format(const memory *of, buffer *into, const char *format, va_list arguments) {
    lmwire_result failure = LMWIRE_NOMEM;
    bool added = true;
    while (added && *format) {
        char digits[32] = "";
        size_t plain = strcspn(format, "%");
        added = append(of, into, format, plain);
        format += plain;
        if (!added || !*format)
            break;
        if (skip_word(&format, "%.*s")) {
            int length = va_arg(arguments, int);
            const char *string = va_arg(arguments, const char *);
            added = append_string(of, into, string, length > 0 ? (size_t)length : 0, &failure);
        } else if (skip_word(&format, "%s")) {
            const char *string = va_arg(arguments, const char *);
            added = string ? append_string(of, into, string, strlen(string), &failure) : append(of, into, "null", 4);
        } else if (skip_word(&format, "%g")) {
            added = append_number(of, into, va_arg(arguments, double), &failure);
        } else if (skip_word(&format, "%d")) {
            snprintf(digits, sizeof digits, "%d", va_arg(arguments, int));
        } else if (skip_word(&format, "%lld")) {
            snprintf(digits, sizeof digits, "%lld", va_arg(arguments, long long));
        } else if (skip_word(&format, "%zu")) {
            snprintf(digits, sizeof digits, "%zu", va_arg(arguments, size_t));
        } else if (skip_word(&format, "%%")) {
            snprintf(digits, sizeof digits, "%%");
        } else {
            failure = LMWIRE_MISUSE;
            added = false;
        }
        added = added && append(of, into, digits, strlen(digits));
    }
    return added ? LMWIRE_OK : failure;
}

lmwire_result lmwire_text_add(lmwire_text *text, const char *format, ...) {
    va_list arguments;
    if (!text || !format)
        return LMWIRE_MISUSE;
    if (text->failure == LMWIRE_OK) {
        buffer into = {text->data, text->length, text->capacity};
        va_start(arguments, format);
        text->failure = add_format(&PLAIN, &into, format, arguments);
        va_end(arguments);
        text->data = into.data;
        text->length = into.length;
        text->capacity = into.capacity;
    }
    return text->failure;
}

void lmwire_text_free(lmwire_text *text) {
    if (text) {
        free(text->data);
        memset(text, 0, sizeof *text);
    }
}

/* ---------------------------------------------------------------------------------------------- Forms and features */

typedef bool visit(const lmwire_value *around, const lmwire_value *value, void *context);

static bool walk(const lmwire_value *object, const char *path, visit *visitor, void *context);

static bool walk_on(const lmwire_value *around, const lmwire_value *value, const char *rest, visit *visitor,
                    void *context) {
    if (!*rest)
        return visitor(around, value, context);
    if (*rest == '.')
        return lmwire_type_of(value) != LMWIRE_OBJECT || walk(value, rest + 1, visitor, context);
    if (lmwire_type_of(value) == LMWIRE_LIST)
        for (const lmwire_value *each = lmwire_first(value); each; each = lmwire_following(value, each))
            if (!walk_on(value, each, rest + 2, visitor, context))
                return false;
    return true;
}

/* Visit what is at a path such as `messages[].role`, NULL for an absent member, until a visitor returns false. */
static bool walk(const lmwire_value *object, const char *path, visit *visitor, void *context) {
    size_t length = strcspn(path, ".[");
    return walk_on(object, member_of(object, path, length), path + length, visitor, context);
}

typedef struct requirement {
    const char *types;
    bool required;
} requirement;

static bool has_form(const lmwire_value *around, const lmwire_value *value, void *context) {
    static const char LETTERS[] = "0binslo"; /* by lmwire_type */
    const requirement *required = context;
    (void)around;
    if (!value)
        return !required->required;
    char letter = LETTERS[value->type];
    return strchr(required->types, letter) || (letter == 'i' && strchr(required->types, 'n'));
}

/* Return the path of the first member of an event that is absent or of a wrong type, or NULL [H-5]. */
static const char *malformed_member(const lmwire_value *event, const char *form) {
    for (size_t i = 0; i < sizeof MEMBERS / sizeof *MEMBERS; i++) {
        requirement required = {MEMBERS[i].types, MEMBERS[i].required};
        if (strcmp(MEMBERS[i].form, form) == 0 && !walk(event, MEMBERS[i].path, has_form, &required))
            return MEMBERS[i].path;
    }
    return NULL;
}

/* A part of a field, which is a value, `=` and a form, or all of it; and `name=value` of a member beside it, or "". */
typedef struct field_part {
    const char *part, *when;
} field_part;

static bool is_beside(const lmwire_value *around, const char *when) {
    size_t length = strcspn(when, "=");
    return !*when || is_text(member_of(around, when, length), when + length + 1);
}

/* Return false, which ends the walk, if a command uses the part of a field. */
static bool is_unused(const lmwire_value *around, const lmwire_value *value, void *context) {
    const field_part *wanted = context;
    if (!*wanted->part)
        return !value;
    if (strcmp(wanted->part, "=absent") == 0)
        return value || !is_beside(around, wanted->when);
    if (strcmp(wanted->part, "=string") == 0)
        return lmwire_type_of(value) != LMWIRE_STRING;
    return !is_text(value, wanted->part);
}

static bool uses(const lmwire_value *command, const char *path, field_part wanted) {
    return !*path || !walk(command, path, is_unused, &wanted);
}

/* -------------------------------------------------------------------------------------------- Workers and requests */

/* A tool call: its parts so far. */
typedef struct call {
    struct call *next;
    int64_t choice, index;
    buffer id, name, arguments;
} call;

typedef struct item {
    struct item *next;
    lmwire_value *value;
    call *call;
    size_t bytes;
    lmwire_event event;
} item;

struct lmwire_request {
    lmwire_worker *worker;
    lmwire_request *next, *previous;
    uint64_t id;
    char command[32];
    bool in_flight; /* the worker has not sent its terminal */
    bool ended;     /* the queue has its last event */
    bool freed;     /* nobody reads its events */
    item *first, *last, *current, *terminal;
    item end; /* the last event that the library makes: it needs no memory then */
    size_t queued;
    int64_t deadline;
    call *calls;
    buffer answer;
    void *user;
};

typedef enum step {
    NO_STEP,
    DRAIN_STEP,
    QUIT_STEP,
    EOF_STEP,
    TERM_STEP,
    KILL_STEP
} step;

struct lmwire_worker {
    memory memory;
    lmwire_options options;
    pid_t pid;
    int in, out, err, exit; /* descriptors of stdin, stdout, stderr, and of the process's end where there is one */
    int wake[2];
    bool woken;
    bool exited, gone, stuck;
    bool no_status; /* another part of the program has reaped the process */
    int status;
    int64_t last_id;
    lmwire_request *requests, *last_request;
    buffer waiting; /* bytes for stdin */
    size_t written;
    buffer line; /* bytes of stdout that are not read as lines yet */
    size_t scanned;
    size_t banner;
    lmwire_value *hello;
    bool ends_with_host;
    char reason[512]; /* why this side ended the worker; empty if it did not */
    step step;
    int64_t start_deadline, step_deadline, exit_deadline, drain_deadline, kill_deadline;
    int start_ms;
    size_t stderr_length, stderr_line_length;
    char stderr_end[2 * STDERR_BYTES + 1], stderr_line[STDERR_LINE];
    char started[256]; /* the command */
    char lost[MESSAGE_BYTES];
    char message[MESSAGE_BYTES];
};

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Return when some milliseconds are over. */
static int64_t after(int milliseconds) { return milliseconds < 0 ? NEVER : now_ms() + milliseconds; }

LMWIRE_PRINTF(3, 4) static lmwire_result fail(lmwire_worker *worker, lmwire_result result, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(worker->message, sizeof worker->message, format, arguments);
    va_end(arguments);
    return result;
}

static lmwire_result no_memory(lmwire_worker *worker) { return fail(worker, LMWIRE_NOMEM, "lmwire: no memory"); }

/* Return words for an error of the system. strerror is not for threads. */
static const char *system_error(int error) {
    switch (error) {
    case ENOENT: return "there is no such file";
    case EACCES: return "it may not be executed";
    case ENOEXEC: return "it is not a program of this machine";
    case ENOMEM: return "no memory";
    case EMFILE:
    case ENFILE: return "too many files are open";
    case EAGAIN: return "too many processes run";
    case E2BIG: return "its arguments are too long";
    default: return "the system refuses it";
    }
}

static void close_descriptor(int *descriptor) {
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

/* ------------------------------------------------------------------------------------------------ Finding a worker */

/* What is started. */
typedef struct place {
    const char **command;
    size_t length;
    lmwire_value *parsed; /* of $LMWIRE_WORKER */
    char program[PATH_MAX];
    char packages[64];
    bool ends_with_host;
    int start_ms;
} place;

static bool is_file(const char *path, bool executable) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode) && (!executable || access(path, X_OK) == 0);
}

/* Find a program on PATH. Empty and relative entries mean the working directory, and are skipped. */
static bool on_path(const char *name, char path[PATH_MAX]) {
    const char *entry = getenv("PATH");
    while (entry && *entry) {
        size_t length = strcspn(entry, ":");
        int written = snprintf(path, PATH_MAX, "%.*s/%s", (int)length, entry, name);
        if (*entry == '/' && written > 0 && written < PATH_MAX && is_file(path, true))
            return true;
        entry += length + (entry[length] == ':');
    }
    return false;
}

/* Find the program in the folder that an app ships beside its own. */
static bool find_bundled(char path[PATH_MAX]) {
    char own[PATH_MAX];
#if defined(__linux__)
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length <= 0)
        return false;
    own[length] = 0;
    static const char *const FOLDERS[] = {""};
#elif defined(__APPLE__)
    char linked[PATH_MAX];
    uint32_t size = sizeof linked;
    if (_NSGetExecutablePath(linked, &size) != 0 || !realpath(linked, own))
        return false;
    static const char *const FOLDERS[] = {"", "/../Resources"};
#else
    return false;
#endif
#if defined(__linux__) || defined(__APPLE__)
    char *slash = strrchr(own, '/');
    if (!slash)
        return false;
    *slash = 0;
    for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) {
        int written = snprintf(path, PATH_MAX, "%s%s/lmwire/lmwire", own, FOLDERS[i]);
        if (written > 0 && written < PATH_MAX && is_file(path, false))
            return true;
    }
    return false;
#endif
}

static size_t count_texts(const char *const *texts) {
    size_t count = 0;
    while (texts && texts[count])
        count++;
    return count;
}

static void add_argument(place *found, const char *argument) { found->command[found->length++] = argument; }

/* Take the worker that $LMWIRE_WORKER names: a program, or a whole command as a JSON list. */
static lmwire_result find_named(lmwire_worker *worker, place *found, const char *named) {
    bool out_of_memory;
    if (*named != '[') {
        add_argument(found, named);
        add_argument(found, "worker");
        return LMWIRE_OK;
    }
    found->ends_with_host = false;
    found->parsed = parse(&worker->memory, named, strlen(named), &out_of_memory);
    bool texts = lmwire_count(found->parsed) > 0;
    for (const lmwire_value *each = lmwire_first(found->parsed); each; each = lmwire_following(found->parsed, each)) {
        size_t length;
        const char *text = lmwire_string(each, &length);
        texts = texts && text && strlen(text) == length;
        add_argument(found, text);
    }
    if (texts)
        return LMWIRE_OK;
    return fail(worker, LMWIRE_NOT_FOUND,
                "lmwire: $LMWIRE_WORKER must name a program, or be a JSON list of strings: a command");
}

/* Find the first worker in the order of docs/hosts.md. */
static lmwire_result find_worker(lmwire_worker *worker, place *found) {
    const lmwire_options *options = &worker->options;
    const char *named = getenv("LMWIRE_WORKER");
    size_t most = count_texts(options->command) + count_texts(options->arguments) +
                  (named ? most_values(named, strlen(named)) : 0);
    found->command = take(&worker->memory, (most + 8) * sizeof *found->command);
    if (!found->command)
        return no_memory(worker);
    found->ends_with_host = true;
    found->start_ms = START_MS;
    lmwire_result result = LMWIRE_OK;
    if (count_texts(options->command)) {
        found->ends_with_host = false;
        for (const char *const *each = options->command; *each; each++)
            add_argument(found, *each);
    } else if (find_bundled(found->program)) {
        add_argument(found, found->program);
        add_argument(found, "worker");
    } else if (named && *named) {
        result = find_named(worker, found, named);
    } else if (on_path("lmwire", found->program)) {
        add_argument(found, found->program);
        add_argument(found, "worker");
    } else if (options->uvx && on_path("uvx", found->program)) {
#if defined(__APPLE__)
        const char *extra = "worker";
#else
        const char *extra = "cpu";
#endif
        snprintf(found->packages, sizeof found->packages, "lmwire[%s]==%s", extra, LMWIRE_VERSION);
        const char *const uvx[] = {found->program, "--from", found->packages, "lmwire", "worker"};
        for (size_t i = 0; i < sizeof uvx / sizeof *uvx; i++)
            add_argument(found, uvx[i]);
        found->start_ms = DOWNLOAD_MS;
    } else {
        result = fail(worker, LMWIRE_NOT_FOUND,
                      "lmwire: no worker found: put lmwire on PATH, name a worker in $LMWIRE_WORKER, or %s",
                      options->uvx ? "install uv for the option uvx" : "allow a download with the option uvx");
    }
    if (result != LMWIRE_OK)
        return result;
    for (const char *const *each = options->arguments; each && *each; each++)
        add_argument(found, *each);
    if (options->host_watch >= 0)
        found->ends_with_host = options->host_watch > 0;
    if (options->start_ms >= 0)
        found->start_ms = options->start_ms;
    for (size_t i = 0, at = 0; i < found->length && at < sizeof worker->started; i++)
        at += (size_t)snprintf(worker->started + at, sizeof worker->started - at, "%s%s", i ? " " : "",
                               found->command[i]);
    if (!strchr(found->command[0], '/')) {
        if (!on_path(found->command[0], found->program))
            return fail(worker, LMWIRE_START, "lmwire: `%s` does not start as a worker: no such program on PATH",
                        worker->started);
        found->command[0] = found->program;
    }
    return LMWIRE_OK;
}

/* ----------------------------------------------------------------------------------------------------- The process */

/*
 * Return the variables of the child, in one block. In it, no code of the working directory runs, which may be an
 * untrusted repository: Python's paths are absolute. With PYTHONINSPECT a worker would wait at Python's prompt.
 */
static char **make_environment(const memory *of) {
    static const char *const PATHS[] = {"PYTHONPATH=", "PYTHONHOME=", "PYTHONUSERBASE=", "PYTHONPYCACHEPREFIX="};
    size_t count = 0, bytes = 0;
    for (char **each = environ; *each; each++, count++)
        if (strncmp(*each, "PYTHON", 6) == 0)
            bytes += strlen(*each) + 1;
    char **made = resize(of, NULL, (count + 1) * sizeof *made + bytes);
    if (!made)
        return NULL;
    char *text = (char *)(made + count + 1);
    size_t kept = 0;
    for (char **each = environ; *each; each++) {
        size_t prefix = 0;
        if (strncmp(*each, "PYTHONINSPECT=", 14) == 0)
            continue;
        for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++)
            if (strncmp(*each, PATHS[i], strlen(PATHS[i])) == 0)
                prefix = strlen(PATHS[i]);
        if (!prefix) {
            made[kept++] = *each;
            continue;
        }
        char *start = text;
        memcpy(text, *each, prefix);
        text += prefix;
        for (const char *entry = *each + prefix; *entry;) {
            size_t length = strcspn(entry, ":");
            if (*entry == '/') {
                if (text > start + prefix)
                    *text++ = ':';
                memcpy(text, entry, length);
                text += length;
            }
            entry += length + (entry[length] == ':');
        }
        if (text > start + prefix) {
            *text++ = 0;
            made[kept++] = start;
        } else {
            text = start;
        }
    }
    made[kept] = NULL;
    return made;
}

/* Make a pipe that no other child inherits, outside of the standard descriptors. */
static bool make_pipe(int ends[2]) {
#if defined(__linux__)
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
#else
    if (pipe(ends) != 0)
        return false;
    for (int i = 0; i < 2; i++)
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
#endif
    for (int i = 0; i < 2; i++) {
        if (ends[i] <= STDERR_FILENO) {
            int moved = fcntl(ends[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
            int error = errno;
            close(ends[i]);
            ends[i] = moved;
            if (moved < 0) {
                close_descriptor(&ends[1 - i]);
                errno = error;
                return false;
            }
        }
    }
    return true;
}

static void set_nonblocking(int descriptor) { fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK); }

/* Return a descriptor that is readable once the process has ended, or -1. */
static int open_exit(pid_t pid) {
#if defined(__linux__) && defined(SYS_pidfd_open)
    return (int)syscall(SYS_pidfd_open, pid, 0); /* it closes on exec */
#elif defined(__APPLE__)
    int queue = kqueue();
    struct kevent event;
    EV_SET(&event, (uintptr_t)pid, EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, NULL);
    if (queue >= 0) {
        fcntl(queue, F_SETFD, FD_CLOEXEC);
        if (kevent(queue, &event, 1, NULL, 0, NULL) != 0)
            close_descriptor(&queue);
    }
    return queue;
#else
    (void)pid;
    return -1;
#endif
}

/* Start the process with three pipes, in a group of its own, and without this thread's signals [H-1]. */
static int start_process(lmwire_worker *worker, const place *found, char *const *environment) {
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int error = 0;
    for (int i = 0; i < 3 && !error; i++)
        if (!make_pipe(pipes[i]))
            error = errno;
    if (!error && !(error = posix_spawn_file_actions_init(&actions))) {
        if (!(error = posix_spawnattr_init(&attributes))) {
            short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
            sigemptyset(&none);
            sigfillset(&all);
            sigdelset(&all, SIGKILL);
            sigdelset(&all, SIGSTOP);
            for (int i = 0; i < 3 && !error; i++)
                error = posix_spawn_file_actions_adddup2(&actions, pipes[i][i > 0], i);
            if (!error)
                error = posix_spawnattr_setpgroup(&attributes, 0);
            if (!error)
                error = posix_spawnattr_setsigmask(&attributes, &none);
            if (!error)
                error = posix_spawnattr_setsigdefault(&attributes, &all);
            if (!error)
                error = posix_spawnattr_setflags(&attributes, flags);
            if (!error)
                error = posix_spawn(&worker->pid, found->command[0], &actions, &attributes,
                                    (char *const *)(const void *)found->command, environment);
            posix_spawnattr_destroy(&attributes);
        }
        posix_spawn_file_actions_destroy(&actions);
    }
    for (int i = 0; i < 3; i++)
        close_descriptor(&pipes[i][i > 0]);
    worker->in = pipes[0][1];
    worker->out = pipes[1][0];
    worker->err = pipes[2][0];
    if (error) {
        close_descriptor(&worker->in);
        close_descriptor(&worker->out);
        close_descriptor(&worker->err);
        return error;
    }
    set_nonblocking(worker->in);
    set_nonblocking(worker->out);
    set_nonblocking(worker->err);
    worker->exit = open_exit(worker->pid);
    return 0;
}

/* Signal the worker's group. After the process was reaped, its id can belong to others. */
static void signal_group(lmwire_worker *worker, int number) {
    if (worker->pid > 0 && !worker->exited)
        (void)kill(-worker->pid, number); /* fails if the group is gone */
}

static void kill_worker(lmwire_worker *worker) {
    signal_group(worker, SIGKILL);
    if (worker->kill_deadline == NEVER)
        worker->kill_deadline = after(EXIT_MS);
}

/* Notice the end of the process, kill the rest of its group, and reap it, in this order [H-9]. */
static void look_at_process(lmwire_worker *worker) {
    siginfo_t about;
    if (worker->exited)
        return;
    memset(&about, 0, sizeof about);
    int looked = waitid(P_PID, (id_t)worker->pid, &about, WEXITED | WNOHANG | WNOWAIT);
    if (looked == 0 && about.si_pid == 0)
        return;
    if (looked != 0 && errno != ECHILD)
        return;
    signal_group(worker, SIGKILL);
    worker->no_status = looked != 0 || waitpid(worker->pid, &worker->status, 0) != worker->pid;
    worker->exited = true;
    worker->drain_deadline = after(DRAIN_MS);
    worker->start_deadline = worker->step_deadline = worker->exit_deadline = worker->kill_deadline = NEVER;
    close_descriptor(&worker->exit);
    close_descriptor(&worker->in);
}

/* Write to a pipe without a SIGPIPE for this process, whatever it does with that signal. */
static ssize_t write_quietly(int descriptor, const char *data, size_t length) {
    sigset_t pipe_signal, before, pending;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigemptyset(&pending);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    ssize_t written = write(descriptor, data, length);
    int error = errno;
    if (written < 0 && error == EPIPE && !was_pending) {
        sigemptyset(&pending);
        sigpending(&pending);
        int number;
        if (sigismember(&pending, SIGPIPE) == 1)
            sigwait(&pipe_signal, &number);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return written;
}

/* Write what waits. A failed write fails no request: the worker is ending, and [H-9] decides [H-3]. */
static void write_waiting(lmwire_worker *worker) {
    buffer *waiting = &worker->waiting;
    while (worker->in >= 0 && worker->written < waiting->length) {
        ssize_t written = write_quietly(worker->in, waiting->data + worker->written, waiting->length - worker->written);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (worker->written > waiting->length / 2) {
                waiting->length -= worker->written;
                memmove(waiting->data, waiting->data + worker->written, waiting->length);
                worker->written = 0;
            }
            return;
        }
        if (written < 0)
            close_descriptor(&worker->in);
        else
            worker->written += (size_t)written;
    }
    waiting->length = worker->written = 0;
    if (waiting->capacity > 1048576) {
        release(&worker->memory, waiting->data);
        memset(waiting, 0, sizeof *waiting);
    }
}

static void keep_stderr(lmwire_worker *worker, const char *data, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (data[i] != '\n' && worker->stderr_line_length < STDERR_LINE)
            worker->stderr_line[worker->stderr_line_length++] = data[i];
        if (data[i] == '\n') {
            if (worker->options.on_stderr)
                worker->options.on_stderr(worker->options.user, worker->stderr_line, worker->stderr_line_length);
            worker->stderr_line_length = 0;
        }
    }
    if (length > STDERR_BYTES) {
        data += length - STDERR_BYTES;
        length = STDERR_BYTES;
    }
    if (worker->stderr_length + length > 2 * STDERR_BYTES) {
        memmove(worker->stderr_end, worker->stderr_end + worker->stderr_length - STDERR_BYTES, STDERR_BYTES);
        worker->stderr_length = STDERR_BYTES;
    }
    memcpy(worker->stderr_end + worker->stderr_length, data, length);
    worker->stderr_length += length;
    worker->stderr_end[worker->stderr_length] = 0;
}

/* -------------------------------------------------------------------------------------------------------- Requests */

static void free_call(const memory *of, call *each) {
    if (!each)
        return;
    release(of, each->id.data);
    release(of, each->name.data);
    release(of, each->arguments.data);
    release(of, each);
}

static void free_item(const memory *of, item *each) {
    release(of, each->value);
    free_call(of, each->call);
    release(of, each);
}

static void drop_calls(lmwire_request *request) {
    while (request->calls) {
        call *each = request->calls;
        request->calls = each->next;
        free_call(&request->worker->memory, each);
    }
}

static void drop_events(lmwire_request *request) {
    while (request->first) {
        item *each = request->first;
        request->first = each->next;
        if (each != &request->end)
            free_item(&request->worker->memory, each);
    }
    request->last = NULL;
    request->queued = 0;
    drop_calls(request);
}

static void link_last(lmwire_request *request) {
    lmwire_worker *worker = request->worker;
    request->next = NULL;
    request->previous = worker->last_request;
    if (worker->last_request)
        worker->last_request->next = request;
    else
        worker->requests = request;
    worker->last_request = request;
}

static void unlink_request(lmwire_request *request) {
    lmwire_worker *worker = request->worker;
    *(request->previous ? &request->previous->next : &worker->requests) = request->next;
    *(request->next ? &request->next->previous : &worker->last_request) = request->previous;
}

/* Free a request that nobody reads, once its id is free too [H-8]. */
static void free_if_over(lmwire_request *request) {
    if (!request->freed || request->in_flight)
        return;
    const memory *of = &request->worker->memory;
    drop_events(request);
    if (request->current && request->current != request->terminal)
        free_item(of, request->current);
    if (request->terminal && request->terminal != &request->end)
        free_item(of, request->terminal);
    release(of, request->answer.data);
    unlink_request(request);
    release(of, request);
}

static void queue_item(lmwire_request *request, item *each) {
    each->next = NULL;
    if (request->last)
        request->last->next = each;
    else
        request->first = each;
    request->last = each;
    request->queued += each->bytes;
}

/* End a request with an event that the library makes. Its id stays taken until the worker's terminal. */
static void end_request(lmwire_request *request, lmwire_result result, const char *code, const char *sentence) {
    if (request->ended)
        return;
    item *end = &request->end;
    end->event.kind = LMWIRE_ERROR;
    end->event.code = code;
    end->event.result = result;
    end->event.text = sentence;
    end->event.text_length = strlen(sentence);
    request->ended = true;
    request->deadline = NEVER;
    drop_calls(request);
    queue_item(request, end);
}

static lmwire_result write_command(lmwire_worker *worker, const char *command, size_t length, const char *name,
                                   lmwire_request **sent);

static lmwire_result send_cancel(lmwire_worker *worker, uint64_t target) {
    char line[80];
    int length = snprintf(line, sizeof line, "{\"cmd\":\"cancel\",\"target\":\"%llu\"}", (unsigned long long)target);
    return write_command(worker, line, (size_t)length, "cancel", NULL);
}

static void give_up(lmwire_request *request, lmwire_result result) {
    bool slow = result == LMWIRE_SLOW;
    if (slow)
        drop_events(request);
    end_request(request, result, slow ? "slow_consumer" : "timeout",
                slow ? "too many events of the request waited to be read, so it was cancelled"
                     : "the request took too long, so it was cancelled");
    if (request->in_flight)
        (void)send_cancel(request->worker, request->id); /* without memory it runs on, and nobody reads its events */
}

/* End a request whose events cannot be used, which no worker causes, and cancel it. */
static void fail_request(lmwire_request *request, const char *sentence) {
    end_request(request, LMWIRE_FAILED, "internal", sentence);
    if (request->in_flight)
        (void)send_cancel(request->worker, request->id);
}

static lmwire_request *find_request(const lmwire_worker *worker, const char *id, size_t length) {
    uint64_t number = 0;
    if (length == 0 || length > 18 || id[0] == '0')
        return NULL;
    for (size_t i = 0; i < length; i++) {
        if (id[i] < '0' || id[i] > '9')
            return NULL;
        number = number * 10 + (uint64_t)(id[i] - '0');
    }
    for (lmwire_request *each = worker->requests; each; each = each->next)
        if (each->in_flight && each->id == number)
            return each;
    return NULL;
}

/* Write a line with the id first [F-9]. The command is an object that was checked. */
static lmwire_result write_command(lmwire_worker *worker, const char *command, size_t length, const char *name,
                                   lmwire_request **sent) {
    const memory *of = &worker->memory;
    lmwire_request *request = take(of, sizeof *request);
    if (sent)
        *sent = NULL;
    if (!request)
        return no_memory(worker);
    request->worker = worker;
    request->id = (uint64_t)(worker->last_id + 1);
    request->deadline = NEVER;
    request->freed = !sent;
    request->end.event.text = "";
    snprintf(request->command, sizeof request->command, "%s", name);
    if (worker->gone || worker->reason[0]) { /* nobody will answer any more */
        if (!sent) {
            release(of, request);
            return LMWIRE_LOST;
        }
        link_last(request);
        end_request(request, LMWIRE_LOST, "worker_lost", worker->gone ? worker->lost : worker->reason);
        *sent = request;
        return LMWIRE_OK;
    }
    char id[MAX_ID + 16];
    const char *brace = memchr(command, '{', length);
    size_t rest = length - (size_t)(brace + 1 - command), before = worker->waiting.length;
    int head = snprintf(id, sizeof id, "{\"id\":\"%llu\",", (unsigned long long)request->id);
    if (!append(of, &worker->waiting, id, (size_t)head) || !append(of, &worker->waiting, brace + 1, rest) ||
        !append(of, &worker->waiting, "\n", 1)) {
        worker->waiting.length = before;
        release(of, request);
        return no_memory(worker);
    }
    char *line = worker->waiting.data + before + head;
    for (size_t i = 0; i < rest; i++)
        if (line[i] == '\n' || line[i] == '\r')
            line[i] = ' '; /* between values: in a string it would have been refused */
    worker->last_id++;
    request->in_flight = true;
    link_last(request);
    write_waiting(worker);
    if (sent)
        *sent = request;
    return LMWIRE_OK;
}

/* ---------------------------------------------------------------------------------------------------------- Events */

/* Believe nothing more of the worker, and kill it [H-5]. */
LMWIRE_PRINTF(2, 3) static void end_worker(lmwire_worker *worker, const char *format, ...) {
    va_list arguments;
    if (!worker->reason[0]) {
        va_start(arguments, format);
        vsnprintf(worker->reason, sizeof worker->reason, format, arguments);
        va_end(arguments);
    }
    kill_worker(worker);
}

static const char *known_reason(const lmwire_value *reason) {
    if (!reason)
        return NULL;
    for (size_t i = 0; i < sizeof FINISH_REASONS / sizeof *FINISH_REASONS; i++)
        if (is_text(reason, FINISH_REASONS[i]))
            return FINISH_REASONS[i];
    return "other"; /* [V-4] */
}

/* The events' names, by lmwire_event_kind. */
static const char *const KINDS[] = {"token",   "tool_call", "",     "progress", "embedding",
                                    "segment", "audio",     "done", "error"};

static void fill_event(lmwire_event *event, lmwire_event_kind kind, const lmwire_value *json) {
    static const char *const TEXTS[] = {"token", "arguments", "", "", "", "text", "", "", "error"};
    event->kind = kind;
    event->json = json;
    event->text = *TEXTS[kind] ? lmwire_string(lmwire_get(json, TEXTS[kind]), &event->text_length) : NULL;
    if (!event->text)
        event->text = "";
    event->choice = lmwire_integer(lmwire_get(json, "choice"), 0);
    const lmwire_value *channel = lmwire_get(json, "channel");
    event->channel = !channel || is_text(channel, "content") ? LMWIRE_CONTENT
                     : is_text(channel, "reasoning")         ? LMWIRE_REASONING
                                                             : LMWIRE_OTHER;
    event->call_id = lmwire_string(lmwire_get(json, "call_id"), NULL);
    event->name = lmwire_string(lmwire_get(json, "name"), NULL);
    if (kind == LMWIRE_DONE)
        event->finish_reason = known_reason(lmwire_get(json, "finish_reason"));
    if (kind == LMWIRE_ERROR) {
        event->code = lmwire_string(lmwire_get(json, "code"), NULL);
        event->retryable = lmwire_boolean(lmwire_get(json, "retryable"), false);
        event->result = LMWIRE_FAILED;
    }
}

/* Add a part of a tool call, and queue the call once it is whole. One without `complete` true is dropped [Q-2]. */
static bool join_call(lmwire_request *request, const lmwire_event *part) {
    const memory *of = &request->worker->memory;
    const lmwire_value *complete = lmwire_get(part->json, "complete");
    int64_t index = lmwire_integer(lmwire_get(part->json, "index"), 0);
    const char *id = part->call_id ? part->call_id : "", *name = part->name ? part->name : "";
    call **link = &request->calls;
    while (*link && ((*link)->choice != part->choice || (*link)->index != index))
        link = &(*link)->next;
    if (!*link && !(*link = take(of, sizeof **link)))
        return false;
    call *each = *link;
    each->choice = part->choice;
    each->index = index;
    if (!append(of, &each->id, id, strlen(id)) || !append(of, &each->name, name, strlen(name)) ||
        !append(of, &each->arguments, part->text, part->text_length))
        return false;
    request->queued += part->text_length;
    if (!complete)
        return true;
    item *whole = lmwire_boolean(complete, false) ? take(of, sizeof *whole) : NULL;
    if (!whole && lmwire_boolean(complete, false))
        return false;
    *link = each->next;
    bool out_of_memory = false;
    const char *written = each->arguments.data ? each->arguments.data : "";
    lmwire_value *arguments = whole ? parse(of, written, each->arguments.length, &out_of_memory) : NULL;
    bool is_object = lmwire_type_of(arguments) == LMWIRE_OBJECT;
    release(of, arguments);
    if (!whole || !is_object) {
        free_call(of, each);
        if (whole)
            release(of, whole);
        if (whole && !out_of_memory)
            fail_request(request, "the worker calls a tool with arguments that are not a JSON object");
        return !out_of_memory;
    }
    whole->call = each;
    whole->event.kind = LMWIRE_TOOL_CALL;
    whole->event.choice = part->choice;
    whole->event.call_id = each->id.data;
    whole->event.name = each->name.data;
    whole->event.text = each->arguments.data;
    whole->event.text_length = each->arguments.length;
    queue_item(request, whole);
    return true;
}

/* Give an event to its request, which then owns `value`. Return false without memory. */
static bool deliver(lmwire_request *request, lmwire_event_kind kind, lmwire_value *value, size_t bytes) {
    const memory *of = &request->worker->memory;
    bool last = kind == LMWIRE_DONE || kind == LMWIRE_ERROR;
    if (last)
        request->in_flight = false;
    if (request->freed || request->ended) {
        release(of, value);
        free_if_over(request);
        return true;
    }
    item *each = take(of, sizeof *each);
    if (!each) {
        release(of, value);
        request->in_flight = true; /* so that it ends like all others */
        return false;
    }
    each->value = value;
    each->bytes = bytes;
    fill_event(&each->event, kind, value);
    queue_item(request, each);
    if (last) {
        request->ended = true;
        request->deadline = NEVER;
        drop_calls(request);
        return true;
    }
    if (kind == LMWIRE_TOOL_CALL_PART && !join_call(request, &each->event))
        return false;
    if (request->queued > request->worker->options.queue_bytes)
        give_up(request, LMWIRE_SLOW);
    return true;
}

static void receive_hello(lmwire_worker *worker, lmwire_value *hello) {
    worker->start_deadline = NEVER;
    if (lmwire_integer(lmwire_get(hello, "protocol"), 0) == 1) {
        release(&worker->memory, worker->hello);
        worker->hello = hello;
        return;
    }
    end_worker(worker, "%s speaks another protocol than version 1; install lmwire %s",
               lmwire_string(lmwire_get(hello, "worker"), NULL), LMWIRE_VERSION);
    release(&worker->memory, hello);
}

static void quote_line(char into[QUOTED_BYTES + 1], const char *line, size_t length) {
    size_t kept = length < QUOTED_BYTES ? length : QUOTED_BYTES;
    for (size_t i = 0; i < kept; i++)
        into[i] = line[i] >= ' ' && line[i] <= '~' ? line[i] : '?';
    into[kept] = 0;
}

/* Take a line that is a JSON object. It owns `value`. Return what is malformed, or NULL. */
static const char *receive_object(lmwire_worker *worker, lmwire_value *value, size_t bytes) {
    size_t length = 0;
    const lmwire_value *event = lmwire_get(value, "event");
    const char *id = lmwire_string(lmwire_get(value, "id"), &length), *problem = NULL;
    size_t kind = 0;
    while (kind < sizeof KINDS / sizeof *KINDS && (!*KINDS[kind] || !is_text(event, KINDS[kind])))
        kind++;
    bool known = kind < sizeof KINDS / sizeof *KINDS;
    bool is_progress = kind == LMWIRE_PROGRESS;
    bool without_id = kind == LMWIRE_ERROR && !lmwire_get(value, "id"); /* it ends no request [T-2] */
    lmwire_request *request = id ? find_request(worker, id, length) : NULL;
    if (known) {
        const char *form = kind == LMWIRE_DONE ? "" : KINDS[kind];
        for (size_t i = 0; request && kind == LMWIRE_DONE && i < sizeof DONE_FORMS / sizeof *DONE_FORMS; i++)
            if (strcmp(DONE_FORMS[i].command, request->command) == 0)
                form = DONE_FORMS[i].form;
        problem = malformed_member(value, form);
        if (!id && !without_id)
            problem = "id";
    }
    if (is_progress && (problem || lmwire_integer(lmwire_get(value, "current"), 0) < 0 ||
                        lmwire_integer(lmwire_get(value, "total"), 0) < 0)) {
        request = NULL; /* a malformed one is ignored */
        problem = NULL;
    } else if (!problem && known && without_id) {
        char note[512];
        int written = snprintf(note, sizeof note, "lmwire: an error without a request: %s\n",
                               lmwire_string(lmwire_get(value, "error"), NULL));
        keep_stderr(worker, note, written < (int)sizeof note ? (size_t)written : sizeof note - 1);
    }
    if (problem || !known || !request) {
        release(&worker->memory, value);
        return problem;
    }
    bool hello = strcmp(request->command, "hello") == 0;
    if (hello && kind == LMWIRE_ERROR)
        end_worker(worker, "it refuses `hello`: %s", lmwire_string(lmwire_get(value, "error"), NULL));
    if (hello && kind == LMWIRE_DONE) {
        request->in_flight = false;
        free_if_over(request);
        receive_hello(worker, value);
        return NULL;
    }
    if (!deliver(request, (lmwire_event_kind)kind, value, bytes + sizeof(item)))
        end_worker(worker, "this program has no memory for its events");
    return NULL;
}

static void receive_line(lmwire_worker *worker, const char *line, size_t length) {
    char quoted[QUOTED_BYTES + 1];
    size_t spaces = 0;
    bool out_of_memory;
    while (spaces < length && (line[spaces] == ' ' || line[spaces] == '\t' || line[spaces] == '\r'))
        spaces++;
    if (spaces == length)
        return;
    lmwire_value *value = parse(&worker->memory, line, length, &out_of_memory);
    if (out_of_memory) {
        end_worker(worker, "this program has no memory for its events");
        return;
    }
    if (lmwire_type_of(value) == LMWIRE_OBJECT) {
        size_t bytes = value->size * sizeof *value + length;
        const char *problem = receive_object(worker, value, bytes);
        if (problem) {
            quote_line(quoted, line, length);
            end_worker(worker, "it broke the protocol: `%s` is absent or of a wrong type: %s", problem, quoted);
        }
        return;
    }
    release(&worker->memory, value);
    if (!worker->hello && (worker->banner += length + 1) <= BANNER_BYTES)
        return; /* of a login shell [H-4] */
    quote_line(quoted, line, length);
    end_worker(worker, "it broke the protocol: a line is not a JSON object: %s", quoted);
}

/* Take the whole lines of what was read. */
static void receive_lines(lmwire_worker *worker) {
    buffer *line = &worker->line;
    size_t start = 0;
    while (!worker->reason[0]) {
        char *newline = memchr(line->data + start + worker->scanned, '\n', line->length - start - worker->scanned);
        size_t length = newline ? (size_t)(newline - line->data) - start : line->length - start;
        if (length > CLIENT_LINE_BYTES) {
            end_worker(worker, "it broke the protocol: a line is longer than 1 MiB");
            break;
        }
        worker->scanned = newline ? 0 : length;
        if (!newline)
            break;
        receive_line(worker, line->data + start, length);
        start += length + 1;
    }
    if (worker->reason[0]) {
        line->length = worker->scanned = 0; /* nothing after the line is believed */
    } else {
        memmove(line->data, line->data + start, line->length - start);
        line->length -= start;
    }
}

/* Read a pipe as far as it goes, at most a bit. Close it at its end. */
static void read_pipe(lmwire_worker *worker, int *descriptor) {
    char bytes[READ_BYTES];
    for (int turns = 0; turns < 16 && *descriptor >= 0; turns++) {
        ssize_t length = read(*descriptor, bytes, sizeof bytes);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (length <= 0) {
            close_descriptor(descriptor);
            if (descriptor == &worker->out)
                worker->exit_deadline = after(EXIT_MS);
        } else if (descriptor == &worker->err) {
            keep_stderr(worker, bytes, (size_t)length);
        } else if (!worker->reason[0]) {
            if (append(&worker->memory, &worker->line, bytes, (size_t)length))
                receive_lines(worker);
            else
                end_worker(worker, "this program has no memory for its events");
        }
    }
}

/* --------------------------------------------------------------------------------------------- The end of a worker */

static void describe_exit(const lmwire_worker *worker, char *into, size_t size) {
    static const struct {
        int number;
        const char *name;
    } SIGNALS[] = {{SIGKILL, "SIGKILL, as the system does when memory runs out"},
                   {SIGSEGV, "SIGSEGV"},
                   {SIGBUS, "SIGBUS"},
                   {SIGABRT, "SIGABRT"},
                   {SIGILL, "SIGILL"},
                   {SIGTRAP, "SIGTRAP"},
                   {SIGTERM, "SIGTERM"},
                   {SIGFPE, "SIGFPE"}};
    static const struct {
        int code;
        const char *meaning;
    } CODES[] = {{64, ": wrong use of its command line"},
                 {70, ": a bug in the worker, or its engine died"},
                 {74, ": it takes its host for gone"},
                 {76, ": it speaks another protocol version"}};
    if (worker->stuck) {
        snprintf(into, size, "the system does not end its process %ld", (long)worker->pid);
    } else if (worker->no_status) {
        snprintf(into, size, "how is unknown, since this program ignores SIGCHLD or reaped it elsewhere");
    } else if (WIFSIGNALED(worker->status)) {
        snprintf(into, size, "signal %d", WTERMSIG(worker->status));
        for (size_t i = 0; i < sizeof SIGNALS / sizeof *SIGNALS; i++)
            if (SIGNALS[i].number == WTERMSIG(worker->status))
                snprintf(into, size, "signal %d (%s)", SIGNALS[i].number, SIGNALS[i].name);
    } else {
        snprintf(into, size, "exit code %d", WEXITSTATUS(worker->status));
        for (size_t i = 0; i < sizeof CODES / sizeof *CODES; i++)
            if (CODES[i].code == WEXITSTATUS(worker->status))
                snprintf(into, size, "exit code %d%s", CODES[i].code, CODES[i].meaning);
    }
}

/* Write why the worker is lost, with the last lines of its stderr. */
static void describe_loss(lmwire_worker *worker) {
    char how[256];
    describe_exit(worker, how, sizeof how);
    const char *reason = worker->reason[0] ? worker->reason : how;
    size_t from = worker->stderr_length, lines = 0;
    while (from > 0 && worker->stderr_length - from < 2048 && lines < 11)
        lines += worker->stderr_end[--from] == '\n' && from + 1 < worker->stderr_length;
    from += from < worker->stderr_length && lines && worker->stderr_end[from] == '\n';
    int written = worker->hello ? snprintf(worker->lost, sizeof worker->lost, "lmwire: the worker ended: %s", reason)
                                : snprintf(worker->lost, sizeof worker->lost,
                                           "lmwire: `%s` does not start as a worker: %s", worker->started, reason);
    if (worker->reason[0] || from >= worker->stderr_length)
        return;
    size_t at = (size_t)written;
    at += (size_t)snprintf(worker->lost + at, sizeof worker->lost - at, "; the end of its stderr:\n    ");
    for (; from < worker->stderr_length && at + 6 < sizeof worker->lost; from++) {
        char character = worker->stderr_end[from];
        if (character == '\n') {
            if (from + 1 < worker->stderr_length) {
                memcpy(worker->lost + at, "\n    ", 5);
                at += 5;
            }
        } else if (character != '\r' && character != 0) {
            worker->lost[at++] = character;
        }
    }
    worker->lost[at] = 0;
}

/* Fail the requests in flight and all later ones, once [H-9]. Half a line is discarded [H-6]. */
static void finish(lmwire_worker *worker) {
    if (worker->gone)
        return;
    describe_loss(worker);
    worker->gone = true;
    close_descriptor(&worker->in);
    close_descriptor(&worker->out);
    close_descriptor(&worker->err);
    close_descriptor(&worker->exit);
    worker->waiting.length = worker->written = worker->line.length = 0;
    for (lmwire_request *each = worker->requests, *next; each; each = next) {
        next = each->next;
        each->in_flight = false;
        end_request(each, LMWIRE_LOST, "worker_lost", worker->lost);
        free_if_over(each);
    }
}

/* Take the next step of [H-7]. */
static void take_step(lmwire_worker *worker) {
    const lmwire_options *options = &worker->options;
    switch (worker->step) {
    case QUIT_STEP: /* it ends a worker that could not read the line, and a program between, such as ssh */
        worker->step = EOF_STEP;
        worker->step_deadline = after(options->eof_ms);
        close_descriptor(&worker->in);
        break;
    case EOF_STEP:
        worker->step = TERM_STEP;
        worker->step_deadline = after(options->term_ms);
        signal_group(worker, SIGTERM);
        break;
    default:
        worker->step = KILL_STEP;
        worker->step_deadline = NEVER;
        kill_worker(worker);
    }
}

/* Do what is due. */
static void keep_time(lmwire_worker *worker) {
    if (worker->gone)
        return;
    look_at_process(worker);
    int64_t now = now_ms();
    if (worker->exited) {
        if ((worker->out < 0 && worker->err < 0) || now >= worker->drain_deadline)
            finish(worker);
    } else {
        if (now >= worker->start_deadline) {
            end_worker(worker, "it did not answer `hello` in %d ms", worker->start_ms);
            worker->start_deadline = NEVER;
        }
        if (now >= worker->exit_deadline) {
            kill_worker(worker);
            worker->exit_deadline = NEVER;
        }
        if (now >= worker->step_deadline)
            take_step(worker);
        if (now >= worker->kill_deadline) {
            worker->stuck = true;
            finish(worker);
        }
    }
    for (lmwire_request *each = worker->requests; each; each = each->next) /* its cancel is added at the end */
        if (now >= each->deadline)
            give_up(each, LMWIRE_TIMEOUT);
}

size_t lmwire_fds(const lmwire_worker *worker, struct pollfd fds[LMWIRE_MAX_FDS]) {
    if (!worker)
        return 0;
    bool writes = worker->written < worker->waiting.length;
    const int descriptors[LMWIRE_MAX_FDS] = {worker->out, worker->err, worker->exit, worker->wake[0],
                                             writes ? worker->in : -1};
    size_t count = 0;
    for (size_t i = 0; i < LMWIRE_MAX_FDS; i++) {
        if (descriptors[i] < 0)
            continue;
        fds[count].fd = descriptors[i];
        fds[count].events = i == 4 ? POLLOUT : POLLIN;
        fds[count++].revents = 0;
    }
    return count;
}

int lmwire_timeout_ms(const lmwire_worker *worker) {
    int64_t due = NEVER;
    if (!worker)
        return -1;
    if (!worker->gone) {
        const int64_t deadlines[] = {worker->start_deadline, worker->step_deadline, worker->exit_deadline,
                                     worker->drain_deadline, worker->kill_deadline};
        for (size_t i = 0; i < sizeof deadlines / sizeof *deadlines; i++)
            due = deadlines[i] < due ? deadlines[i] : due;
        if (worker->exit < 0 && !worker->exited && due > now_ms() + POLL_MS)
            due = now_ms() + POLL_MS;
    }
    for (const lmwire_request *each = worker->requests; each; each = each->next)
        due = each->deadline < due ? each->deadline : due;
    if (due == NEVER)
        return -1;
    int64_t left = due - now_ms();
    return left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

/* Wait for something to do, at most some milliseconds, and do it. */
static lmwire_result turn(lmwire_worker *worker, int milliseconds) {
    struct pollfd fds[LMWIRE_MAX_FDS];
    size_t count = lmwire_fds(worker, fds);
    int due = lmwire_timeout_ms(worker);
    if (milliseconds < 0 || (due >= 0 && due < milliseconds))
        milliseconds = due;
    if (poll(fds, (nfds_t)count, milliseconds) < 0 && errno != EINTR)
        return fail(worker, LMWIRE_SYSTEM, "lmwire: poll fails: %s", system_error(errno));
    for (size_t i = 0; i < count; i++) {
        if (!fds[i].revents)
            continue;
        if (fds[i].fd == worker->wake[0]) {
            char bytes[64];
            while (read(worker->wake[0], bytes, sizeof bytes) > 0)
                worker->woken = true;
        } else if (fds[i].fd == worker->out) {
            read_pipe(worker, &worker->out);
        } else if (fds[i].fd == worker->err) {
            read_pipe(worker, &worker->err);
        } else if (fds[i].fd == worker->in) {
            write_waiting(worker);
        }
    }
    keep_time(worker);
    if (!worker->woken)
        return LMWIRE_OK;
    worker->woken = false;
    return LMWIRE_WOKEN;
}

/* ------------------------------------------------------------------------------------------- Functions for workers */

const char *lmwire_strerror(lmwire_result result) {
    static const char *const WORDS[] = {"success",
                                        "call it again later",
                                        "no more events",
                                        "woken by lmwire_wake",
                                        "wrong call",
                                        "no memory",
                                        "a call of the system failed",
                                        "no worker found",
                                        "the worker does not start",
                                        "the command is not valid",
                                        "the worker lacks a feature",
                                        "the worker refused the request",
                                        "the worker is gone",
                                        "the request took too long",
                                        "the request's events were not read",
                                        "the process does not end"};
    return (size_t)result < sizeof WORDS / sizeof *WORDS ? WORDS[result] : "unknown result";
}

const char *lmwire_message(const lmwire_worker *worker) { return worker ? worker->message : "lmwire: no memory"; }

void lmwire_options_init(lmwire_options *options) {
    if (!options)
        return;
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
    options->host_watch = -1;
    options->start_ms = -1;
    options->quit_ms = 5000;
    options->eof_ms = 2000;
    options->term_ms = 3000;
    options->queue_bytes = (size_t)64 << 20;
}

static lmwire_result send_hello(lmwire_worker *worker) {
    char line[192], watched[48] = "";
    if (worker->ends_with_host)
        snprintf(watched, sizeof watched, ",\"host_pid\":%ld", (long)getpid());
    int length = snprintf(line, sizeof line, "{\"cmd\":\"hello\",\"protocol\":[1,1],\"client\":\"lmwire-c/%s\"%s}",
                          LMWIRE_VERSION, watched);
    return write_command(worker, line, (size_t)length, "hello", NULL);
}

lmwire_result lmwire_spawn(lmwire_worker **worker, const lmwire_options *options) {
    lmwire_options chosen;
    if (!worker)
        return LMWIRE_MISUSE;
    *worker = NULL;
    lmwire_options_init(&chosen);
    if (options && options->size) /* of an earlier version: the fields that it lacks keep their defaults */
        memcpy(&chosen, options, options->size < sizeof chosen ? options->size : sizeof chosen);
    memory of = {chosen.allocate ? chosen.allocate : allocate_plainly, chosen.user};
    lmwire_worker *made = take(&of, sizeof *made);
    if (!made)
        return LMWIRE_NOMEM;
    made->memory = of;
    made->options = chosen;
    made->in = made->out = made->err = made->exit = made->wake[0] = made->wake[1] = -1;
    made->step_deadline = made->exit_deadline = made->drain_deadline = made->kill_deadline = NEVER;
    made->gone = made->exited = true; /* until there is a process */
    snprintf(made->lost, sizeof made->lost, "lmwire: the worker was not started");
    *worker = made;
    place found;
    memset(&found, 0, sizeof found);
    lmwire_result result = find_worker(made, &found);
    char **environment = NULL;
    if (result == LMWIRE_OK && !(environment = make_environment(&of)))
        result = no_memory(made);
    if (result == LMWIRE_OK) {
        int error = make_pipe(made->wake) ? 0 : errno;
        if (!error) {
            set_nonblocking(made->wake[0]);
            set_nonblocking(made->wake[1]);
            error = start_process(made, &found, environment);
        }
        if (error)
            result = fail(made, LMWIRE_START, "lmwire: `%s` does not start as a worker: %s", made->started,
                          system_error(error));
    }
    if (result == LMWIRE_OK) {
        made->gone = made->exited = false;
        made->ends_with_host = found.ends_with_host;
        made->start_ms = found.start_ms;
        made->start_deadline = after(found.start_ms);
        result = send_hello(made);
        if (result != LMWIRE_OK)
            end_worker(made, "this program has no memory");
    }
    release(&of, environment);
    release(&of, (void *)found.command);
    release(&of, found.parsed);
    return result;
}

lmwire_result lmwire_start(lmwire_worker **worker, const lmwire_options *options) {
    lmwire_result result = lmwire_spawn(worker, options);
    while (result == LMWIRE_OK && lmwire_state(*worker) != LMWIRE_READY) {
        if ((*worker)->gone && (*worker)->hello && !(*worker)->reason[0])
            return LMWIRE_OK; /* it answered and ended: its requests say so, however late this thread looks */
        if ((*worker)->gone)
            return fail(*worker, LMWIRE_START, "%s", (*worker)->lost);
        result = turn(*worker, -1);
    }
    return result;
}

lmwire_state_kind lmwire_state(const lmwire_worker *worker) {
    return !worker || worker->gone                               ? LMWIRE_GONE
           : worker->exited || worker->step || worker->reason[0] ? LMWIRE_STOPPING
           : worker->hello                                       ? LMWIRE_READY
                                                                 : LMWIRE_STARTING;
}

const lmwire_value *lmwire_hello(const lmwire_worker *worker) { return worker ? worker->hello : NULL; }

pid_t lmwire_pid(const lmwire_worker *worker) { return worker ? worker->pid : 0; }

/* Return whether the worker lists one of the features, which spaces separate. */
static bool lists_one(const lmwire_worker *worker, const char *features) {
    const lmwire_value *listed = lmwire_get(worker->hello, "features");
    while (*features) {
        size_t length = strcspn(features, " ");
        for (const lmwire_value *each = lmwire_first(listed); each; each = lmwire_following(listed, each))
            if (each->length == length && memcmp(each->as.string, features, length) == 0)
                return true;
        features += length + (features[length] == ' ');
    }
    return false;
}

bool lmwire_has_feature(const lmwire_worker *worker, const char *feature) {
    return worker && worker->hello && feature && lists_one(worker, feature);
}

const char *lmwire_stderr(lmwire_worker *worker, size_t *length) {
    if (!worker)
        return "";
    size_t kept = worker->stderr_length < STDERR_BYTES ? worker->stderr_length : STDERR_BYTES;
    if (length)
        *length = kept;
    return worker->stderr_end + worker->stderr_length - kept;
}

lmwire_result lmwire_stop(lmwire_worker *worker, bool drain) {
    static const char QUIT[] = "{\"cmd\":\"quit\"}", DRAIN[] = "{\"cmd\":\"quit\",\"drain\":true}";
    if (!worker)
        return LMWIRE_MISUSE;
    if (worker->gone || worker->step >= QUIT_STEP || (drain && worker->step))
        return LMWIRE_OK;
    worker->step = drain ? DRAIN_STEP : QUIT_STEP;
    worker->step_deadline = drain ? NEVER : after(worker->options.quit_ms);
    (void)write_command(worker, drain ? DRAIN : QUIT, strlen(drain ? DRAIN : QUIT), "quit",
                        NULL); /* or the next step ends it */
    return LMWIRE_OK;
}

lmwire_result lmwire_close(lmwire_worker *worker) {
    lmwire_result result = lmwire_stop(worker, false);
    while (result == LMWIRE_OK && !worker->gone) {
        result = turn(worker, -1);
        if (result == LMWIRE_WOKEN)
            result = LMWIRE_OK; /* the time of the steps is short */
    }
    if (result == LMWIRE_OK && worker->stuck)
        result = fail(worker, LMWIRE_STUCK, "%s", worker->lost);
    return result;
}

void lmwire_free(lmwire_worker *worker) {
    if (!worker)
        return;
    if (!worker->gone) {
        end_worker(worker, "this program has freed it");
        while (!worker->gone && turn(worker, -1) != LMWIRE_SYSTEM)
            ;
    }
    worker->gone = true;
    for (lmwire_request *each = worker->requests, *next; each; each = next) {
        next = each->next;
        each->freed = true;
        each->in_flight = false;
        free_if_over(each);
    }
    close_descriptor(&worker->wake[0]);
    close_descriptor(&worker->wake[1]);
    memory of = worker->memory;
    release(&of, worker->hello);
    release(&of, worker->waiting.data);
    release(&of, worker->line.data);
    release(&of, worker);
}

lmwire_result lmwire_process(lmwire_worker *worker) { return worker ? turn(worker, 0) : LMWIRE_MISUSE; }

lmwire_request *lmwire_ready(lmwire_worker *worker) {
    for (lmwire_request *each = worker ? worker->requests : NULL; each; each = each->next) {
        if (each->first && !each->freed) {
            unlink_request(each);
            link_last(each);
            return each;
        }
    }
    return NULL;
}

void lmwire_wake(lmwire_worker *worker) {
    int error = errno;
    if (worker && worker->wake[1] >= 0)
        (void)!write(worker->wake[1], "", 1); /* a full pipe wakes too */
    errno = error;
}

/* ------------------------------------------------------------------------------------------ Functions for requests */

/* Check that the worker lists what a command uses. A host sends nothing else that is newer than protocol 1.0 [V-3]. */
static lmwire_result check_features(lmwire_worker *worker, const lmwire_value *command, const char *name) {
    char missing[512] = "";
    size_t at = 0;
    for (size_t i = 0; i < sizeof FEATURES / sizeof *FEATURES; i++) {
        const char *features = FEATURES[i].features;
        if (strcmp(FEATURES[i].command, name) != 0 || lists_one(worker, features) || strstr(missing, features) ||
            !uses(command, FEATURES[i].path, (field_part){FEATURES[i].part, FEATURES[i].when}))
            continue;
        if (at < sizeof missing)
            at += (size_t)snprintf(missing + at, sizeof missing - at, "%s%s", at ? ", " : "", features);
    }
    if (!at)
        return LMWIRE_OK;
    return fail(worker, LMWIRE_UNSUPPORTED,
                "lmwire: the worker (%s) does not serve %s: leave that out, or install lmwire %s",
                lmwire_string(lmwire_get(worker->hello, "worker"), NULL), missing, LMWIRE_VERSION);
}

lmwire_result lmwire_send(lmwire_worker *worker, const char *command, size_t length, lmwire_request **request) {
    bool out_of_memory;
    if (request)
        *request = NULL;
    if (!worker || !command)
        return LMWIRE_MISUSE;
    if (!worker->hello && !worker->gone && !worker->reason[0])
        return fail(worker, LMWIRE_MISUSE, "lmwire: the worker has not answered `hello` yet");
    lmwire_value *value = parse(&worker->memory, command, length, &out_of_memory);
    if (out_of_memory)
        return no_memory(worker);
    size_t name_length = 0;
    const char *name = lmwire_string(lmwire_get(value, "cmd"), &name_length);
    bool has_id = false;
    for (const lmwire_value *each = lmwire_first(value); each; each = lmwire_following(value, each))
        has_id = has_id || (each->name_length == 2 && memcmp(each->name, "id", 2) == 0);
    lmwire_result result = LMWIRE_OK;
    if (lmwire_type_of(value) != LMWIRE_OBJECT) {
        result = fail(worker, LMWIRE_INVALID, "lmwire: the command is not a JSON object, or nests deeper than 100");
    } else if (!name || name_length >= sizeof((lmwire_request *)0)->command || strlen(name) != name_length) {
        result = fail(worker, LMWIRE_INVALID, "lmwire: `cmd` must name a command");
    } else if (has_id) {
        result = fail(worker, LMWIRE_INVALID, "lmwire: `id`: leave it out, the library chooses it");
    } else if (strcmp(name, "quit") == 0 || strcmp(name, "hello") == 0) {
        result =
            fail(worker, LMWIRE_INVALID, "lmwire: `%s` is the library's own: use lmwire_stop and lmwire_hello", name);
    } else if (length > LINE_IN_BYTES - MAX_ID - 16) {
        result = fail(worker, LMWIRE_INVALID, "lmwire: the command is longer than 32 MiB");
    } else if (worker->waiting.length - worker->written > QUEUED_BYTES - length) {
        result =
            fail(worker, LMWIRE_AGAIN, "lmwire: 256 MiB of commands wait for the worker to read; send it again later");
    } else if (worker->hello) {
        result = check_features(worker, value, name);
    }
    if (result == LMWIRE_OK)
        result = write_command(worker, command, length, name, request);
    release(&worker->memory, value);
    return result;
}

lmwire_result lmwire_sendf(lmwire_worker *worker, lmwire_request **request, const char *format, ...) {
    va_list arguments;
    if (request)
        *request = NULL;
    if (!worker || !format)
        return LMWIRE_MISUSE;
    buffer command = {NULL, 0, 0};
    va_start(arguments, format);
    lmwire_result result = add_format(&worker->memory, &command, format, arguments);
    va_end(arguments);
    if (result == LMWIRE_OK)
        result = lmwire_send(worker, command.data ? command.data : "", command.length, request);
    else
        fail(worker, result, "lmwire: %s",
             result == LMWIRE_INVALID ? "a string is not UTF-8, or a number is not finite"
             : result == LMWIRE_NOMEM ? "no memory"
                                      : "the format has a letter that lmwire_sendf lacks");
    release(&worker->memory, command.data);
    return result;
}

lmwire_result lmwire_chat(lmwire_worker *worker, const char *message, lmwire_request **request) {
    return lmwire_sendf(worker, request, "{\"cmd\":\"chat\",\"messages\":[{\"role\":\"user\",\"content\":%s}]}",
                        message);
}

lmwire_result lmwire_generate(lmwire_worker *worker, const char *prompt, lmwire_request **request) {
    return lmwire_sendf(worker, request, "{\"cmd\":\"generate\",\"prompt\":%s}", prompt);
}

lmwire_result lmwire_embed(lmwire_worker *worker, const char *text, lmwire_request **request) {
    return lmwire_sendf(worker, request, "{\"cmd\":\"embed\",\"input\":[%s]}", text);
}

lmwire_result lmwire_load(lmwire_worker *worker, const char *path) {
    lmwire_request *request;
    lmwire_result result = lmwire_sendf(worker, &request, "{\"cmd\":\"load\",\"path\":%s}", path);
    if (result == LMWIRE_OK)
        result = lmwire_wait(request, -1);
    lmwire_request_free(request);
    return result;
}

lmwire_result lmwire_cancel(lmwire_request *request) {
    if (!request)
        return LMWIRE_MISUSE;
    return request->in_flight ? send_cancel(request->worker, request->id) : LMWIRE_OK;
}

void lmwire_set_timeout(lmwire_request *request, int milliseconds) {
    if (request && !request->ended)
        request->deadline = after(milliseconds);
}

lmwire_result lmwire_next(lmwire_request *request, int milliseconds, const lmwire_event **event) {
    if (!request || !event)
        return LMWIRE_MISUSE;
    *event = NULL;
    lmwire_worker *worker = request->worker;
    int64_t end = after(milliseconds);
    while (!request->first) {
        if (request->terminal)
            return LMWIRE_END;
        int64_t left = end == NEVER ? -1 : end - now_ms();
        bool last = end != NEVER && left <= 0;
        lmwire_result result = turn(worker, last ? 0 : left > INT_MAX ? INT_MAX : (int)left);
        if (result != LMWIRE_OK)
            return result;
        if (!request->first && last)
            return LMWIRE_AGAIN;
    }
    item *each = request->first;
    const lmwire_event *next = &each->event;
    if (next->kind == LMWIRE_TOKEN && next->channel == LMWIRE_CONTENT && next->choice == 0 &&
        !append(&worker->memory, &request->answer, next->text, next->text_length))
        return no_memory(worker);
    if (request->current && request->current != request->terminal)
        free_item(&worker->memory, request->current);
    request->current = each;
    request->first = each->next;
    if (!request->first)
        request->last = NULL;
    request->queued -= each->bytes < request->queued ? each->bytes : request->queued;
    if (next->kind == LMWIRE_DONE || next->kind == LMWIRE_ERROR)
        request->terminal = each;
    if (next->kind == LMWIRE_ERROR)
        fail(worker, next->result, next->json ? "lmwire: %s: %s" : "%s%s", next->json ? next->code : "", next->text);
    *event = next;
    return LMWIRE_OK;
}

lmwire_result lmwire_wait(lmwire_request *request, int milliseconds) {
    const lmwire_event *event;
    lmwire_result result;
    if (milliseconds >= 0)
        lmwire_set_timeout(request, milliseconds);
    while ((result = lmwire_next(request, -1, &event)) == LMWIRE_OK)
        ;
    return result == LMWIRE_END ? request->terminal->event.result : result;
}

const char *lmwire_answer(const lmwire_request *request, size_t *length) {
    if (length)
        *length = request ? request->answer.length : 0;
    return request && request->answer.data ? request->answer.data : "";
}

const lmwire_event *lmwire_terminal(const lmwire_request *request) {
    return request && request->terminal ? &request->terminal->event : NULL;
}

void lmwire_request_free(lmwire_request *request) {
    if (!request || request->freed)
        return;
    if (request->in_flight && !request->ended)
        (void)send_cancel(request->worker, request->id); /* without memory it runs on, and nobody reads its events */
    request->freed = true;
    request->deadline = NEVER;
    free_if_over(request);
}

void lmwire_set_user(lmwire_request *request, void *user) {
    if (request)
        request->user = user;
}

void *lmwire_user(const lmwire_request *request) { return request ? request->user : NULL; }

const char *lmwire_choice_reason(const lmwire_event *event, size_t choice) {
    if (!event)
        return NULL;
    const lmwire_value *choices = lmwire_get(event->json, "choices"), *each = lmwire_first(choices);
    if (!each)
        return event->finish_reason;
    while (each && choice--)
        each = lmwire_following(choices, each);
    return known_reason(lmwire_get(each, "finish_reason"));
}

/* ---------------------------------------------------------------------------------------------- Vectors and sounds */

/* Decode base64 in groups of `width` bytes, little-endian. Give each group that is below `capacity` to `store`. */
static size_t decode_groups(const lmwire_value *value, size_t width, size_t capacity,
                            void (*store)(void *into, size_t at, uint32_t bits), void *into) {
    size_t length, bytes = 0, groups = 0;
    const char *text = lmwire_string(value, &length);
    uint32_t bits = 0, group = 0;
    unsigned held = 0;
    for (size_t i = 0; i < length && text[i] != '='; i++) {
        char c = text[i];
        int digit = c >= 'A' && c <= 'Z'   ? c - 'A'
                    : c >= 'a' && c <= 'z' ? c - 'a' + 26
                    : c >= '0' && c <= '9' ? c - '0' + 52
                    : c == '+'             ? 62
                    : c == '/'             ? 63
                                           : -1;
        if (digit < 0)
            return 0;
        bits = bits << 6 | (uint32_t)digit;
        held += 6;
        if (held < 8)
            continue;
        held -= 8;
        group |= (bits >> held & 0xFF) << 8 * (bytes++ % width);
        if (bytes % width == 0) {
            if (groups < capacity)
                store(into, groups, group);
            groups++;
            group = 0;
        }
    }
    return groups;
}

static void store_float(void *into, size_t at, uint32_t bits) { memcpy((float *)into + at, &bits, sizeof bits); }

static void store_sample(void *into, size_t at, uint32_t bits) {
    ((int16_t *)into)[at] = (int16_t)(bits < 32768 ? (int32_t)bits : (int32_t)bits - 65536);
}

size_t lmwire_floats(const lmwire_event *event, float *numbers, size_t capacity) {
    const lmwire_value *vector = event ? lmwire_get(event->json, "embedding") : NULL;
    if (lmwire_type_of(vector) == LMWIRE_STRING)
        return decode_groups(vector, sizeof(float), numbers ? capacity : 0, store_float, numbers);
    size_t at = 0;
    for (const lmwire_value *each = lmwire_first(vector); each; each = lmwire_following(vector, each), at++)
        if (numbers && at < capacity)
            numbers[at] = (float)lmwire_number(each, 0);
    return at;
}

size_t lmwire_samples(const lmwire_event *event, int16_t *samples, size_t capacity) {
    const lmwire_value *audio = event ? lmwire_get(event->json, "audio") : NULL;
    return decode_groups(audio, sizeof(int16_t), samples ? capacity : 0, store_sample, samples);
}
