#include "json.h"

#include <string.h>

struct reader {
    struct hw_json *json;
    const char *at, *end;
    const char *wrong;
};

static bool read_value(struct reader *reader, int parent, int depth);

static bool
fail(struct reader *reader, const char *wrong)
{
    if (reader->wrong == NULL) reader->wrong = wrong;
    return false;
}

static void
skip_blanks(struct reader *reader)
{
    while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at) reader->at++;
}

static bool
next_is(struct reader *reader, char character)
{
    skip_blanks(reader);
    return reader->at < reader->end && *reader->at == character;
}

static bool
take(struct reader *reader, char character)
{
    if (!next_is(reader, character)) return false;
    reader->at++;
    return true;
}

static int
add_token(struct reader *reader, enum hw_json_kind kind, int parent)
{
    if (reader->json->count == HW_JSON_TOKENS) {
        fail(reader, "it has too many members");
        return -1;
    }
    reader->json->tokens[reader->json->count] = (struct hw_json_token){ .kind = kind, .parent = parent, .start = reader->at };
    return reader->json->count++;
}

static void
end_token(struct reader *reader, int token)
{
    struct hw_json_token *ended = &reader->json->tokens[token];
    ended->length = (size_t)(reader->at - ended->start);
}

static int
hex_digit(char character)
{
    if (character >= '0' && character <= '9') return character - '0';
    if (character >= 'a' && character <= 'f') return character - 'a' + 10;
    if (character >= 'A' && character <= 'F') return character - 'A' + 10;
    return -1;
}

static bool
read_escape(struct reader *reader)
{
    if (reader->at == reader->end) return false;
    char character = *reader->at++;
    if (character != 'u') return character && strchr("\"\\/bfnrt", character);
    for (int i = 0; i < 4; i++) {
        if (reader->at == reader->end || hex_digit(*reader->at++) < 0) return false;
    }
    return true;
}

static bool
read_string(struct reader *reader, int parent)
{
    int token = add_token(reader, HW_JSON_STRING, parent);
    if (token < 0) return false;
    reader->at++;
    while (reader->at < reader->end) {
        unsigned char character = (unsigned char)*reader->at++;
        if (character == '"') {
            end_token(reader, token);
            return true;
        }
        if (character < 0x20) break;
        if (character == '\\' && !read_escape(reader)) break;
    }
    return fail(reader, "a string in it is wrong or not ended");
}

static bool
read_digits(struct reader *reader)
{
    const char *start = reader->at;
    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9') reader->at++;
    return reader->at > start;
}

static bool
read_number(struct reader *reader, int parent)
{
    int token = add_token(reader, HW_JSON_NUMBER, parent);
    if (token < 0) return false;
    if (*reader->at == '-') reader->at++;
    const char *start = reader->at;
    if (!read_digits(reader) || (*start == '0' && reader->at > start + 1)) return fail(reader, "a number in it is wrong");
    if (reader->at < reader->end && *reader->at == '.') {
        reader->at++;
        if (!read_digits(reader)) return fail(reader, "a number in it is wrong");
    }
    if (reader->at < reader->end && (*reader->at == 'e' || *reader->at == 'E')) {
        reader->at++;
        if (reader->at < reader->end && (*reader->at == '+' || *reader->at == '-')) reader->at++;
        if (!read_digits(reader)) return fail(reader, "a number in it is wrong");
    }
    end_token(reader, token);
    return true;
}

static bool
read_word(struct reader *reader, int parent)
{
    static const struct { const char *word; enum hw_json_kind kind; } words[] = {
        { "true", HW_JSON_TRUE }, { "false", HW_JSON_FALSE }, { "null", HW_JSON_NULL }
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        size_t length = strlen(words[i].word);
        if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, words[i].word, length) != 0) continue;
        int token = add_token(reader, words[i].kind, parent);
        if (token < 0) return false;
        reader->at += length;
        end_token(reader, token);
        return true;
    }
    return fail(reader, "it is no JSON");
}

static bool
read_members(struct reader *reader, int object, int depth)
{
    if (take(reader, '}')) return true;
    do {
        if (!next_is(reader, '"')) return fail(reader, "a name in it has no quotes");
        int name = reader->json->count;
        if (!read_string(reader, object)) return false;
        if (!take(reader, ':')) return fail(reader, "a name in it has no value");
        if (!read_value(reader, name, depth)) return false;
    } while (take(reader, ','));
    return take(reader, '}') || fail(reader, "an object in it is not ended");
}

static bool
read_elements(struct reader *reader, int array, int depth)
{
    if (take(reader, ']')) return true;
    do {
        if (!read_value(reader, array, depth)) return false;
    } while (take(reader, ','));
    return take(reader, ']') || fail(reader, "an array in it is not ended");
}

static bool
read_value(struct reader *reader, int parent, int depth)
{
    skip_blanks(reader);
    if (reader->at == reader->end) return fail(reader, "it ends too early");
    char first = *reader->at;
    if (first == '"') return read_string(reader, parent);
    if (first == '-' || (first >= '0' && first <= '9')) return read_number(reader, parent);
    if (first != '{' && first != '[') return read_word(reader, parent);
    if (depth == HW_JSON_DEPTH) return fail(reader, "it is nested too deeply");
    int token = add_token(reader, first == '{' ? HW_JSON_OBJECT : HW_JSON_ARRAY, parent);
    if (token < 0) return false;
    reader->at++;
    if (!(first == '{' ? read_members : read_elements)(reader, token, depth + 1)) return false;
    end_token(reader, token);
    return true;
}

const char *
hw_json_read(struct hw_json *json, const char *text, size_t length)
{
    struct reader reader = { .json = json, .at = text, .end = text + length };
    json->count = 0;
    if (!read_value(&reader, -1, 0)) return reader.wrong;
    skip_blanks(&reader);
    return reader.at == reader.end ? NULL : "something follows it";
}

int
hw_json_next_name(const struct hw_json *json, int object, int after)
{
    for (int i = after + 1; i < json->count; i++) {
        if (json->tokens[i].parent == object) return i;
    }
    return -1;
}

bool
hw_json_is(const struct hw_json_token *token, const char *string)
{
    size_t length = strlen(string);
    return token->kind == HW_JSON_STRING && token->length == length + 2 && memcmp(token->start + 1, string, length) == 0;
}

static uint32_t
four_hex_digits(const char *digits)
{
    uint32_t code = 0;
    for (int i = 0; i < 4; i++) code = code << 4 | (uint32_t)hex_digit(digits[i]);
    return code;
}

static size_t
encode(uint32_t code, char *bytes)
{
    if (code < 0x80) {
        bytes[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, code >>= 6) bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)((0xf0u << (4 - length)) | code);
    return length;
}

bool
hw_json_unquote(const struct hw_json_token *token, char *bytes, size_t capacity)
{
    if (token->kind != HW_JSON_STRING) return false;
    size_t length = 0;
    const char *end = token->start + token->length - 1;
    for (const char *at = token->start + 1; at < end;) {
        if (length + 5 > capacity) return false;
        if (*at != '\\') {
            bytes[length++] = *at++;
            continue;
        }
        char escape = at[1];
        at += 2;
        if (escape != 'u') {
            const char *plain = strchr("b\bf\fn\nr\rt\t", escape);
            bytes[length++] = plain ? plain[1] : escape;
            continue;
        }
        uint32_t code = four_hex_digits(at);
        at += 4;
        if (code >= 0xd800 && code < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
            uint32_t low = four_hex_digits(at + 2);
            if (low < 0xdc00 || low > 0xdfff) return false;
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            at += 6;
        }
        else if (code >= 0xd800 && code <= 0xdfff) {
            return false;
        }
        if (code == 0) return false;
        length += encode(code, bytes + length);
    }
    if (length >= capacity) return false;
    bytes[length] = '\0';
    return true;
}

bool
hw_json_billionths(const struct hw_json_token *token, uint64_t *number)
{
    const char *at = token->start, *end = token->start + token->length;
    struct hw_json quoted;
    if (token->kind == HW_JSON_STRING) {
        if (token->length < 3 || hw_json_read(&quoted, at + 1, token->length - 2) || token->start[1] == ' ') return false;
        if (quoted.tokens[0].kind != HW_JSON_NUMBER) return false;
        at = quoted.tokens[0].start;
        end = at + quoted.tokens[0].length;
    }
    else if (token->kind != HW_JSON_NUMBER) {
        return false;
    }
    if (*at == '-') return false;

    uint64_t digits = 0;
    int scale = 9; /* the number is digits × 10^(scale − 9) billionths of 10^9 */
    bool fraction = false;
    for (; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            fraction = true;
            continue;
        }
        if (digits > UINT64_MAX / 10 - 1) {
            if (!fraction) return false;
            continue;
        }
        digits = digits * 10 + (uint64_t)(*at - '0');
        if (fraction) scale--;
    }
    if (at < end) {
        bool down = at[1] == '-';
        at += 1 + (at[1] == '-' || at[1] == '+');
        int exponent = 0;
        for (; at < end; at++) exponent = exponent < 100 ? exponent * 10 + (*at - '0') : exponent;
        scale += down ? -exponent : exponent;
    }
    for (; scale > 0 && digits; scale--) {
        if (digits > UINT64_MAX / 10) return false;
        digits *= 10;
    }
    for (; scale < 0 && digits; scale++) digits /= 10;
    *number = digits;
    return true;
}
