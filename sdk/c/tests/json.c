/* Tests of `hotcell_json.h`: ends with 0 where everything holds, and prints what does not. */
#include "hotcell_json.h"

static int failures = 0;

bool hotcell_plugin_config_get(plugin_string_t *key, plugin_string_t *value) {
    (void)key, (void)value;
    return false;
}
void hotcell_plugin_progress_report(uint64_t done, uint64_t *total, plugin_string_t *message) {
    (void)done, (void)total, (void)message;
}

static void expect(bool holds, const char *what) {
    if (holds) return;
    printf("does not hold: %s\n", what);
    failures++;
}
#define EXPECT(condition) expect((condition), #condition)

/* Whether the member `name` of `json` is the JSON `value`; NULL for no member. */
static bool member_is(const char *json, const char *name, const char *value) {
    hc_text found;
    bool there = hc_json_member(hc_from(json), name, &found);
    return value == NULL ? !there : there && hc_is(found, value);
}

static bool text_is(const char *json, const char *expected) {
    hc_text text;
    bool is_text = hc_json_text(hc_from(json), &text);
    return expected == NULL ? !is_text : is_text && hc_is(text, expected);
}

static bool written_is(const char *text, const char *json) {
    hc_builder out = {0};
    hc_add_text(&out, hc_from(text));
    return hc_is(out.text, json);
}

int main(void) {
    const char *object = " { \"a\" : 1 , \"b\\u0063\": \"x,}\\\"]\", \"d\":{\"a\":[2,{}]}, \"e\":[ ],\"f\":null}";
    EXPECT(member_is(object, "a", "1"));
    EXPECT(member_is(object, "bc", "\"x,}\\\"]\""));
    EXPECT(member_is(object, "d", "{\"a\":[2,{}]}"));
    EXPECT(member_is(object, "e", "[ ]"));
    EXPECT(member_is(object, "f", "null"));
    EXPECT(member_is(object, "g", NULL));
    EXPECT(member_is("{}", "a", NULL));
    EXPECT(member_is("[1]", "a", NULL));
    EXPECT(member_is("", "a", NULL));
    /* What is cut off is never read beyond its end. */
    for (size_t length = 0; length < strlen(object); length++) {
        hc_text found, cut = hc_copy(object, length);
        hc_json_member(cut, "g", &found);
    }

    EXPECT(text_is("\"\"", ""));
    EXPECT(text_is("\"a\\n\\t\\\"\\\\\\/\"", "a\n\t\"\\/"));
    EXPECT(text_is("\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
    EXPECT(text_is("\"\\ud83d!\"", "\xef\xbf\xbd!"));
    EXPECT(text_is("\"\\u12\"", NULL));
    EXPECT(text_is("1", NULL));
    EXPECT(text_is("\"", NULL));

    double number = 0;
    bool truth = false;
    EXPECT(hc_json_number(hc_from("-1.5e2"), &number) && number == -150.0);
    EXPECT(!hc_json_number(hc_from("\"1\""), &number));
    EXPECT(!hc_json_number(hc_from(""), &number));
    EXPECT(hc_json_bool(hc_from("true"), &truth) && truth);
    EXPECT(hc_json_bool(hc_from("false"), &truth) && !truth);
    EXPECT(!hc_json_bool(hc_from("1"), &truth));

    EXPECT(written_is("a\"\\\n\x01\xc3\xa9", "\"a\\\"\\\\\\u000a\\u0001\xc3\xa9\""));

    hc_error error;
    EXPECT(!hc_invalid_input(&error, "%d of %s", 3, "four") && error.tag == 0);
    EXPECT(hc_is(error.val.other.message, "3 of four"));
    return failures == 0 ? 0 : 1;
}
