/*
 * Tests of lmwire.c, which is included to reach its parts: the JSON reader, the forms of events, and sessions with small
 * workers in sh. `make c` builds them with the sanitizers of addresses and undefined behaviour.
 *
 *   test_lmwire VECTORS    run all tests; LMWIRE_FUZZ_SECONDS lengthens the fuzzing
 *   test_lmwire --echo     print the JSON of each line of stdin as this library reads it, or `refused`
 */
#include "../lmwire.c"

#include "print_value.h"

#include <locale.h>

static int failures;
static const char *vectors;

#define CHECK(holds, ...)                                                                                              \
    do {                                                                                                               \
        if (!(holds)) {                                                                                                \
            failures++;                                                                                                \
            fprintf(stderr, "%s:%d: ", __func__, __LINE__);                                                            \
            fprintf(stderr, __VA_ARGS__);                                                                              \
            fputc('\n', stderr);                                                                                       \
        }                                                                                                              \
    } while (0)

/* ------------------------------------------------------------------------------------------------------------ JSON */

/* Return the text of what is read, or `refused`. */
static lmwire_text read_back(const char *json, size_t length) {
    lmwire_text text = {0};
    lmwire_value *value = lmwire_parse(json, length);
    if (value)
        print_value(&text, value);
    else
        lmwire_text_add(&text, "refused");
    lmwire_value_free(value);
    return text;
}

static void test_json_is_read_as_it_is_written(void) {
    static const struct {
        const char *json, *read;
    } TABLE[] = {
        {" [ 1 , -2 , 0 ] ", "[1,-2,0]"},
        {"{\"a\":{\"b\":[]},\"c\":{}}", "{\"a\":{\"b\":[]},\"c\":{}}"},
        {"[true,false,null]", "[true,false,null]"},
        {"\"\\u0041\\/\\\"\\\\\\b\\f\\n\\r\\t\"", "\"A/\\\"\\\\\\u0008\\u000c\\u000a\\u000d\\u0009\""},
        {"\"\\ud83d\\ude00\\u00e9\\u6f22\"", "\"\xF0\x9F\x98\x80\xC3\xA9\xE6\xBC\xA2\""},
        {"\"a\\u0000b\"", "\"a\\u0000b\""},
        {"\"\xEF\xBF\xBF\xF4\x8F\xBF\xBF\xED\x9F\xBF\xEE\x80\x80\"",
         "\"\xEF\xBF\xBF\xF4\x8F\xBF\xBF\xED\x9F\xBF\xEE\x80\x80\""},
        {"1e2", "100"},
        {"25e-1", "2.5"},
        {"-0.0", "-0.0"},
        {"0.1", "0.1"},
        {"1E+2", "100"},
        {"9007199254740991", "9007199254740991"},
        {"-9007199254740991", "-9007199254740991"},
        {"9007199254740993", "9007199254740992"},
        {"1.7976931348623157e308", "1.7976931348623157e+308"},
        {"5e-324", "4.94065645841247e-324"},
        {"1e-400", "0"},
        {"0.30000000000000004", "0.30000000000000004"},
        {"123456789012345678901234567890", "1.2345678901234568e+29"},
        {"", "refused"},
        {" ", "refused"},
        {"1 2", "refused"},
        {"[1,]", "refused"},
        {"[,1]", "refused"},
        {"{\"a\":1,}", "refused"},
        {"{a:1}", "refused"},
        {"{\"a\" 1}", "refused"},
        {"{\"a\":}", "refused"},
        {"{1:1}", "refused"},
        {"[1", "refused"},
        {"[1}", "refused"},
        {"\"a", "refused"},
        {"\"\\x\"", "refused"},
        {"\"\\u12g4\"", "refused"},
        {"\"\\u12\"", "refused"},
        {"\"\\", "refused"},
        {"'a'", "refused"},
        {"\"\t\"", "refused"},
        {"\"\n\"", "refused"},
        {"01", "refused"},
        {"-", "refused"},
        {"+1", "refused"},
        {".5", "refused"},
        {"5.", "refused"},
        {"1e", "refused"},
        {"1e+", "refused"},
        {"1e400", "refused"},
        {"-1e400", "refused"},
        {"NaN", "refused"},
        {"Infinity", "refused"},
        {"nul", "refused"},
        {"truex", "refused"},
        {"\"\\ud800\"", "refused"},
        {"\"\\udc00\"", "refused"},
        {"\"\\ud800\\u0041\"", "refused"},
        {"\"\\ud800\\ud800\"", "refused"},
        {"\"\xED\xA0\x80\"", "refused"},
        {"\"\xC0\x80\"", "refused"},
        {"\"\xE0\x80\x80\"", "refused"},
        {"\"\xF4\x90\x80\x80\"", "refused"},
        {"\"\xF8\x88\x80\x80\x80\"", "refused"},
        {"\"\xC3\"", "refused"},
        {"\"\xE6\xBC\"", "refused"},
        {"\"\x80\"", "refused"},
        {"\"\xFF\"", "refused"},
        {"\xEF\xBB\xBF{}", "refused"},
        {"\x0B{}", "refused"},
        {"\xC2\xA0{}", "refused"},
    };
    for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++) {
        lmwire_text text = read_back(TABLE[i].json, strlen(TABLE[i].json));
        CHECK(text.failure == LMWIRE_OK && strcmp(text.data, TABLE[i].read) == 0, "%s: %s", TABLE[i].json, text.data);
        lmwire_text_free(&text);
    }
    lmwire_value *value = lmwire_parse("1.7976931348623157e308", 22);
    CHECK(value && lmwire_number(value, 0) == 1.7976931348623157e308, "the largest number");
    lmwire_value_free(value);
    CHECK(!lmwire_parse(NULL, 0), "no text");
    CHECK(!lmwire_parse("\0", 1), "a NUL");
}

static void test_numbers_are_those_of_strtod(void) {
    uint64_t state = 42;
    for (int i = 0; i < 20000; i++) {
        char number[64];
        state = state * 6364136223846793005U + 1442695040888963407U;
        snprintf(number, sizeof number, "%llu.%llue%d", (unsigned long long)(state >> 40),
                 (unsigned long long)(state >> 13 & 0xFFFFFF), (int)(state >> 7 & 63) - 32);
        lmwire_value *value = lmwire_parse(number, strlen(number));
        CHECK(lmwire_number(value, -1) == strtod(number, NULL), "%s: %.17g", number, lmwire_number(value, -1));
        lmwire_value_free(value);
    }
}

static void test_numbers_do_not_depend_on_the_locale(void) {
    static const char *const NAMES[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "C"};
    size_t name = 0;
    while (!setlocale(LC_ALL, NAMES[name]))
        name++;
    lmwire_text text = read_back("[0.1,1.2345678901234567]", 24);
    CHECK(strcmp(text.data, "[0.1,1.2345678901234567]") == 0, "%s in %s", text.data, NAMES[name]);
    lmwire_text_free(&text);
    setlocale(LC_ALL, "C");
    char number[32] = "1.5";
    replace_point(number, ".", "\xD9\xAB"); /* the point of Arabic has two bytes */
    CHECK(strcmp(number, "1\xD9\xAB"
                         "5") == 0,
          "%s", number);
    replace_point(number, "\xD9\xAB", ".");
    CHECK(strcmp(number, "1.5") == 0, "%s", number);
}

static void test_nesting_is_bounded(void) {
    char json[512];
    for (int deep = 99; deep <= 101; deep++) {
        memset(json, '[', (size_t)deep);
        memset(json + deep, ']', (size_t)deep);
        lmwire_value *value = lmwire_parse(json, 2 * (size_t)deep);
        CHECK(!!value == (deep <= 100), "%d deep", deep);
        lmwire_value_free(value);
    }
}

static void test_members_are_found(void) {
    static const char JSON[] =
        "{\"a\":1,\"b\":{\"c\":null,\"d\":[1,2.5,\"x\"]},\"a\":2,\"e\":null,\"\":3,\"nul\\u0000\":4}";
    lmwire_value *value = lmwire_parse(JSON, strlen(JSON));
    CHECK(lmwire_integer(lmwire_get(value, "a"), 0) == 2, "the last of two members wins");
    CHECK(!lmwire_get(value, "e") && !lmwire_get(value, "b.c") && !lmwire_get(value, "f.g") &&
              !lmwire_get(value, "a.b"),
          "null is absent");
    CHECK(lmwire_count(lmwire_get(value, "b.d")) == 3 && lmwire_count(value) == 6, "counts");
    CHECK(lmwire_integer(lmwire_get(value, ""), 0) == 3, "an empty name");
    CHECK(!lmwire_get(value, "nul"), "a name with U+0000 is another");
    CHECK(lmwire_integer(lmwire_get(value, "b"), 7) == 7 && lmwire_number(NULL, 7) == 7 &&
              lmwire_boolean(value, true) && !lmwire_string(value, NULL) && !lmwire_first(lmwire_get(value, "a")) &&
              !lmwire_following(NULL, NULL),
          "wrong types");
    lmwire_value_free(value);
}

static void test_a_format_makes_json(void) {
    lmwire_text text = {0};
    lmwire_text_add(&text, "{\"s\":%s,\"n\":%s,\"t\":%.*s,\"i\":%d,\"l\":%lld,\"z\":%zu,\"g\":%g,\"p\":\"%%\"}",
                    "a\"\\\n\x7F", getenv("LMWIRE_IS_NOT_SET"), 3, "a\0b", -1, 9007199254740991LL, (size_t)7, 0.1);
    CHECK(strcmp(text.data,
                 "{\"s\":\"a\\\"\\\\\\u000a\x7F\",\"n\":null,\"t\":\"a\\u0000b\",\"i\":-1,\"l\":9007199254740991,"
                 "\"z\":7,\"g\":0.1,\"p\":\"%\"}") == 0,
          "%s", text.data);
    CHECK(lmwire_text_add(&text, "%s", "\xFF") == LMWIRE_INVALID, "no UTF-8");
    CHECK(lmwire_text_add(&text, "ok") == LMWIRE_INVALID, "the failure stays");
    lmwire_text_free(&text);
    CHECK(lmwire_text_add(&text, "%g", (double)NAN) == LMWIRE_INVALID, "no number");
    lmwire_text_free(&text);
    const char *unknown = "%x";
    CHECK(lmwire_text_add(&text, unknown, 1) == LMWIRE_MISUSE, "no such letter");
    lmwire_text_free(&text);
}

/* --------------------------------------------------------------------------------------------------------- Vectors */

typedef struct vector {
    lmwire_value *entry;
    buffer line;
} vector;

enum {
    LONG_BYTES = 1 << 21
}; /* longer lines test a worker's limits alone */

/* Build the line of an entry of protocol/vectors: a text, or a list of pieces. */
static void build_line(vector *each) {
    const lmwire_value *line = lmwire_get(each->entry, "line"), *pieces = lmwire_first(line);
    size_t length;
    for (const lmwire_value *piece = pieces ? pieces : line; piece;
         piece = pieces ? lmwire_following(line, piece) : NULL) {
        const char *text = lmwire_string(piece, &length), *hex = lmwire_string(lmwire_get(piece, "hex"), NULL);
        if (text)
            append(&PLAIN, &each->line, text, length);
        for (; hex && *hex; hex += 2) {
            char pair[3] = {hex[0], hex[1], 0}, byte = (char)strtol(pair, NULL, 16);
            append(&PLAIN, &each->line, &byte, 1);
        }
        text = lmwire_string(lmwire_get(piece, "repeat"), &length);
        for (int64_t i = 0; i < lmwire_integer(lmwire_get(piece, "times"), 0) && each->line.length < LONG_BYTES; i++)
            append(&PLAIN, &each->line, text, length);
    }
    if (!each->line.data)
        append(&PLAIN, &each->line, "", 0);
}

/* Call a function with each entry of a file of protocol/vectors. */
static size_t with_vectors(const char *name, void (*test)(const vector *each)) {
    char path[PATH_MAX], *line = NULL;
    size_t capacity = 0, count = 0;
    ssize_t length;
    snprintf(path, sizeof path, "%s/%s", vectors, name);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL, "%s is missing", path);
    while (file && (length = getline(&line, &capacity, file)) > 0) {
        vector each = {lmwire_parse(line, (size_t)length), {NULL, 0, 0}};
        CHECK(each.entry != NULL, "%s: an entry is not JSON", name);
        build_line(&each);
        if (each.line.length < LONG_BYTES)
            test(&each);
        release(&PLAIN, each.line.data);
        lmwire_value_free(each.entry);
        count++;
    }
    free(line);
    if (file)
        fclose(file);
    return count;
}

/* Return a worker without a process that has answered `hello`. */
static lmwire_worker *make_session(void) {
    static const char HELLO[] = "{\"worker\":\"test\",\"features\":[]}";
    bool out_of_memory;
    lmwire_worker *worker = take(&PLAIN, sizeof *worker);
    lmwire_options_init(&worker->options);
    worker->memory = PLAIN;
    worker->in = worker->out = worker->err = worker->exit = worker->wake[0] = worker->wake[1] = -1;
    worker->exited = true; /* nothing is signalled */
    worker->start_deadline = worker->step_deadline = worker->exit_deadline = worker->drain_deadline =
        worker->kill_deadline = NEVER;
    worker->hello = parse(&PLAIN, HELLO, strlen(HELLO), &out_of_memory);
    return worker;
}

static void free_session(lmwire_worker *worker) {
    finish(worker);
    lmwire_free(worker);
}

/* Give a line to a session in which a request "1" is in flight, and return how many events it got. */
static int receive(const vector *each, bool *ended_worker) {
    const char *command = lmwire_string(lmwire_get(each->entry, "command"), NULL);
    lmwire_worker *worker = make_session();
    lmwire_request *request;
    char line[96];
    int length = snprintf(line, sizeof line, "{\"cmd\":\"%s\"}", command ? command : "generate");
    write_command(worker, line, (size_t)length, command ? command : "generate", &request);
    receive_line(worker, each->line.data, each->line.length);
    int events = 0;
    for (const item *queued = request->first; queued; queued = queued->next)
        events++;
    *ended_worker = worker->reason[0] != 0;
    free_session(worker);
    return events;
}

static void check_valid(const vector *each) {
    const char *name = lmwire_string(lmwire_get(each->entry, "name"), NULL);
    bool ended, ignored = lmwire_boolean(lmwire_get(each->entry, "ignored"), false);
    const char *command = lmwire_string(lmwire_get(each->entry, "command"), NULL);
    lmwire_value *value = lmwire_parse(each->line.data, each->line.length);
    ignored = ignored || !is_text(lmwire_get(value, "id"), "1") || (command && strcmp(command, "hello") == 0);
    bool refused = command && strcmp(command, "hello") == 0 && is_text(lmwire_get(value, "event"), "error"); /* [H-4] */
    int events = receive(each, &ended);
    CHECK(ended == refused, "%s: ended: %d", name, ended);
    CHECK(refused || (ignored ? events == 0 : events >= 1 && events <= 2), "%s: %d events", name, events);
    lmwire_value_free(value);
}

static void check_invalid(const vector *each) {
    const char *name = lmwire_string(lmwire_get(each->entry, "name"), NULL);
    const char *host = lmwire_string(lmwire_get(each->entry, "host"), NULL);
    bool ended;
    int events = receive(each, &ended);
    if (strcmp(host, "end") == 0)
        CHECK(ended && !events, "%s: %d events, ended: %d", name, events, ended);
    else if (strcmp(host, "ignore") == 0)
        CHECK(!ended && !events, "%s: %d events, ended: %d", name, events, ended);
    else if (strcmp(host, "accept") == 0)
        CHECK(!ended && events == 1, "%s: %d events, ended: %d", name, events, ended);
    else
        CHECK(strcmp(host, "either") == 0, "%s: unknown consequence %s", name, host);
}

static void check_command(const vector *each) {
    lmwire_value *value = lmwire_parse(each->line.data, each->line.length);
    CHECK(lmwire_type_of(value) == LMWIRE_OBJECT, "%s", lmwire_string(lmwire_get(each->entry, "name"), NULL));
    lmwire_value_free(value);
}

static void test_every_vector_has_the_consequence_of_the_protocol(void) {
    CHECK(with_vectors("events.valid.jsonl", check_valid) > 50, "few vectors");
    CHECK(with_vectors("events.invalid.jsonl", check_invalid) > 100, "few vectors");
    CHECK(with_vectors("commands.valid.jsonl", check_command) > 50, "few vectors");
}

static void test_commands_need_their_features(void) {
    static const struct {
        const char *command, *missing;
    } TABLE[] = {
        {"{\"cmd\":\"chat\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"n\":null}", ""},
        {"{\"cmd\":\"generate\",\"prompt\":\"x\",\"n\":2}", "generate.n"},
        {"{\"cmd\":\"generate\",\"prompt\":\"x\",\"stop\":\"a\"}", "generate.stop.string"},
        {"{\"cmd\":\"generate\",\"prompt\":\"x\",\"stop\":[\"a\"]}", ""},
        {"{\"cmd\":\"chat\",\"messages\":[{\"role\":\"developer\",\"content\":\"x\"}]}",
         "chat.messages.role.developer"},
        {"{\"cmd\":\"chat\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\"}]}]}",
         "chat.messages.content.image"},
        {"{\"cmd\":\"load\"}", "load.path.absent"},
        {"{\"cmd\":\"speak\",\"text\":\"x\"}", "speak"},
    };
    lmwire_worker *worker = make_session();
    for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++) {
        lmwire_result result = lmwire_send(worker, TABLE[i].command, strlen(TABLE[i].command), NULL);
        CHECK((result == LMWIRE_UNSUPPORTED) == (*TABLE[i].missing != 0), "%s: %s", TABLE[i].command,
              lmwire_strerror(result));
        CHECK(result == LMWIRE_OK || strstr(worker->message, TABLE[i].missing), "%s", worker->message);
    }
    free_session(worker);
}

static void test_commands_that_nobody_reads_wait_up_to_a_bound(void) {
    lmwire_worker *worker = make_session();
    int ends[2];
    char bytes[READ_BYTES], prompt[100001];
    memset(prompt, 'x', sizeof prompt);
    prompt[sizeof prompt - 1] = 0;
    CHECK(make_pipe(ends), "a pipe");
    worker->in = ends[1];
    set_nonblocking(worker->in);
    set_nonblocking(ends[0]);
    for (int i = 0; i < 30; i++)
        CHECK(lmwire_generate(worker, prompt, NULL) == LMWIRE_OK, "%s", worker->message);
    size_t whole = worker->waiting.length, lines = 0;
    worker->waiting.length = QUEUED_BYTES - 1; /* as if all of it waited */
    CHECK(lmwire_generate(worker, prompt, NULL) == LMWIRE_AGAIN, "%s", worker->message);
    worker->waiting.length = whole;
    ssize_t length;
    while ((length = read(ends[0], bytes, sizeof bytes)) > 0) {
        for (ssize_t i = 0; i < length; i++)
            lines += bytes[i] == '\n';
        write_waiting(worker);
    }
    CHECK(lines == 30 && worker->waiting.length == 0, "%zu lines arrive", lines);
    close_descriptor(&ends[0]);
    free_session(worker);
}

static void test_wrong_commands_are_refused(void) {
    static const char *const TABLE[] = {"",
                                        "[]",
                                        "{}",
                                        "{\"cmd\":1}",
                                        "{\"cmd\":\"chat\",\"id\":\"1\"}",
                                        "{\"cmd\":\"chat\",\"id\":\"1\",\"id\":null}",
                                        "{\"cmd\":\"quit\"}",
                                        "{\"cmd\":\"chat\"",
                                        "{\"cmd\":\"a\\u0000\"}"};
    lmwire_worker *worker = make_session();
    for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++)
        CHECK(lmwire_send(worker, TABLE[i], strlen(TABLE[i]), NULL) == LMWIRE_INVALID && worker->message[0], "%s",
              TABLE[i]);
    static const char SPREAD[] = " {\n \"cmd\" :\r\n \"ping\" }\n";
    worker->in = open("/dev/full", O_WRONLY | O_CLOEXEC);
    close_descriptor(&worker->in);
    CHECK(lmwire_send(worker, SPREAD, strlen(SPREAD), NULL) == LMWIRE_OK, "spaces are allowed");
    free_session(worker);
}

/* --------------------------------------------------------------------------------------------------------- Fuzzing */

static uint64_t random_state;

static uint64_t next_random(uint64_t below) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

static vector seeds[512];
static size_t seed_count;

static void keep_seed(const vector *each) {
    if (each->line.length < 4096 && seed_count < sizeof seeds / sizeof *seeds) {
        append(&PLAIN, &seeds[seed_count].line, each->line.data, each->line.length);
        seed_count++;
    }
}

/* Change some bytes of a line: replace, remove, repeat, or join with another line's. */
static void mutate(buffer *line) {
    static const char PIECES[] = "\"\\{}[]:,0123456789eE+-.u \xFF\xC3\xED\xA0\x80ntrue\0\x1F";
    for (uint64_t changes = 1 + next_random(3); changes; changes--) {
        size_t at = (size_t)next_random(line->length + 1);
        const vector *other = &seeds[next_random(seed_count)];
        size_t from = (size_t)next_random(other->line.length + 1),
               length = (size_t)next_random(other->line.length - from + 1);
        char piece = PIECES[next_random(sizeof PIECES)];
        switch (next_random(5)) {
        case 0:
            if (at < line->length)
                line->data[at] = piece;
            break;
        case 1: line->length = at; break;
        case 2: append(&PLAIN, line, &piece, 1); break;
        case 3:
            if (line->length < 65536)
                append(&PLAIN, line, other->line.data + from, length);
            break;
        default:
            if (at < line->length) {
                memmove(line->data + at, line->data + at + 1, line->length - at - 1);
                line->length--;
            }
        }
    }
}

/* What was read and written is read as the same again, and no line harms a session. */
static void test_random_lines_do_no_harm(void) {
    const char *seconds = getenv("LMWIRE_FUZZ_SECONDS");
    int64_t end = seconds ? after(atoi(seconds) * 1000) : 0;
    with_vectors("events.valid.jsonl", keep_seed);
    with_vectors("events.invalid.jsonl", keep_seed);
    with_vectors("commands.valid.jsonl", keep_seed);
    random_state = 88172645463325252U;
    size_t read = 0;
    for (int i = 0; i < 3000 || now_ms() < end; i++) {
        buffer line = {NULL, 0, 0};
        const vector *seed = &seeds[next_random(seed_count)];
        append(&PLAIN, &line, seed->line.data, seed->line.length);
        mutate(&line);
        /* A copy of the exact size, so that the sanitizer sees a byte too many. */
        char *exact = malloc(line.length ? line.length : 1);
        memcpy(exact, line.data, line.length);
        lmwire_text once = read_back(exact, line.length), twice = {0};
        if (strcmp(once.data, "refused") != 0) {
            read++;
            twice = read_back(once.data, once.length);
            CHECK(once.length == twice.length && memcmp(once.data, twice.data, once.length) == 0, "%s: %s", once.data,
                  twice.data);
        }
        if (!memchr(exact, '\n', line.length)) {
            vector each = {NULL, line};
            bool ended;
            receive(&each, &ended);
        }
        lmwire_text_free(&once);
        lmwire_text_free(&twice);
        free(exact);
        release(&PLAIN, line.data);
    }
    CHECK(read > 200, "only %zu lines were JSON", read);
    for (size_t i = 0; i < seed_count; i++)
        release(&PLAIN, seeds[i].line.data);
}

/* --------------------------------------------------------------------------------------------------- Workers in sh */

#define HELLO_DONE                                                                                                     \
    "{\"event\":\"done\",\"id\":\"1\",\"protocol\":1,\"worker\":\"sh\",\"pid\":1,\"engines\":[],\"features\":["        \
    "\"embed\","                                                                                                       \
    "\"chat.tools\"],\"limits\":{\"line_in_bytes\":1,\"line_out_bytes\":1,\"requests\":1,\"queued_bytes\":1}}"
#define TOKEN(id, text) "{\"event\":\"token\",\"id\":\"" id "\",\"token\":\"" text "\",\"token_ids\":[1]}"
#define DONE(id)                                                                                                       \
    "{\"event\":\"done\",\"id\":\"" id "\",\"finish_reason\":\"stop\",\"seed\":1,\"usage\":{\"prompt_tokens\":1,"      \
    "\"cached_tokens\":0,\"completion_tokens\":1},\"timings\":{\"queued_ms\":0,\"total_ms\":1}}"
#define SAY(line) "echo '" line "'\n"
#define GREET "read hello\n" SAY(HELLO_DONE)

static lmwire_options options_of(const char *const command[4]) {
    lmwire_options options;
    lmwire_options_init(&options);
    options.command = command;
    options.quit_ms = options.eof_ms = options.term_ms = 10000;
    return options;
}

/* Start a script of sh as the worker. */
static lmwire_worker *start(const char *script) {
    const char *const command[] = {"sh", "-c", script, NULL};
    lmwire_options options = options_of(command);
    lmwire_worker *worker;
    lmwire_result result = lmwire_start(&worker, &options);
    CHECK(result == LMWIRE_OK, "%s", lmwire_message(worker));
    return worker;
}

static void test_an_answer_streams(void) {
    lmwire_worker *worker =
        start(GREET "read request\n" SAY(TOKEN("2", "a\\u0000b")) SAY(TOKEN("2", "c")) SAY(DONE("2")) "read quit\n");
    lmwire_request *request;
    const lmwire_event *event;
    size_t length;
    CHECK(lmwire_has_feature(worker, "embed") && !lmwire_has_feature(worker, "emb") && lmwire_pid(worker) > 0,
          "features");
    CHECK(lmwire_chat(worker, "Hi \"you\"", &request) == LMWIRE_OK, "%s", lmwire_message(worker));
    CHECK(lmwire_next(request, -1, &event) == LMWIRE_OK && event->kind == LMWIRE_TOKEN && event->text_length == 3,
          "a token");
    CHECK(lmwire_wait(request, -1) == LMWIRE_OK, "%s", lmwire_message(worker));
    CHECK(memcmp(lmwire_answer(request, &length), "a\0bc", 5) == 0 && length == 4, "the answer");
    CHECK(strcmp(lmwire_terminal(request)->finish_reason, "stop") == 0, "the reason");
    CHECK(lmwire_integer(lmwire_get(lmwire_terminal(request)->json, "usage.prompt_tokens"), 0) == 1, "a number");
    CHECK(lmwire_next(request, -1, &event) == LMWIRE_END && !event, "the end");
    CHECK(lmwire_close(worker) == LMWIRE_OK, "%s", lmwire_message(worker));
    lmwire_free(worker);
}

static void test_a_crash_is_explained(void) {
    lmwire_worker *worker = start(
        GREET "read request\n" SAY(TOKEN("2", "a")) "echo 'first line' >&2; echo 'Metal is out' >&2; kill -SEGV $$\n");
    lmwire_request *request, *later;
    CHECK(lmwire_chat(worker, "x", &request) == LMWIRE_OK, "%s", lmwire_message(worker));
    CHECK(lmwire_wait(request, -1) == LMWIRE_LOST, "lost");
    CHECK(strcmp(lmwire_answer(request, NULL), "a") == 0, "the text before is valid");
    CHECK(strstr(lmwire_message(worker), "SIGSEGV") && strstr(lmwire_message(worker), "\n    Metal is out"), "%s",
          lmwire_message(worker));
    CHECK(strcmp(lmwire_terminal(request)->code, "worker_lost") == 0, "the code");
    CHECK(lmwire_chat(worker, "x", &later) == LMWIRE_OK && lmwire_wait(later, -1) == LMWIRE_LOST,
          "a later request fails at once");
    CHECK(lmwire_state(worker) == LMWIRE_GONE && lmwire_close(worker) == LMWIRE_OK, "gone");
    lmwire_free(worker);
}

static void test_a_failed_start_is_a_sentence(void) {
    static const struct {
        const char *const command[4];
        lmwire_result result;
        const char *part;
    } TABLE[] = {
        {{"sh", "-c", "echo 'install msgspec' >&2; exit 3", NULL},
         LMWIRE_START,
         "exit code 3; the end of its stderr:\n    install msgspec"},
        {{"sh", "-c", "read hello; echo '{\"event\":\"done\",\"id\":\"1\"}'; sleep 60", NULL},
         LMWIRE_START,
         "`protocol` is absent"},
        {{"/nonexistent/worker", NULL, NULL, NULL},
         LMWIRE_START,
         "`/nonexistent/worker` does not start as a worker: there is no such file"},
        {{"no-such-program", NULL, NULL, NULL}, LMWIRE_START, "no such program on PATH"},
        {{"sh", "-c", "sleep 60", NULL}, LMWIRE_START, "did not answer `hello` in 300 ms"},
    };
    for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++) {
        lmwire_options options = options_of(TABLE[i].command);
        lmwire_worker *worker;
        options.start_ms = i == 4 ? 300 : -1;
        lmwire_result result = lmwire_start(&worker, &options);
        CHECK(result == TABLE[i].result && strstr(lmwire_message(worker), TABLE[i].part), "%d: %s", result,
              lmwire_message(worker));
        lmwire_free(worker);
    }
}

static void test_a_request_is_given_up(void) {
    lmwire_worker *worker = start(GREET "read request; read cancel\n"
                                        "case $cancel in *'\"target\":\"2\"'*) ;; *) exit 9;; esac\n" SAY(
                                            DONE("2")) "read request\n" SAY(DONE("4")) "read quit\n");
    lmwire_request *request;
    CHECK(lmwire_chat(worker, "x", &request) == LMWIRE_OK, "%s", lmwire_message(worker));
    CHECK(lmwire_wait(request, 50) == LMWIRE_TIMEOUT, "timeout");
    lmwire_request_free(request);
    CHECK(lmwire_chat(worker, "x", &request) == LMWIRE_OK && lmwire_wait(request, -1) == LMWIRE_OK, "%s",
          lmwire_message(worker));
    lmwire_free(worker);
}

static void test_a_request_that_nobody_reads_is_cancelled(void) {
    const char *const command[] = {
        "sh", "-c",
        GREET "read request\n"
              "for i in 1 2 3 4 5 6 7 8; do\n" SAY(TOKEN("2", "text")) "done; read cancel\n" SAY(DONE("2")) "read quit",
        NULL};
    lmwire_options options = options_of(command);
    lmwire_worker *worker;
    lmwire_request *request;
    options.queue_bytes = 2000;
    CHECK(lmwire_start(&worker, &options) == LMWIRE_OK, "%s", lmwire_message(worker));
    lmwire_chat(worker, "x", &request);
    while (!request->ended)
        turn(worker, -1);
    CHECK(lmwire_wait(request, -1) == LMWIRE_SLOW && strcmp(lmwire_terminal(request)->code, "slow_consumer") == 0,
          "slow");
    lmwire_free(worker);
}

static void test_a_whole_call_comes_joined(void) {
    lmwire_worker *worker =
        start(GREET "read request\n" SAY("{\"event\":\"tool_call\",\"id\":\"2\",\"index\":0,\"call_id\":\"c1\","
                                         "\"name\":\"weather\",\"arguments\":\"{\\\"a\\\"\"}")
                  SAY("{\"event\":\"tool_call\",\"id\":\"2\",\"index\":1,\"call_id\":\"c2\",\"name\":\"cut "
                      "off\",\"complete\":false}")
                      SAY("{\"event\":\"tool_call\",\"id\":\"2\",\"index\":0,\"arguments\":\":1}\",\"complete\":true}")
                          SAY(DONE("2")) "read quit\n");
    lmwire_request *request;
    const lmwire_event *event;
    int whole = 0;
    lmwire_chat(worker, "x", &request);
    while (lmwire_next(request, -1, &event) == LMWIRE_OK)
        if (event->kind == LMWIRE_TOOL_CALL && ++whole)
            CHECK(strcmp(event->call_id, "c1") == 0 && strcmp(event->name, "weather") == 0 &&
                      strcmp(event->text, "{\"a\":1}") == 0,
                  "%s", event->text);
    CHECK(whole == 1, "%d calls", whole);
    lmwire_free(worker);
}

static void test_vectors_and_samples_are_decoded(void) {
    lmwire_worker *worker = start(
        GREET "read request\n" SAY(
            "{\"event\":\"embedding\",\"id\":\"2\",\"index\":0,\"dims\":2,\"embedding\":\"AACAPwAAAMA=\"}")
            SAY("{\"event\":\"embedding\",\"id\":\"2\",\"index\":1,\"dims\":2,\"embedding\":[0.5,-1]}") SAY(
                "{\"event\":\"audio\",\"id\":\"2\",\"index\":0,\"sample_rate\":1,\"audio\":\"AAABAP//\"}") "read "
                                                                                                           "quit\n");
    lmwire_request *request;
    const lmwire_event *event;
    float numbers[2];
    int16_t samples[3];
    lmwire_embed(worker, "x", &request);
    CHECK(lmwire_next(request, -1, &event) == LMWIRE_OK && lmwire_floats(event, NULL, 0) == 2, "how many");
    CHECK(lmwire_floats(event, numbers, 2) == 2 && numbers[0] == 1 && numbers[1] == -2, "%g %g", (double)numbers[0],
          (double)numbers[1]);
    CHECK(lmwire_next(request, -1, &event) == LMWIRE_OK && lmwire_floats(event, numbers, 1) == 2 && numbers[0] == 0.5F,
          "a list");
    CHECK(lmwire_next(request, -1, &event) == LMWIRE_OK && lmwire_samples(event, samples, 3) == 3 && samples[1] == 1 &&
              samples[2] == -1,
          "samples");
    CHECK(lmwire_floats(event, numbers, 2) == 0 && lmwire_samples(NULL, samples, 3) == 0, "others have none");
    lmwire_free(worker);
}

static void test_sigpipe_reaches_nobody(void) {
    struct sigaction plain, before;
    memset(&plain, 0, sizeof plain);
    plain.sa_handler = SIG_DFL; /* it would end this program */
    sigaction(SIGPIPE, &plain, &before);
    lmwire_worker *worker = start("read hello; exec <&-\n" SAY(HELLO_DONE) "exit 7\n");
    lmwire_request *request;
    char *long_text = malloc(300001);
    memset(long_text, 'x', 300000);
    long_text[300000] = 0;
    lmwire_chat(worker, long_text, &request);
    CHECK(lmwire_wait(request, -1) == LMWIRE_LOST && strstr(lmwire_message(worker), "exit code 7"), "%s",
          lmwire_message(worker));
    sigset_t pending;
    sigpending(&pending);
    CHECK(!sigismember(&pending, SIGPIPE), "SIGPIPE waits");
    sigaction(SIGPIPE, &before, NULL);
    free(long_text);
    lmwire_free(worker);
}

static void test_the_worker_inherits_nothing(void) {
    sigset_t term, before;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, &before);
    setenv("PYTHONINSPECT", "1", 1);
    setenv("PYTHONPATH", "relative:/absolute::.", 1);
    /* The worker has three descriptors, its own group, no blocked SIGTERM, and no path into the working directory. */
    lmwire_worker *worker =
        start(GREET "read request\n"
                    "[ \"$PYTHONPATH\" = /absolute ] && [ -z \"$PYTHONINSPECT\" ] || exit 40\n"
                    "for fd in 3 4 5 6 7 8 9; do if [ -e /proc/$$/fd/$fd ]; then exit 41; fi; done\n"
                    "trap 'exit 42' TERM; kill -TERM $$; exit 43\n");
    lmwire_request *request;
    sigprocmask(SIG_SETMASK, &before, NULL);
    unsetenv("PYTHONINSPECT");
    unsetenv("PYTHONPATH");
    CHECK(getpgid(lmwire_pid(worker)) == lmwire_pid(worker), "its group");
    lmwire_chat(worker, "x", &request);
    lmwire_wait(request, -1);
    CHECK(strstr(lmwire_message(worker), "exit code 42"), "%s", lmwire_message(worker));
    lmwire_free(worker);
}

static void test_closed_standard_descriptors_are_no_trap(void) {
    pid_t child = fork();
    if (child == 0) {
        failures = 0;
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
        lmwire_worker *worker = start(GREET "read request\n" SAY(DONE("2")) "read quit\n");
        lmwire_request *request;
        lmwire_chat(worker, "x", &request);
        CHECK(lmwire_wait(request, -1) == LMWIRE_OK, "%s", lmwire_message(worker));
        lmwire_free(worker);
        _exit(failures != 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0, "the child fails");
}

static void test_the_end_is_noticed_although_a_child_holds_the_pipes(void) {
    lmwire_worker *worker = start(GREET "read request\n(trap '' HUP; setsid sleep 3 &) ; exit 5\n");
    lmwire_request *request;
    lmwire_chat(worker, "x", &request);
    CHECK(lmwire_wait(request, -1) == LMWIRE_LOST && strstr(lmwire_message(worker), "exit code 5"), "%s",
          lmwire_message(worker));
    lmwire_free(worker);
}

static lmwire_worker *woken_worker; // a signal handler has no arguments of ours

static void wake_it(int number) {
    (void)number;
    lmwire_wake(woken_worker);
}

static void test_a_signal_handler_wakes_a_wait(void) {
    lmwire_worker *worker = woken_worker =
        start(GREET "read request; kill -USR1 $PPID; read cancel\n" SAY(DONE("2")) "read quit\n");
    struct sigaction waking, before;
    memset(&waking, 0, sizeof waking);
    waking.sa_handler = wake_it;
    sigaction(SIGUSR1, &waking, &before);
    lmwire_request *request;
    lmwire_chat(worker, "x", &request);
    CHECK(lmwire_wait(request, -1) == LMWIRE_WOKEN, "woken");
    CHECK(lmwire_cancel(request) == LMWIRE_OK && lmwire_wait(request, -1) == LMWIRE_OK, "it goes on");
    sigaction(SIGUSR1, &before, NULL);
    lmwire_free(worker);
}

static void test_a_drain_waits_for_the_answers(void) {
    lmwire_worker *worker = start(GREET "read request; read quit\n" SAY(TOKEN("2", "whole")) SAY(DONE("2")));
    lmwire_request *request;
    lmwire_chat(worker, "x", &request);
    CHECK(lmwire_stop(worker, true) == LMWIRE_OK && lmwire_wait(request, -1) == LMWIRE_OK, "%s",
          lmwire_message(worker));
    CHECK(strcmp(lmwire_answer(request, NULL), "whole") == 0, "the text");
    lmwire_free(worker);
}

static void test_a_worker_that_hangs_is_killed(void) {
    const char *const command[] = {"sh", "-c", "trap '' TERM HUP INT\n" GREET "while :; do sleep 60; done", NULL};
    lmwire_options options = options_of(command);
    options.quit_ms = options.eof_ms = options.term_ms = 50;
    lmwire_worker *worker;
    CHECK(lmwire_start(&worker, &options) == LMWIRE_OK, "%s", lmwire_message(worker));
    CHECK(lmwire_close(worker) == LMWIRE_OK && WIFSIGNALED(worker->status) && WTERMSIG(worker->status) == SIGKILL,
          "killed");
    lmwire_free(worker);
}

/* Write an empty program into a folder. */
static void put_program(const char *folder, const char *name) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int descriptor = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
    CHECK(descriptor >= 0, "%s", path);
    close_descriptor(&descriptor);
}

static void remove_program(const char *folder, const char *name) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

/* Return the command that is found, its parts joined by `|`, or the sentence of the failure. */
static const char *found_command(const lmwire_options *options, bool *ends_with_host) {
    static char joined[MESSAGE_BYTES];
    lmwire_worker *worker = make_session();
    worker->options = *options;
    place found;
    memset(&found, 0, sizeof found);
    joined[0] = 0;
    if (find_worker(worker, &found) == LMWIRE_OK)
        for (size_t i = 0; i < found.length; i++)
            snprintf(joined + strlen(joined), sizeof joined - strlen(joined), "%s%s", i ? "|" : "", found.command[i]);
    else
        snprintf(joined, sizeof joined, "%s", worker->message);
    *ends_with_host = found.ends_with_host;
    release(&PLAIN, (void *)found.command);
    release(&PLAIN, found.parsed);
    free_session(worker);
    return joined;
}

static void test_a_worker_is_found_in_the_order_of_the_documents(void) {
    char folder[] = "/tmp/lmwire-XXXXXX", beside[PATH_MAX], path[PATH_MAX], expected[2 * PATH_MAX];
    char *before = getenv("PATH") ? strdup(getenv("PATH")) : NULL;
    const char *const extra[] = {"--memory-limit", "1", NULL}, *const given[] = {"/bin/ssh", "host", NULL};
    bool watched;
    lmwire_options options;
    lmwire_options_init(&options);
    options.arguments = extra;
    CHECK(mkdtemp(folder), "a folder");
    snprintf(path, sizeof path, "relative::%s", folder);
    setenv("PATH", path, 1);
    unsetenv("LMWIRE_WORKER");
    const char *none = "lmwire: no worker found: put lmwire on PATH, name a worker in $LMWIRE_WORKER, or ";
    CHECK(strncmp(found_command(&options, &watched), none, strlen(none)) == 0, "%s", found_command(&options, &watched));
    put_program(folder, "uvx");
    CHECK(strstr(found_command(&options, &watched), "no worker found"), "uvx is an option");
    options.uvx = true;
    CHECK(strstr(found_command(&options, &watched), "/uvx|--from|lmwire["), "%s", found_command(&options, &watched));
    put_program(folder, "lmwire");
    snprintf(expected, sizeof expected, "%s/lmwire|worker|--memory-limit|1", folder);
    CHECK(strcmp(found_command(&options, &watched), expected) == 0 && watched, "%s", found_command(&options, &watched));
    setenv("LMWIRE_WORKER", "/opt/lmwire", 1);
    CHECK(strcmp(found_command(&options, &watched), "/opt/lmwire|worker|--memory-limit|1") == 0 && watched, "named");
    setenv("LMWIRE_WORKER", "[\"/bin/a b\", \"c\"]", 1);
    CHECK(strcmp(found_command(&options, &watched), "/bin/a b|c|--memory-limit|1") == 0 && !watched, "a list");
    setenv("LMWIRE_WORKER", "[1]", 1);
    CHECK(strstr(found_command(&options, &watched), "must name a program"), "%s", found_command(&options, &watched));
#if defined(__linux__)
    ssize_t length = readlink("/proc/self/exe", beside, sizeof beside - 16);
    beside[length > 0 ? length : 0] = 0;
    snprintf(strrchr(beside, '/'), 16, "/lmwire");
    CHECK(mkdir(beside, 0755) == 0, "%s is left of an earlier run", beside);
    put_program(beside, "lmwire");
    snprintf(expected, sizeof expected, "%s/lmwire|worker|--memory-limit|1", beside);
    CHECK(strcmp(found_command(&options, &watched), expected) == 0, "%s", found_command(&options, &watched));
    remove_program(beside, "lmwire");
    rmdir(beside);
#else
    (void)beside;
#endif
    options.command = given;
    CHECK(strcmp(found_command(&options, &watched), "/bin/ssh|host|--memory-limit|1") == 0 && !watched, "given");
    unsetenv("LMWIRE_WORKER");
    remove_program(folder, "lmwire");
    remove_program(folder, "uvx");
    rmdir(folder);
    setenv("PATH", before ? before : "/bin:/usr/bin", 1);
    free(before);
}

static void test_the_worker_learns_its_host(void) {
    const char *const command[] = {
        "sh", "-c",
        "read hello; case $hello in *\"\\\"host_pid\\\":$PPID,\"*|*\"\\\"host_pid\\\":$PPID}\"*) ;; *) exit 9;; "
        "esac\n" SAY(HELLO_DONE) "read quit",
        NULL};
    lmwire_options options = options_of(command);
    lmwire_worker *worker;
    CHECK(lmwire_start(&worker, &options) == LMWIRE_START, "a whole command can lead to another machine");
    lmwire_free(worker);
    options.host_watch = 1;
    CHECK(lmwire_start(&worker, &options) == LMWIRE_OK, "%s", lmwire_message(worker));
    lmwire_free(worker);
}

static void count_lines(void *user, const char *line, size_t length) {
    (void)line;
    *(size_t *)user += length;
}

static void test_stderr_is_kept_and_passed_on(void) {
    size_t bytes = 0, length;
    const char *const command[] = {
        "sh", "-c", GREET "i=0; while [ $i -lt 3000 ]; do echo 'ten bytes.' >&2; i=$((i+1)); done; read quit", NULL};
    lmwire_options options = options_of(command);
    options.on_stderr = count_lines;
    options.user = &bytes;
    lmwire_worker *worker;
    CHECK(lmwire_start(&worker, &options) == LMWIRE_OK, "%s", lmwire_message(worker));
    lmwire_close(worker);
    CHECK(bytes == 30000, "%zu bytes", bytes);
    const char *end = lmwire_stderr(worker, &length);
    CHECK(length == STDERR_BYTES && strcmp(end + length - 11, "ten bytes.\n") == 0, "%zu: %s", length, end);
    lmwire_free(worker);
}

/* ---------------------------------------------------------------------------------------------------------- Memory */

static void *fail_later(void *user, void *block, size_t size) {
    int *left = user;
    if (size && *left == 0)
        return NULL;
    if (size)
        --*left;
    return allocate_plainly(NULL, block, size);
}

/* Whatever allocation fails, nothing leaks or crashes, and each request has one terminal. */
static void test_every_allocation_may_fail(void) {
    const char *const command[] = {"sh", "-c",
                                   GREET "read request\n" SAY(TOKEN("2", "a"))
                                       SAY("{\"event\":\"tool_call\",\"id\":\"2\",\"index\":0,\"call_id\":\"c1\","
                                           "\"name\":\"f\",\"arguments\":\"{}\",\"complete\":true}")
                                           SAY(DONE("2")) "read quit",
                                   NULL};
    bool whole = false;
    int tries = 0;
    for (; tries < 200 && !whole; tries++) {
        int left = tries;
        lmwire_options options = options_of(command);
        options.allocate = fail_later;
        options.user = &left;
        lmwire_worker *worker;
        lmwire_request *request = NULL;
        lmwire_result result = lmwire_start(&worker, &options);
        if (result == LMWIRE_OK) {
            result = lmwire_chat(worker, "x", &request);
            CHECK((result == LMWIRE_OK) == !!request, "a request");
            if (request) {
                const lmwire_event *event;
                int terminals = 0, refused = 0;
                while ((result = lmwire_next(request, -1, &event)) != LMWIRE_END && refused < 2) {
                    refused += result == LMWIRE_NOMEM;
                    left += result == LMWIRE_NOMEM ? 1000 : 0;
                    terminals += result == LMWIRE_OK && (event->kind == LMWIRE_DONE || event->kind == LMWIRE_ERROR);
                }
                CHECK(terminals == 1, "%d terminals after %d allocations", terminals, tries);
                whole = lmwire_terminal(request) && lmwire_terminal(request)->kind == LMWIRE_DONE && !refused;
            }
        } else {
            CHECK(result == LMWIRE_NOMEM || result == LMWIRE_START, "%s", lmwire_strerror(result));
        }
        lmwire_free(worker);
    }
    CHECK(whole && tries > 8, "%d tries", tries);
}

static void echo(void) {
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    while ((length = getline(&line, &capacity, stdin)) > 0) {
        lmwire_text text = read_back(line, (size_t)length - (line[length - 1] == '\n'));
        puts(text.data);
        fflush(stdout);
        lmwire_text_free(&text);
    }
    free(line);
}

/* Run a test. LMWIRE_TEST_TIMES=1 prints how long it took. */
static void run(const char *name, void (*test)(void)) {
    int64_t start = now_ms();
    test();
    if (getenv("LMWIRE_TEST_TIMES"))
        printf("%6lld ms %s\n", (long long)(now_ms() - start), name);
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*test)(void);
    } TESTS[] = {
#define TEST(name) {#name, name}
        TEST(test_json_is_read_as_it_is_written),
        TEST(test_numbers_are_those_of_strtod),
        TEST(test_numbers_do_not_depend_on_the_locale),
        TEST(test_nesting_is_bounded),
        TEST(test_members_are_found),
        TEST(test_a_format_makes_json),
        TEST(test_every_vector_has_the_consequence_of_the_protocol),
        TEST(test_commands_need_their_features),
        TEST(test_commands_that_nobody_reads_wait_up_to_a_bound),
        TEST(test_wrong_commands_are_refused),
        TEST(test_random_lines_do_no_harm),
        TEST(test_an_answer_streams),
        TEST(test_a_crash_is_explained),
        TEST(test_a_failed_start_is_a_sentence),
        TEST(test_a_request_is_given_up),
        TEST(test_a_request_that_nobody_reads_is_cancelled),
        TEST(test_a_whole_call_comes_joined),
        TEST(test_vectors_and_samples_are_decoded),
        TEST(test_sigpipe_reaches_nobody),
        TEST(test_the_worker_inherits_nothing),
        TEST(test_closed_standard_descriptors_are_no_trap),
        TEST(test_the_end_is_noticed_although_a_child_holds_the_pipes),
        TEST(test_a_signal_handler_wakes_a_wait),
        TEST(test_a_drain_waits_for_the_answers),
        TEST(test_a_worker_that_hangs_is_killed),
        TEST(test_a_worker_is_found_in_the_order_of_the_documents),
        TEST(test_the_worker_learns_its_host),
        TEST(test_stderr_is_kept_and_passed_on),
        TEST(test_every_allocation_may_fail),
    };
    if (count != 2) {
        fprintf(stderr, "usage: %s VECTORS | --echo\n", arguments[0]);
        return 64;
    }
    if (strcmp(arguments[1], "--echo") == 0) {
        echo();
        return 0;
    }
    vectors = arguments[1];
    for (size_t i = 0; i < sizeof TESTS / sizeof *TESTS; i++)
        run(TESTS[i].name, TESTS[i].test);
    printf("%zu tests of the C host, %d failed checks\n", sizeof TESTS / sizeof *TESTS, failures);
    return failures != 0;
}
