/*
 * Measures this library for `lmwire bench hosts`, which builds and starts it: bench_host STREAMS COMMAND...
 *
 * It starts the command as a worker. It prints the time to the first token, and then how many events come in how long.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lmwire.h"

static lmwire_worker *worker;

static void require(bool holds) {
    if (!holds) {
        fprintf(stderr, "bench_host: %s\n", worker ? lmwire_message(worker) : "wrong arguments");
        exit(1);
    }
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Return the time at which the first token of a request comes, and read the request to its end. */
static double first_token_at(void) {
    lmwire_request *request;
    const lmwire_event *event;
    double first = 0;
    require(lmwire_generate(worker, "first", &request) == LMWIRE_OK);
    while (lmwire_next(request, -1, &event) == LMWIRE_OK)
        if (event->kind == LMWIRE_TOKEN && first == 0)
            first = seconds_now();
    require(lmwire_wait(request, -1) == LMWIRE_OK);
    lmwire_request_free(request);
    return first;
}

/* Read the events that are there, and return the number of their tokens. */
static size_t read_ready(size_t *running) {
    size_t tokens = 0;
    const lmwire_event *event;
    for (lmwire_request *request; (request = lmwire_ready(worker));) {
        require(lmwire_next(request, 0, &event) == LMWIRE_OK && event->kind != LMWIRE_ERROR);
        if (event->kind == LMWIRE_TOKEN)
            tokens += lmwire_count(lmwire_get(event->json, "token_ids"));
        if (lmwire_terminal(request)) {
            lmwire_request_free(request);
            --*running;
        }
    }
    return tokens;
}

/* Read streams at the same time, and return the number of their tokens. */
static size_t burst(size_t streams) {
    size_t tokens = 0, running = streams;
    for (size_t i = 0; i < streams; i++) {
        lmwire_request *request;
        require(lmwire_generate(worker, "burst", &request) == LMWIRE_OK);
    }
    while (running) {
        struct pollfd fds[LMWIRE_MAX_FDS];
        poll(fds, (nfds_t)lmwire_fds(worker, fds), lmwire_timeout_ms(worker));
        require(lmwire_process(worker) == LMWIRE_OK);
        tokens += read_ready(&running);
    }
    return tokens;
}

int main(int count, char **arguments) {
    require(count > 2);
    lmwire_options options;
    lmwire_options_init(&options);
    options.command = (const char *const *)(arguments + 2);
    double started = seconds_now();
    lmwire_result result = lmwire_start(&worker, &options);
    require(result == LMWIRE_OK && lmwire_load(worker, "mock") == LMWIRE_OK);
    double first = first_token_at() - started, began = seconds_now();
    size_t events = burst((size_t)strtoul(arguments[1], NULL, 10));
    double seconds = seconds_now() - began;
    require(lmwire_close(worker) == LMWIRE_OK);
    lmwire_free(worker);
    printf("{\"first_token_ms\":%g,\"events\":%zu,\"seconds\":%g}\n", first * 1e3, events, seconds);
    return 0;
}
