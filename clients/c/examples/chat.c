/*
 * A conversation on the terminal: each line of stdin is a message. Ctrl-C ends an answer, and the end of input the program.
 *
 *   cc -I.. chat.c ../lmwire.c -o chat && ./chat [MODEL]
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lmwire.h"

static lmwire_worker *worker;

static void on_interrupt(int number) {
    (void)number;
    lmwire_wake(worker); /* allowed in a signal handler; lmwire_next then returns LMWIRE_WOKEN */
}

/* Print an answer while it comes. */
static lmwire_result stream(lmwire_request *request) {
    const lmwire_event *event;
    lmwire_result result;
    while ((result = lmwire_next(request, -1, &event)) != LMWIRE_END) {
        if (result == LMWIRE_WOKEN)
            result = lmwire_cancel(request); /* the rest still comes, and its last event */
        else if (result == LMWIRE_OK && event->kind == LMWIRE_TOKEN && event->channel == LMWIRE_CONTENT) {
            fwrite(event->text, 1, event->text_length, stdout);
            fflush(stdout);
        }
        if (result != LMWIRE_OK)
            return result;
    }
    putchar('\n');
    return lmwire_terminal(request)->result;
}

/* Add a message to the conversation, which is a command that lacks its end. */
static void add_message(lmwire_text *conversation, const char *role, const char *text, size_t length) {
    if (conversation->length == 0)
        lmwire_text_add(conversation, "{\"cmd\":\"chat\",\"max_tokens\":2000,\"messages\":[");
    else
        lmwire_text_add(conversation, ",");
    lmwire_text_add(conversation, "{\"role\":%s,\"content\":%.*s}", role, (int)length, text);
}

/* Send the conversation with a new message, print the answer, and add both. */
static lmwire_result exchange(lmwire_text *conversation, const char *message, size_t length) {
    lmwire_request *request;
    add_message(conversation, "user", message, length);
    if (lmwire_text_add(conversation, "]}") != LMWIRE_OK)
        return conversation->failure;
    lmwire_result result = lmwire_send(worker, conversation->data, conversation->length, &request);
    conversation->length -= 2; /* the messages go on */
    if (result == LMWIRE_OK)
        result = stream(request);
    const char *answer = lmwire_answer(request, &length);
    add_message(conversation, "assistant", answer, length);
    lmwire_request_free(request);
    return result == LMWIRE_OK ? conversation->failure : result;
}

int main(int count, char **arguments) {
    lmwire_text conversation = {0};
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    struct sigaction interrupt;
    lmwire_result result = lmwire_start(&worker, NULL);
    if (result == LMWIRE_OK)
        result = lmwire_load(worker, count > 1 ? arguments[1] : "builtin:tiny");
    memset(&interrupt, 0, sizeof interrupt);
    interrupt.sa_handler = on_interrupt;
    if (result == LMWIRE_OK)
        sigaction(SIGINT, &interrupt, NULL);
    while (result == LMWIRE_OK && (length = getline(&line, &capacity, stdin)) > 0)
        result = exchange(&conversation, line, (size_t)length - (line[length - 1] == '\n'));
    if (result != LMWIRE_OK)
        fprintf(stderr, "%s\n", *lmwire_message(worker) ? lmwire_message(worker) : lmwire_strerror(result));
    lmwire_close(worker);
    lmwire_free(worker);
    lmwire_text_free(&conversation);
    free(line);
    return result != LMWIRE_OK;
}
