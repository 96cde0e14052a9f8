/* JSON in a small way: text that is written into a growing buffer with a limit, and short texts that are read into a flat array of
 * tokens. Nothing here depends on the locale, recurses beyond HW_JSON_DEPTH or reads past the length it is given. */
#ifndef HW_JSON_H
#define HW_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* -- writing -------------------------------------------------------------------------------------------------------------- */

struct hw_text {
    char *bytes;
    size_t length, capacity;
    size_t limit;    /* 0: none */
    bool incomplete; /* memory was short or the limit was reached: what followed is missing */
};

void hw_text_free(struct hw_text *text);
void hw_text_clear(struct hw_text *text);
void hw_text_bytes(struct hw_text *text, const char *bytes, size_t length);
void hw_text_add(struct hw_text *text, const char *string);
void hw_text_number(struct hw_text *text, uint64_t number);
/* A decimal fraction of the number: 1500 with 3 digits is 1.5. */
void hw_text_fraction(struct hw_text *text, uint64_t number, int digits);
/* Quoted and escaped; bytes that are no UTF-8 become U+FFFD. */
void hw_text_string(struct hw_text *text, const char *bytes, size_t length);
void hw_text_cstring(struct hw_text *text, const char *string);
/* "name": with a comma before it when something precedes it in the same object. */
void hw_text_key(struct hw_text *text, const char *name);

/* -- reading -------------------------------------------------------------------------------------------------------------- */

#define HW_JSON_DEPTH 4
#define HW_JSON_TOKENS 32

enum hw_json_kind { HW_JSON_OBJECT, HW_JSON_ARRAY, HW_JSON_STRING, HW_JSON_NUMBER, HW_JSON_TRUE, HW_JSON_FALSE, HW_JSON_NULL };

/* In the order of the text. A member of an object is two tokens: its name, whose parent is the object, and its value, whose
 * parent is the name. */
struct hw_json_token {
    enum hw_json_kind kind;
    int parent;
    const char *start; /* as it stands in the text: a string with its quotes */
    size_t length;
};

struct hw_json {
    struct hw_json_token tokens[HW_JSON_TOKENS];
    int count;
};

/* NULL, or what is wrong with the text. */
const char *hw_json_read(struct hw_json *json, const char *text, size_t length);
/* The index of the object's next name after token `after` (the object itself to begin with), or -1. */
int hw_json_next_name(const struct hw_json *json, int object, int after);
/* Whether the token is this string; one with escapes is none. */
bool hw_json_is(const struct hw_json_token *token, const char *string);
/* The string's own bytes, ended by a NUL. False when it is no string, too long, or has a NUL or half a surrogate pair in it. */
bool hw_json_unquote(const struct hw_json_token *token, char *bytes, size_t capacity);
/* A number that is not negative, in thousandths of millionths: "2.5" is 2,500,000,000. False when it is none or too large. Digits
 * after the ninth decimal are dropped. A string that holds a number will do. */
bool hw_json_billionths(const struct hw_json_token *token, uint64_t *number);

#endif
