/* JSON: what is read and written, against the slow and obvious, and that no text makes the reader leave its bounds (run under ASan:
 * every text is read from an allocation of just its size). */
#include "../json.h"
#include "json_text.h"
#include "test.h"

static const char *
read_exactly(struct hw_json *json, const char *text, size_t length)
{
    char *copy = malloc(length ? length : 1);
    memcpy(copy, text, length);
    const char *wrong = hw_json_read(json, copy, length);
    char bytes[64];
    uint64_t number;
    if (wrong == NULL) {
        CHECK(json->count >= 1 && json->count <= HW_JSON_TOKENS);
        for (int i = 0; i < json->count; i++) {
            const struct hw_json_token *token = &json->tokens[i];
            CHECK(token->start >= copy && token->start + token->length <= copy + length && token->length > 0);
            CHECK(token->parent < i && token->parent >= -1);
            if (hw_json_unquote(token, bytes, sizeof(bytes))) CHECK(strlen(bytes) < sizeof(bytes));
            hw_json_billionths(token, &number);
            hw_json_next_name(json, i, i);
        }
    }
    free(copy);
    return wrong;
}

TEST(objects)
{
    struct hw_json json;
    const char *text = J(" { 'get' : 'stats' , 'set':{'a':1,'b':[true,null]} } ");
    CHECK(hw_json_read(&json, text, strlen(text)) == NULL);
    int get = hw_json_next_name(&json, 0, 0), set = hw_json_next_name(&json, 0, get);
    CHECK(hw_json_is(&json.tokens[get], "get") && hw_json_is(&json.tokens[get + 1], "stats"));
    CHECK(hw_json_is(&json.tokens[set], "set") && json.tokens[set + 1].kind == HW_JSON_OBJECT);
    CHECK(hw_json_next_name(&json, 0, set) == -1);
    int a = hw_json_next_name(&json, set + 1, set + 1), b = hw_json_next_name(&json, set + 1, a);
    CHECK(hw_json_is(&json.tokens[a], "a") && hw_json_is(&json.tokens[b], "b") && json.tokens[b + 1].kind == HW_JSON_ARRAY);
    CHECK(hw_json_next_name(&json, set + 1, b) == -1);
}

TEST(strings)
{
    struct hw_json json;
    char bytes[16];
    const struct { const char *text, *hex; } cases[] = {
        { J("''"), "" }, { J("'a~'~~~/b'"), "61225c2f62" }, { J("'~n~t~b~f~r'"), "0a09080c0d" }, { J("'~u0041'"), "41" },
        { J("'~u00e9'"), "c3a9" }, { J("'~u20ac'"), "e282ac" }, { J("'~ud83d~ude00'"), "f09f9880" },
        { J("'~u0000'"), NULL }, { J("'~ud83d'"), NULL }, { J("'~ud83dx'"), NULL }, { J("'~ude00'"), NULL },
        { J("'~ud83d~u0041'"), NULL }, { J("'longer than fits'"), NULL }, { "1", NULL },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        CHECK(hw_json_read(&json, cases[i].text, strlen(cases[i].text)) == NULL, "%s", cases[i].text);
        bool ok = hw_json_unquote(&json.tokens[0], bytes, sizeof(bytes));
        CHECK(ok == (cases[i].hex != NULL), "%s", cases[i].text);
        char hex[2 * sizeof(bytes) + 1] = "";
        for (size_t at = 0; ok && bytes[at]; at++) snprintf(hex + 2 * at, 3, "%02x", (unsigned char)bytes[at]);
        if (ok) CHECK(strcmp(hex, cases[i].hex) == 0, "%s: %s", cases[i].text, hex);
    }
}

TEST(numbers)
{
    struct hw_json json;
    uint64_t number;
    const struct { const char *text; bool ok; uint64_t value; } cases[] = {
        { "0", true, 0 }, { "1", true, 1000000000 }, { "2.5", true, 2500000000 }, { "1e1", true, 10000000000 },
        { "1.25E+2", true, 125000000000 }, { "5e-1", true, 500000000 }, { "1e-9", true, 1 }, { "1e-10", true, 0 }, { J("'7'"), true, 7000000000 },
        { "0.1234567891", true, 123456789 }, { "4294967", true, UINT64_C(4294967000000000) }, { "0e99999999999", true, 0 },
        { "-1", false, 0 }, { "1e11", false, 0 }, { "1e99999999999", false, 0 }, { "99999999999999999999999", false, 0 },
        { J("''"), false, 0 }, { J("' 7'"), false, 0 }, { J("'7 8'"), false, 0 }, { J("'-7'"), false, 0 }, { J("'x'"), false, 0 }, { "true", false, 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        CHECK(hw_json_read(&json, cases[i].text, strlen(cases[i].text)) == NULL, "%s", cases[i].text);
        bool ok = hw_json_billionths(&json.tokens[0], &number);
        CHECK(ok == cases[i].ok, "%s", cases[i].text);
        if (ok) CHECK_EQUAL(cases[i].value, number);
    }
    for (unsigned round = test_effort(20000); round; round--) {
        char text[32];
        uint64_t thousandths = test_random(UINT64_C(4294967000));
        snprintf(text, sizeof(text), "%" PRIu64 ".%03" PRIu64, thousandths / 1000, thousandths % 1000);
        CHECK(hw_json_read(&json, text, strlen(text)) == NULL && hw_json_billionths(&json.tokens[0], &number), "%s", text);
        CHECK_EQUAL(thousandths * 1000000, number);
    }
}

TEST(fractions)
{
    for (unsigned round = test_effort(20000); round; round--) {
        struct hw_text text = { 0 };
        uint64_t number = test_random(UINT64_C(1) << (1 + test_random(62)));
        char expected[64];
        int length = snprintf(expected, sizeof(expected), "%" PRIu64 ".%09" PRIu64, number / 1000000000, number % 1000000000);
        while (expected[length - 1] == '0') expected[--length] = '\0';
        if (expected[length - 1] == '.') expected[--length] = '\0';
        hw_text_fraction(&text, number, 9);
        CHECK(text.length == (size_t)length && memcmp(text.bytes, expected, text.length) == 0, "%s", expected);
        hw_text_free(&text);
    }
}

/* Whatever the bytes, what is written is a JSON string, and valid ASCII comes back as it was. */
TEST(written_strings_can_be_read)
{
    for (unsigned round = test_effort(20000); round; round--) {
        unsigned char bytes[40];
        char back[256];
        size_t length = test_random(sizeof(bytes));
        bool ascii = test_random(2);
        for (size_t i = 0; i < length; i++) bytes[i] = (unsigned char)(ascii ? 1 + test_random(127) : test_random(256));
        struct hw_text text = { 0 };
        struct hw_json json;
        hw_text_string(&text, (char *)bytes, length);
        CHECK(read_exactly(&json, text.bytes, text.length) == NULL);
        CHECK(hw_json_read(&json, text.bytes, text.length) == NULL);
        if (ascii) {
            CHECK(hw_json_unquote(&json.tokens[0], back, sizeof(back)));
            CHECK(strlen(back) == length && memcmp(back, bytes, length) == 0);
        }
        hw_text_free(&text);
    }
}

TEST(a_limit_is_kept)
{
    struct hw_text text = { .limit = 1000 };
    for (int i = 0; i < 500; i++) hw_text_add(&text, "four");
    CHECK(text.incomplete && text.length == 1000 && text.capacity <= 2048);
    hw_text_clear(&text);
    CHECK(!text.incomplete && text.length == 0);
    hw_text_free(&text);
}

TEST(garbage)
{
    const char *const pieces[] = { "{", "}", "[", "]", J("'"), ":", ",", J("~"), J("~u"), "d83d", "1", "-", ".", "e", "+", "true", "null",
                                          " ", J("'a':"), J("'b'"), "get", "0" };
    struct hw_json json;
    for (unsigned round = test_effort(50000); round; round--) {
        char text[256];
        size_t length = 0;
        while (length < 200 && test_random(40)) {
            const char *piece = pieces[test_random(sizeof(pieces) / sizeof(*pieces))];
            memcpy(text + length, piece, strlen(piece));
            length += strlen(piece);
            if (test_random(30) == 0) text[length++] = (char)test_random(256);
        }
        read_exactly(&json, text, length);
    }
    const char *whole = J("{'set':{'quantum_ms':12.5e0,'policy':'q~u0075antum','x':[1,{'y':null}]}}");
    for (size_t length = 0; length < strlen(whole); length++) CHECK(read_exactly(&json, whole, length) != NULL);
    CHECK(read_exactly(&json, whole, strlen(whole)) == NULL);
    for (unsigned round = test_effort(20000); round; round--) {
        char text[128];
        size_t length = strlen(whole);
        memcpy(text, whole, length);
        for (unsigned flips = 1 + (unsigned)test_random(3); flips; flips--) text[test_random(length)] ^= (char)(1 << test_random(8));
        read_exactly(&json, text, length);
    }
}

TESTS({ "objects", objects }, { "strings", strings }, { "numbers", numbers }, { "fractions", fractions },
      { "written", written_strings_can_be_read }, { "limit", a_limit_is_kept }, { "garbage", garbage })
