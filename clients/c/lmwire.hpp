/* lmwire.h for C++17: workers and requests that free themselves, and failures as exceptions. It adds nothing else. */
#ifndef LMWIRE_HPP
#define LMWIRE_HPP

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "lmwire.h"

namespace lmwire {

/* A failure, with the library's sentence. */
class Error : public std::runtime_error {
  public:
    Error(lmwire_result result, const char *message)
        : std::runtime_error(*message ? message : lmwire_strerror(result)), result(result) {}
    lmwire_result result;
};

/* The string of a JSON value, or an empty one. */
inline std::string_view text(const lmwire_value *value) {
    std::size_t length = 0;
    const char *string = lmwire_string(value, &length);
    return string ? std::string_view(string, length) : std::string_view();
}

/* Text as a JSON string, with its quotes, to build a command. */
inline std::string quote(std::string_view string) {
    lmwire_text made{};
    const lmwire_result result = lmwire_text_add(&made, "%.*s", static_cast<int>(string.size()), string.data());
    std::string quoted(made.data ? made.data : "", made.data ? made.length : 0);
    lmwire_text_free(&made);
    if (result != LMWIRE_OK)
        throw Error(result, "");
    return quoted;
}

/* A request. Its destructor cancels it if it still runs. It must end before its worker does. */
class Request {
  public:
    Request(lmwire_worker *worker, lmwire_request *request) : worker_(worker), request_(request) {}
    lmwire_request *get() const { return request_.get(); }

    /* Return the next event, or nullptr at the end. Throws if the request fails. */
    const lmwire_event *next() {
        const lmwire_event *event = nullptr;
        const lmwire_result result = lmwire_next(get(), -1, &event);
        if (result == LMWIRE_END)
            return nullptr;
        check(result);
        check(event->result);
        return event;
    }

    /* Read all events, and return the answer. */
    std::string answer(int milliseconds = -1) {
        check(lmwire_wait(get(), milliseconds));
        std::size_t length = 0;
        const char *data = lmwire_answer(get(), &length);
        return std::string(data, length);
    }

    void cancel() { check(lmwire_cancel(get())); }

  private:
    void check(lmwire_result result) const {
        if (result != LMWIRE_OK)
            throw Error(result, lmwire_message(worker_));
    }
    struct Free {
        void operator()(lmwire_request *request) const { lmwire_request_free(request); }
    };
    lmwire_worker *worker_;
    std::unique_ptr<lmwire_request, Free> request_;
};

/* A worker. Its destructor ends it by the steps of PROTOCOL.md. */
class Worker {
  public:
    explicit Worker(const lmwire_options *options = nullptr) {
        lmwire_worker *worker = nullptr;
        const lmwire_result result = lmwire_start(&worker, options);
        worker_.reset(worker);
        check(result);
    }
    lmwire_worker *get() const { return worker_.get(); }

    void load(const std::string &path) { check(lmwire_load(get(), path.c_str())); }

    /* Send a command, as JSON without `id`. */
    Request send(std::string_view command) {
        lmwire_request *request = nullptr;
        check(lmwire_send(get(), command.data(), command.size(), &request));
        return Request(get(), request);
    }

    Request chat(std::string_view message) {
        return send("{\"cmd\":\"chat\",\"messages\":[{\"role\":\"user\",\"content\":" + quote(message) + "}]}");
    }

  private:
    void check(lmwire_result result) const {
        if (result != LMWIRE_OK)
            throw Error(result, lmwire_message(get()));
    }
    struct Close {
        void operator()(lmwire_worker *worker) const {
            lmwire_close(worker);
            lmwire_free(worker);
        }
    };
    std::unique_ptr<lmwire_worker, Close> worker_;
};

} // namespace lmwire

#endif
