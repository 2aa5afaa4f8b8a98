/*
 * Answers a line of stdin with the built-in model. A test ships it beside a bundle.
 *
 * It first prints the worker's process id and version.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>

#include "lmwire.h"

/* Print the answer to a line. */
static lmwire_result answer(lmwire_worker *worker, const char *line) {
    lmwire_request *request;
    const lmwire_event *event;
    lmwire_result result = lmwire_chat(worker, line, &request);
    while (result == LMWIRE_OK && lmwire_next(request, -1, &event) == LMWIRE_OK)
        if (event->kind == LMWIRE_TOKEN)
            fwrite(event->text, 1, event->text_length, stdout);
    putchar('\n');
    return result == LMWIRE_OK ? lmwire_wait(request, -1) : result;
}

int main(void) {
    char line[1024];
    lmwire_worker *worker;
    lmwire_result result = lmwire_start(&worker, NULL);
    if (result == LMWIRE_OK)
        result = lmwire_load(worker, "builtin:tiny");
    if (result == LMWIRE_OK) {
        const char *version = lmwire_string(lmwire_get(lmwire_hello(worker), "worker"), NULL);
        printf("%ld %s\n", (long)lmwire_pid(worker), version);
        fflush(stdout);
        if (fgets(line, sizeof line, stdin)) {
            line[strcspn(line, "\n")] = 0;
            result = answer(worker, line);
        }
    }
    if (result != LMWIRE_OK)
        fprintf(stderr, "%s\n", lmwire_message(worker));
    lmwire_close(worker);
    lmwire_free(worker);
    return result != LMWIRE_OK;
}
