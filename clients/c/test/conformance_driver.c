/*
 * The driver of this library for `lmwire conformance host`; HOSTS.md of the kit specifies it. One loop polls its own stdin
 * and the worker, as a program with a loop of its own does. With --events it also prints each event as the library's user
 * gets it, for the test that compares the clients.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lmwire.h"
#include "print_value.h"

/* A request that runs. */
typedef struct entry {
    struct entry *next;
    lmwire_request *request;
    char name[256];
} entry;

static lmwire_worker *worker;
static entry *running;
static bool with_events;

static void require(bool holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "conformance_driver: %s\n", what);
        exit(1);
    }
}

/* Print a report. */
static void print(lmwire_text *report) {
    lmwire_text_add(report, "}\n");
    require(report->failure == LMWIRE_OK, "a report cannot be written");
    fwrite(report->data, 1, report->length, stdout);
    fflush(stdout);
    lmwire_text_free(report);
}

static void print_plain(const char *saw) {
    lmwire_text report = {0};
    lmwire_text_add(&report, "{\"saw\":%s", saw);
    print(&report);
}

static lmwire_text begin(const char *saw, const char *name) {
    lmwire_text report = {0};
    lmwire_text_add(&report, "{\"saw\":%s,\"name\":%s", saw, name);
    return report;
}

/* Add the members of a log-probability that MODELS.md lists. */
static void add_logprobs(lmwire_text *report, const lmwire_value *list) {
    const char *before = "[";
    for (const lmwire_value *each = lmwire_first(list); each; each = lmwire_following(list, each)) {
        const lmwire_value *bytes = lmwire_get(each, "bytes"), *top = lmwire_get(each, "top");
        size_t length;
        const char *token = lmwire_string(lmwire_get(each, "token"), &length);
        lmwire_text_add(report, strcmp(before, "[") == 0 ? "[" : ",");
        lmwire_text_add(report, "{\"token_id\":%lld,\"token\":%.*s",
                        (long long)lmwire_integer(lmwire_get(each, "token_id"), 0), (int)length, token);
        if (lmwire_get(each, "logprob"))
            lmwire_text_add(report, ",\"logprob\":%g", lmwire_number(lmwire_get(each, "logprob"), 0));
        if (lmwire_get(each, "text"))
            lmwire_text_add(report, ",\"text\":%s", lmwire_string(lmwire_get(each, "text"), NULL));
        if (bytes) {
            lmwire_text_add(report, ",\"bytes\":[");
            for (const lmwire_value *byte = lmwire_first(bytes); byte; byte = lmwire_following(bytes, byte)) {
                if (byte != lmwire_first(bytes))
                    lmwire_text_add(report, ",");
                lmwire_text_add(report, "%lld", (long long)lmwire_integer(byte, 0));
            }
            lmwire_text_add(report, "]");
        }
        if (top) {
            lmwire_text_add(report, ",\"top\":");
            add_logprobs(report, top);
        }
        lmwire_text_add(report, "}");
        before = ",";
    }
    lmwire_text_add(report, lmwire_count(list) ? "]" : "[]");
}

/* Add an object, with another finish reason in the place of its own. */
static void add_with_reason(lmwire_text *report, const lmwire_event *event, const lmwire_value *object,
                            const char *reason) {
    const char *before = "{";
    for (const lmwire_value *each = lmwire_first(object); each; each = lmwire_following(object, each)) {
        const char *name = lmwire_name(each, NULL);
        size_t choice = 0;
        lmwire_text_add(report, strcmp(before, "{") == 0 ? "{%s:" : ",%s:", name);
        if (strcmp(name, "finish_reason") == 0 && reason)
            lmwire_text_add(report, "%s", reason);
        else if (object == event->json && strcmp(name, "choices") == 0 && lmwire_count(each)) {
            for (const lmwire_value *part = lmwire_first(each); part; part = lmwire_following(each, part), choice++) {
                lmwire_text_add(report, choice ? "," : "[");
                add_with_reason(report, event, part, lmwire_choice_reason(event, choice));
            }
            lmwire_text_add(report, "]");
        } else
            print_value(report, each);
        before = ",";
    }
    lmwire_text_add(report, "}");
}

/* Print an event as it came, but for finish reasons of a later version. */
static void print_event(const char *name, const lmwire_event *event) {
    static const char *const KINDS[] = {"token",   "tool_call", NULL,   "progress", "embedding",
                                        "segment", "audio",     "done", "error"};
    if (!event->json || !KINDS[event->kind])
        return;
    lmwire_text report = begin("event", name);
    lmwire_text_add(&report, ",\"kind\":%s,\"event\":", KINDS[event->kind]);
    add_with_reason(&report, event, event->json, event->finish_reason);
    print(&report);
}

/* Report the numbers of a part of a vector, or of a speech. */
static void report_values(const char *name, const lmwire_event *event) {
    static float numbers[2048];
    static int16_t samples[16384];
    bool is_vector = event->kind == LMWIRE_EMBEDDING;
    size_t count = is_vector ? lmwire_floats(event, numbers, 2048) : lmwire_samples(event, samples, 16384);
    lmwire_text report = begin(is_vector ? "vector" : "samples", name);
    if (is_vector)
        lmwire_text_add(&report, ",\"index\":%lld", (long long)lmwire_integer(lmwire_get(event->json, "index"), 0));
    lmwire_text_add(&report, ",\"values\":[");
    for (size_t i = 0; i < count; i++) {
        lmwire_text_add(&report, i ? "," : "");
        if (is_vector)
            lmwire_text_add(&report, "%g", (double)numbers[i]);
        else
            lmwire_text_add(&report, "%d", samples[i]);
    }
    lmwire_text_add(&report, "]");
    print(&report);
}

static void report_event(const char *name, const lmwire_event *event) {
    lmwire_text report = {0};
    if (with_events)
        print_event(name, event);
    switch (event->kind) {
    case LMWIRE_TOKEN:
        if (event->channel == LMWIRE_OTHER)
            return;
        report = begin("text", name);
        lmwire_text_add(&report, ",\"text\":%.*s,\"choice\":%lld,\"channel\":%s", (int)event->text_length, event->text,
                        (long long)event->choice, event->channel == LMWIRE_REASONING ? "reasoning" : "content");
        if (lmwire_get(event->json, "logprobs")) {
            lmwire_text_add(&report, ",\"logprobs\":");
            add_logprobs(&report, lmwire_get(event->json, "logprobs"));
        }
        break;
    case LMWIRE_EMBEDDING:
    case LMWIRE_AUDIO: report_values(name, event); return;
    case LMWIRE_SEGMENT:
        report = begin("text", name);
        lmwire_text_add(&report, ",\"text\":%.*s", (int)event->text_length, event->text);
        break;
    case LMWIRE_TOOL_CALL:
        report = begin("tool_call", name);
        lmwire_text_add(&report, ",\"choice\":%lld,\"call\":{\"id\":%s,\"name\":%s,\"arguments\":%.*s}",
                        (long long)event->choice, event->call_id, event->name, (int)event->text_length, event->text);
        break;
    case LMWIRE_DONE:
        report = begin("done", name);
        if (event->finish_reason)
            lmwire_text_add(&report, ",\"finish_reason\":%s", event->finish_reason);
        for (size_t i = 0, count = lmwire_count(lmwire_get(event->json, "choices")); i < count; i++) {
            lmwire_text_add(&report, i ? "," : ",\"choices\":[");
            lmwire_text_add(&report, i + 1 < count ? "%s" : "%s]", lmwire_choice_reason(event, i));
        }
        break;
    case LMWIRE_ERROR:
        fprintf(stderr, "%s\n", event->text);
        report = begin("failed", name);
        lmwire_text_add(&report, ",\"code\":%s", event->code);
        if (event->json)
            lmwire_text_add(&report, event->retryable ? ",\"retryable\":true" : ",\"retryable\":false");
        break;
    default: return;
    }
    print(&report);
}

/* Report what has come. */
static void report_events(void) {
    lmwire_request *request;
    const lmwire_event *event;
    while ((request = lmwire_ready(worker))) {
        require(lmwire_next(request, 0, &event) == LMWIRE_OK, "a request that is ready has no event");
        entry *ended = lmwire_user(request);
        report_event(ended->name, event);
        if (lmwire_terminal(request)) {
            entry **link = &running;
            while (*link != ended)
                link = &(*link)->next;
            *link = ended->next;
            free(ended);
            lmwire_request_free(request);
        }
    }
}

static void start(const lmwire_value *instruction) {
    lmwire_options options;
    lmwire_options_init(&options);
    lmwire_value *command = lmwire_parse(getenv("LMWIRE_WORKER_COMMAND"), strlen(getenv("LMWIRE_WORKER_COMMAND")));
    const char **arguments = calloc(lmwire_count(command) + 1, sizeof *arguments);
    require(arguments && lmwire_count(command), "LMWIRE_WORKER_COMMAND is not a list");
    size_t count = 0;
    for (const lmwire_value *each = lmwire_first(command); each; each = lmwire_following(command, each))
        arguments[count++] = lmwire_string(each, NULL);
    options.command = arguments;
    options.quit_ms = options.eof_ms = options.term_ms = 1000;
    if (lmwire_get(instruction, "timeout"))
        options.start_ms = (int)(lmwire_number(lmwire_get(instruction, "timeout"), 0) * 1000);
    lmwire_result result = lmwire_start(&worker, &options);
    if (result != LMWIRE_OK)
        fprintf(stderr, "%s\n", lmwire_message(worker));
    print_plain(result == LMWIRE_OK ? "started" : "start_failed");
    free(arguments);
    lmwire_value_free(command);
}

static void request_it(const lmwire_value *instruction, const char *line, size_t length) {
    const char *name = lmwire_string(lmwire_get(instruction, "name"), NULL);
    lmwire_request *request;
    /* The command as it was written: the object that begins after its name. */
    const char *command = strstr(line, "\"command\":");
    require(command != NULL, "no command");
    command = strchr(command, '{');
    size_t left = length - (size_t)(command - line), depth = 0, end = 0;
    for (bool quoted = false; end < left; end++) {
        if (command[end] == '"')
            quoted = !quoted;
        else if (quoted)
            end += command[end] == '\\';
        else if (command[end] == '{')
            depth++;
        else if (command[end] == '}' && --depth == 0)
            break;
    }
    lmwire_result result = lmwire_send(worker, command, end + 1, &request);
    if (result != LMWIRE_OK) {
        fprintf(stderr, "%s\n", lmwire_message(worker));
        lmwire_text report = begin("failed", name);
        lmwire_text_add(&report, ",\"code\":%s", result == LMWIRE_UNSUPPORTED ? "unsupported" : "worker_lost");
        print(&report);
        return;
    }
    entry *made = calloc(1, sizeof *made);
    require(made != NULL, "no memory");
    snprintf(made->name, sizeof made->name, "%s", name);
    made->request = request;
    made->next = running;
    running = made;
    lmwire_set_user(request, made);
    if (lmwire_get(instruction, "timeout"))
        lmwire_set_timeout(request, (int)(lmwire_number(lmwire_get(instruction, "timeout"), 0) * 1000));
}

static void cancel(const char *name) {
    for (entry *each = running; each; each = each->next)
        if (strcmp(each->name, name) == 0)
            lmwire_cancel(each->request);
}

static void close_worker(bool drain) {
    if (worker && drain)
        lmwire_stop(worker, true);
    while (worker && drain && running) {
        struct pollfd fds[LMWIRE_MAX_FDS];
        poll(fds, (nfds_t)lmwire_fds(worker, fds), lmwire_timeout_ms(worker));
        lmwire_process(worker);
        report_events();
    }
    if (worker && lmwire_close(worker) != LMWIRE_OK)
        fprintf(stderr, "%s\n", lmwire_message(worker));
    report_events();
    lmwire_free(worker);
    worker = NULL;
    print_plain("closed");
}

static void run(const char *line, size_t length) {
    lmwire_value *instruction = lmwire_parse(line, length);
    const char *what = lmwire_string(lmwire_get(instruction, "do"), NULL);
    require(what != NULL, "an instruction is not an object with `do`");
    if (strcmp(what, "start") == 0)
        start(instruction);
    else if (strcmp(what, "request") == 0)
        request_it(instruction, line, length);
    else if (strcmp(what, "cancel") == 0)
        cancel(lmwire_string(lmwire_get(instruction, "name"), NULL));
    else if (strcmp(what, "close") == 0)
        close_worker(lmwire_boolean(lmwire_get(instruction, "drain"), false));
    else
        require(false, "unknown instruction");
    lmwire_value_free(instruction);
}

int main(int argument_count, char **arguments) {
    with_events = argument_count > 1 && strcmp(arguments[1], "--events") == 0;
    size_t capacity = 1 << 26, length = 0;
    char *input = malloc(capacity);
    require(input != NULL, "no memory");
    for (;;) {
        struct pollfd fds[LMWIRE_MAX_FDS + 1];
        size_t count = lmwire_fds(worker, fds);
        fds[count].fd = STDIN_FILENO;
        fds[count].events = POLLIN;
        poll(fds, (nfds_t)(count + 1), lmwire_timeout_ms(worker));
        if (worker) {
            lmwire_process(worker);
            report_events();
        }
        if (!fds[count].revents)
            continue;
        ssize_t read_bytes = read(STDIN_FILENO, input + length, capacity - length - 1);
        if (read_bytes <= 0)
            break;
        length += (size_t)read_bytes;
        char *newline;
        while ((newline = memchr(input, '\n', length))) {
            *newline = 0;
            run(input, (size_t)(newline - input));
            length -= (size_t)(newline + 1 - input);
            memmove(input, newline + 1, length);
        }
        if (worker)
            report_events();
    }
    free(input);
    return 0;
}
