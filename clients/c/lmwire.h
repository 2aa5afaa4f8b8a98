/*
 * lmwire.h: run an MLX language model as a child process, and stream its answers.
 *
 * A host library for the lmwire protocol, version 1, in C11 and POSIX. Compile lmwire.c with your program.
 *
 *   lmwire_worker *worker;
 *   if (lmwire_start(&worker, NULL) == LMWIRE_OK && lmwire_load(worker, "builtin:tiny") == LMWIRE_OK) {
 *       lmwire_request *request;
 *       const lmwire_event *event;
 *       lmwire_chat(worker, "Who are you?", &request);
 *       while (lmwire_next(request, -1, &event) == LMWIRE_OK)
 *           fwrite(event->text, 1, event->text_length, stdout);
 *   }
 *   fputs(lmwire_message(worker), stderr);
 *   lmwire_free(worker);
 *
 * Threads. There are no global variables. One thread at a time may use a worker, its requests and their events; two
 * threads may use two workers. Only lmwire_wake may be called while another thread uses the worker. Functions without a
 * worker may be called in any thread.
 *
 * Blocking. Only lmwire_start, lmwire_load, lmwire_next, lmwire_wait, lmwire_close and lmwire_free wait. A program with
 * a loop of its own uses lmwire_spawn, lmwire_fds, lmwire_timeout_ms, lmwire_process and lmwire_stop instead. Nothing is
 * read while no function runs: a worker whose pipes are full waits.
 *
 * Text is UTF-8 and has a length, because it may contain U+0000. A NUL follows it, which the length does not count.
 * Times are milliseconds; a negative one is no limit.
 */
#ifndef LMWIRE_H
#define LMWIRE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LMWIRE_VERSION "0.2.0"

#if defined(__GNUC__)
#define LMWIRE_PRINTF(string, first) __attribute__((format(printf, string, first)))
#else
#define LMWIRE_PRINTF(string, first)
#endif

typedef struct lmwire_worker lmwire_worker;   /* A worker's process, and the session with it. */
typedef struct lmwire_request lmwire_request; /* A command that was sent, and its events. */
typedef struct lmwire_value lmwire_value;     /* A JSON value. */

/* --------------------------------------------------------------------------------------------------------- Results */

/* What a function returns. A later version may add some. lmwire_message has a sentence about the last failure. */
typedef enum lmwire_result {
    LMWIRE_OK = 0,
    LMWIRE_AGAIN,       /* Nothing has come yet; or too much waits to be sent. Call it again later. */
    LMWIRE_END,         /* The request has ended, and all its events were read. */
    LMWIRE_WOKEN,       /* lmwire_wake was called. */
    LMWIRE_MISUSE,      /* The call is wrong: `hello` is not answered yet, an argument is NULL, a format is bad. */
    LMWIRE_NOMEM,       /* No memory. Nothing was sent. */
    LMWIRE_SYSTEM,      /* A call of the system failed. */
    LMWIRE_NOT_FOUND,   /* This machine has no worker. */
    LMWIRE_START,       /* The worker does not start, or does not fit. */
    LMWIRE_INVALID,     /* The command is not a JSON object with `cmd`, or is too long. Nothing was sent. */
    LMWIRE_UNSUPPORTED, /* The worker lacks a feature that the command needs. Nothing was sent. */
    LMWIRE_FAILED,      /* The worker refused the request, or failed on it. The worker goes on. */
    LMWIRE_LOST,        /* The worker is gone. Text that came before is valid. */
    LMWIRE_TIMEOUT,     /* The request was given up, and cancelled. */
    LMWIRE_SLOW,        /* More events of the request waited to be read than `queue_bytes`. It was cancelled. */
    LMWIRE_STUCK        /* The system does not end the worker's process. */
} lmwire_result;

/* Return a few words about a result. */
const char *lmwire_strerror(lmwire_result result);

/* Return a sentence about the worker's last failure, or an empty text. It is valid until the next call. */
const char *lmwire_message(const lmwire_worker *worker);

/* --------------------------------------------------------------------------------------------------------- Workers */

/* Settings of a worker. lmwire_options_init sets the defaults; a later version may add fields at the end. */
typedef struct lmwire_options {
    size_t size;                     /* Of this structure. Set by lmwire_options_init. */
    const char *const *command;      /* The program and its arguments, then NULL. NULL: find one, see docs/hosts.md. */
    const char *const *arguments;    /* More arguments for the worker, then NULL; or NULL. */
    bool uvx;                        /* Run the package with uvx if no worker is found. Read docs/hosts.md first. */
    int host_watch;                  /* 1: the worker ends with this process; 0: not; -1: unless `command` is given. */
    int start_ms;                    /* Longest time until the reply to `hello`. -1: 30 s, or 10 minutes with uvx. */
    int quit_ms, eof_ms, term_ms;    /* Longest time of the steps of a shutdown: 5, 2 and 3 s. SIGKILL follows. */
    size_t queue_bytes;              /* Bytes of one request's events that may wait to be read: 64 MiB. */
    void *(*allocate)(void *user, void *memory, size_t size); /* realloc, which frees for size 0. NULL: that of C. */
    void (*on_stderr)(void *user, const char *line, size_t length); /* Called with each line of stderr, or NULL. */
    void *user;                      /* The first argument of both functions. They must not use the worker. */
} lmwire_options;

void lmwire_options_init(lmwire_options *options);

/*
 * Start a worker, and wait until it has answered `hello`. With NULL for `options` the defaults hold.
 *
 * `*worker` is set even if the start fails, so that lmwire_message says why: free it. NULL only with LMWIRE_NOMEM.
 * LMWIRE_WOKEN: it is still starting, and lmwire_process goes on.
 */
lmwire_result lmwire_start(lmwire_worker **worker, const lmwire_options *options);

/* Start a worker without waiting. Commands may be sent once lmwire_state is LMWIRE_READY. */
lmwire_result lmwire_spawn(lmwire_worker **worker, const lmwire_options *options);

typedef enum lmwire_state_kind {
    LMWIRE_STARTING, /* `hello` is not answered yet. */
    LMWIRE_READY,    /* The worker takes commands. */
    LMWIRE_STOPPING, /* It is being ended, or its end was noticed and the rest of its output is read. */
    LMWIRE_GONE      /* The process has ended, or is stuck. All requests have their terminals. */
} lmwire_state_kind;

lmwire_state_kind lmwire_state(const lmwire_worker *worker);

/* Return the `done` of `hello`, or NULL before it. */
const lmwire_value *lmwire_hello(const lmwire_worker *worker);

/* Return whether the worker lists a feature, such as "chat.tools". */
bool lmwire_has_feature(const lmwire_worker *worker, const char *feature);

/* Return the id of the process that was started: the worker, or a program that leads to it. */
pid_t lmwire_pid(const lmwire_worker *worker);

/* Return the end of the worker's stderr, at most 8 KiB. It is valid until the next call that reads from the worker. */
const char *lmwire_stderr(lmwire_worker *worker, size_t *length);

/*
 * Begin to end the worker by the steps of PROTOCOL.md, without waiting: `quit`, the end of stdin, SIGTERM, SIGKILL. The
 * running requests are cancelled, and end with what they have. With `drain` they run to their end first; a second call
 * without it ends that. lmwire_process takes the steps.
 */
lmwire_result lmwire_stop(lmwire_worker *worker, bool drain);

/* End the worker as lmwire_stop does, and wait until it is gone. The events of requests can still be read. */
lmwire_result lmwire_close(lmwire_worker *worker);

/* Free the worker and all its requests. A worker that still runs is killed. NULL is allowed. */
void lmwire_free(lmwire_worker *worker);

/* ----------------------------------------------------------------------------------------------------------- Loops */

enum { LMWIRE_MAX_FDS = 5 };

/*
 * Set the descriptors to poll, at most LMWIRE_MAX_FDS, with their `events`, and return their number. They can change
 * with each call of another function. One may be ready when there is nothing to do.
 */
size_t lmwire_fds(const lmwire_worker *worker, struct pollfd fds[LMWIRE_MAX_FDS]);

/* Return the milliseconds after which lmwire_process must be called although no descriptor is ready, or -1. */
int lmwire_timeout_ms(const lmwire_worker *worker);

/* Read, write, and do what is due, without waiting. Call it when a descriptor is ready, or the time is over. */
lmwire_result lmwire_process(lmwire_worker *worker);

/* Return a request with an event to read, or NULL. Requests take turns. */
lmwire_request *lmwire_ready(lmwire_worker *worker);

/* Wake the thread that waits for the worker; its function returns LMWIRE_WOKEN. For any thread and signal handler. */
void lmwire_wake(lmwire_worker *worker);

/* -------------------------------------------------------------------------------------------------------- Requests */

/*
 * Send a command: one JSON object with `cmd` and its fields, and without `id`. Everything that PROTOCOL.md has can be
 * sent. The command is checked: that it is JSON, and that the worker lists the features that its fields need.
 *
 * It does not wait: what the pipe does not take follows when lmwire_process runs. If `request` is NULL, nobody reads
 * the answer. A command to a worker that is gone succeeds, and its request has failed with LMWIRE_LOST.
 */
lmwire_result lmwire_send(lmwire_worker *worker, const char *command, size_t length, lmwire_request **request);

/* Send a command that a format makes; see lmwire_text_add. */
lmwire_result lmwire_sendf(lmwire_worker *worker, lmwire_request **request, const char *format, ...)
    LMWIRE_PRINTF(3, 4);

/* Send one message of a user, or a prompt without a template, with the model's defaults. */
lmwire_result lmwire_chat(lmwire_worker *worker, const char *message, lmwire_request **request);
lmwire_result lmwire_generate(lmwire_worker *worker, const char *prompt, lmwire_request **request);

/* Send `embed` for one text, whose vector comes in events of LMWIRE_EMBEDDING. */
lmwire_result lmwire_embed(lmwire_worker *worker, const char *text, lmwire_request **request);

/* Load a model: a folder, a hub id or an alias. It waits until the model is loaded, which can take minutes. */
lmwire_result lmwire_load(lmwire_worker *worker, const char *path);

/* Ask the worker to end a request. The events so far still come, and then its terminal. */
lmwire_result lmwire_cancel(lmwire_request *request);

/* Give a request up after some time: it then ends with LMWIRE_TIMEOUT, and the worker gets a `cancel`. */
void lmwire_set_timeout(lmwire_request *request, int milliseconds);

/*
 * Get the next event, and wait for it at most some milliseconds; 0 does not wait. It is valid until the next call for
 * the request; the last one is valid as long as the request.
 *
 * LMWIRE_OK: `*event` is set. The last one is LMWIRE_DONE or LMWIRE_ERROR.
 * LMWIRE_AGAIN, LMWIRE_WOKEN: nothing has come yet. The request goes on.
 * LMWIRE_END: there are no more.
 */
typedef struct lmwire_event lmwire_event;
lmwire_result lmwire_next(lmwire_request *request, int milliseconds, const lmwire_event **event);

/*
 * Read all events, and return how the request ended: LMWIRE_OK, LMWIRE_FAILED, LMWIRE_LOST, LMWIRE_TIMEOUT or
 * LMWIRE_SLOW. LMWIRE_WOKEN: it goes on. After some milliseconds it is given up, as with lmwire_set_timeout.
 */
lmwire_result lmwire_wait(lmwire_request *request, int milliseconds);

/* Return the first choice's text as far as its events were read. It is valid until the next call for the request. */
const char *lmwire_answer(const lmwire_request *request, size_t *length);

/* Return the last event once it was read, or NULL. */
const lmwire_event *lmwire_terminal(const lmwire_request *request);

/* Free a request. One that still runs is cancelled. NULL is allowed. */
void lmwire_request_free(lmwire_request *request);

/* Keep a pointer of yours with a request. */
void lmwire_set_user(lmwire_request *request, void *user);
void *lmwire_user(const lmwire_request *request);

/* ---------------------------------------------------------------------------------------------------------- Events */

typedef enum lmwire_event_kind {
    LMWIRE_TOKEN,          /* `text`, of a choice and a channel. */
    LMWIRE_TOOL_CALL_PART, /* A part of a call, as it comes. */
    LMWIRE_TOOL_CALL,      /* A whole call: `call_id`, `name`, and its arguments as JSON in `text`. */
    LMWIRE_PROGRESS,
    LMWIRE_EMBEDDING,      /* See lmwire_floats. */
    LMWIRE_SEGMENT,        /* `text`, of a transcript. */
    LMWIRE_AUDIO,          /* See lmwire_samples. */
    LMWIRE_DONE,
    LMWIRE_ERROR
} lmwire_event_kind;

typedef enum lmwire_channel {
    LMWIRE_CONTENT,
    LMWIRE_REASONING, /* What a reasoning model writes before its answer. */
    LMWIRE_OTHER      /* Of a later version: not part of the answer. */
} lmwire_channel;

/* An event. The library makes it; a later version may add fields at the end and kinds. */
struct lmwire_event {
    lmwire_event_kind kind;
    const lmwire_value *json; /* The whole event, for its other members. NULL if the library made it. */
    const char *text;         /* For an error its sentence. Never NULL. */
    size_t text_length;
    int64_t choice;           /* Number of the answer, with `n` above 1. */
    lmwire_channel channel;
    const char *call_id, *name;
    const char *finish_reason; /* Of `done`: one of the protocol's, "other" for a later version's, or NULL. */
    const char *code;          /* Of an error: the worker's, or "worker_lost", "timeout", "slow_consumer". */
    bool retryable;            /* Of an error: whether the same request can succeed later. */
    lmwire_result result;      /* Of the last event: what lmwire_wait returns. */
};

/* Return why a choice of `done` ended, with `n` above 1; otherwise `finish_reason`. */
const char *lmwire_choice_reason(const lmwire_event *event, size_t choice);

/* Copy the numbers of LMWIRE_EMBEDDING, at most `capacity`, and return how many the event has. */
size_t lmwire_floats(const lmwire_event *event, float *numbers, size_t capacity);

/* Copy the samples of LMWIRE_AUDIO, at most `capacity`, and return how many the event has. */
size_t lmwire_samples(const lmwire_event *event, int16_t *samples, size_t capacity);

/* ------------------------------------------------------------------------------------------------------------ JSON */

typedef enum lmwire_type {
    LMWIRE_NULL, LMWIRE_BOOLEAN, LMWIRE_INTEGER, LMWIRE_NUMBER, LMWIRE_STRING, LMWIRE_LIST, LMWIRE_OBJECT
} lmwire_type;

/* Every function takes NULL for a value, and treats it as null. */
lmwire_type lmwire_type_of(const lmwire_value *value);

/* Return the value at a path of member names, such as "usage.prompt_tokens", or NULL if it is absent or null. */
const lmwire_value *lmwire_get(const lmwire_value *value, const char *path);

/* Return a string, or NULL. `length` may be NULL. */
const char *lmwire_string(const lmwire_value *value, size_t *length);

/* Return the value if it is of the type, and else `otherwise`. */
int64_t lmwire_integer(const lmwire_value *value, int64_t otherwise);
double lmwire_number(const lmwire_value *value, double otherwise);
bool lmwire_boolean(const lmwire_value *value, bool otherwise);

/* Walk through a list or an object. Of several members with one name, lmwire_get finds the last. */
size_t lmwire_count(const lmwire_value *value);
const lmwire_value *lmwire_first(const lmwire_value *value);
const lmwire_value *lmwire_following(const lmwire_value *list, const lmwire_value *item);
const char *lmwire_name(const lmwire_value *member, size_t *length);

/* Parse one JSON value. Return NULL if the text is not JSON as PROTOCOL.md allows it. Free the result. */
lmwire_value *lmwire_parse(const char *text, size_t length);
void lmwire_value_free(lmwire_value *value);

/* Text that grows. Begin with {0}. `data` is NULL until something was added, and then ends in a NUL. */
typedef struct lmwire_text {
    char *data;
    size_t length, capacity;
    lmwire_result failure; /* LMWIRE_OK, or the first failure: the text is then incomplete. */
} lmwire_text;

/*
 * Add JSON to a text, which you may cut with a smaller `length`. Its letters are those of printf, and each makes a whole
 * JSON value: `%s` a string with quotes and escapes, `%.*s` one with an int for its length that may contain U+0000, `%d`,
 * `%lld` and `%zu` an integer, `%g` a number in every locale, `%%` a percent sign. There are no others. NULL for `%s`
 * makes null.
 */
lmwire_result lmwire_text_add(lmwire_text *text, const char *format, ...) LMWIRE_PRINTF(2, 3);
void lmwire_text_free(lmwire_text *text);

#ifdef __cplusplus
}
#endif

#endif
