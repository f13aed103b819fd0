/* A tool in C. `description.json` says what it is called and which arguments it has. */
#include "hotcell_json.h"

/* The word that begins at `*at` or behind it; moves `*at` behind the word. Empty at the end. */
static hc_text next_word(hc_text text, size_t *at) {
    *at = hc_skip_space(text, *at);
    hc_text word = {text.ptr + *at, 0};
    while (*at < text.len && memchr(" \t\r\n", text.ptr[*at], 4) == NULL) {
        (*at)++;
        word.len++;
    }
    return word;
}

/* Whether a word is among those before `end`. */
static bool seen_before(hc_text text, size_t end, hc_text word) {
    hc_text before = {text.ptr, end};
    size_t at = 0;
    for (hc_text one = next_word(before, &at); one.len > 0; one = next_word(before, &at)) {
        if (one.len == word.len && memcmp(one.ptr, word.ptr, one.len) == 0) return true;
    }
    return false;
}

bool exports_hotcell_plugin_call_tool_call(hc_text *name, hc_text *arguments, hc_text *result, hc_error *error) {
    hc_text json, text;
    bool distinct = false;
    if (!hc_is(*name, "count_words")) return hc_invalid_input(error, "there is no tool `%s`", hc_string(*name));
    if (!hc_json_member(*arguments, "text", &json) || !hc_json_text(json, &text)) {
        return hc_invalid_input(error, "`text` must be a text");
    }
    if (hc_json_member(*arguments, "distinct", &json) && !hc_json_bool(json, &distinct)) {
        return hc_invalid_input(error, "`distinct` must be true or false");
    }
    size_t words = 0, at = 0;
    for (hc_text word = next_word(text, &at); word.len > 0; word = next_word(text, &at)) {
        size_t start = (size_t)(word.ptr - text.ptr);
        if (!distinct || !seen_before(text, start, word)) words++;
    }
    if (words == 0) return hc_invalid_input(error, "there are no words in `text`");
    hc_log(DEBUG, "%zu words", words);
    *result = hc_format("{\"words\": %zu}", words);
    return true;
}
