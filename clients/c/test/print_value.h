/* Write a value as JSON, for the programs that test the library. */
#include "../lmwire.h"

static void print_value(lmwire_text *text, const lmwire_value *value) {
    size_t length;
    const char *string;
    switch (lmwire_type_of(value)) {
    case LMWIRE_NULL: lmwire_text_add(text, "null"); break;
    case LMWIRE_BOOLEAN: lmwire_text_add(text, lmwire_boolean(value, false) ? "true" : "false"); break;
    case LMWIRE_INTEGER: lmwire_text_add(text, "%lld", (long long)lmwire_integer(value, 0)); break;
    case LMWIRE_NUMBER: lmwire_text_add(text, "%g", lmwire_number(value, 0)); break;
    case LMWIRE_STRING:
        string = lmwire_string(value, &length);
        lmwire_text_add(text, "%.*s", (int)length, string);
        break;
    default:
        lmwire_text_add(text, lmwire_type_of(value) == LMWIRE_LIST ? "[" : "{");
        for (const lmwire_value *each = lmwire_first(value); each; each = lmwire_following(value, each)) {
            if (each != lmwire_first(value))
                lmwire_text_add(text, ",");
            if (lmwire_type_of(value) == LMWIRE_OBJECT) {
                string = lmwire_name(each, &length);
                lmwire_text_add(text, "%.*s:", (int)length, string);
            }
            print_value(text, each);
        }
        lmwire_text_add(text, lmwire_type_of(value) == LMWIRE_LIST ? "]" : "}");
    }
}
