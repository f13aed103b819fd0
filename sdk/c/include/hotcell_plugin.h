/* Plugins for hotcell in C.
 *
 * `plugin.h` is generated from the contract when the plugin is built; it declares the function to define, such as
 * `exports_hotcell_plugin_call_tool_call`. This file has short names for its types, errors, and the host's functions.
 *
 * A call runs in a fresh instance that is thrown away afterwards, so nothing here is ever freed.
 */
#ifndef HOTCELL_PLUGIN_H
#define HOTCELL_PLUGIN_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

/* A text of UTF-8: `ptr` and `len` bytes. There is no zero at its end. */
typedef plugin_string_t hc_text;
typedef hotcell_plugin_types_error_t hc_error;
typedef hotcell_plugin_types_failure_t hc_failure;

/* Memory for `size` bytes; the call ends where there is none. */
static inline void *hc_memory(size_t size) {
    void *memory = malloc(size > 0 ? size : 1);
    if (memory == NULL) abort();
    return memory;
}

/* A text with `length` bytes of its own. */
static inline hc_text hc_copy(const char *bytes, size_t length) {
    hc_text text = {hc_memory(length), length};
    if (length > 0) memcpy(text.ptr, bytes, length);
    return text;
}

/* A C string as a text. */
static inline hc_text hc_from(const char *string) { return hc_copy(string, strlen(string)); }

/* A text as a C string. */
static inline char *hc_string(hc_text text) {
    char *string = hc_memory(text.len + 1);
    if (text.len > 0) memcpy(string, text.ptr, text.len);
    string[text.len] = '\0';
    return string;
}

/* Whether a text is this C string. */
static inline bool hc_is(hc_text text, const char *string) {
    return text.len == strlen(string) && memcmp(text.ptr, string, text.len) == 0;
}

/* A text made as `printf` does. */
__attribute__((format(printf, 1, 0))) static inline hc_text hc_vformat(const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) return hc_from(format);
    char *bytes = hc_memory((size_t)length + 1);
    vsnprintf(bytes, (size_t)length + 1, format, arguments);
    hc_text text = {(uint8_t *)bytes, (size_t)length};
    return text;
}

__attribute__((format(printf, 1, 2))) static inline hc_text hc_format(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    hc_text text = hc_vformat(format, arguments);
    va_end(arguments);
    return text;
}

/* Errors. Each fills in `error` and gives false, for the end of an exported function: `return hc_denied(error, "…");` */

static inline bool hc_fail(hc_error *error, uint8_t tag, hc_text message) {
    memset(error, 0, sizeof *error);
    error->tag = tag;
    error->val.other.message = message;
    return false;
}

/* The caller gave something that cannot be used; the same call will fail again. */
#define hc_invalid_input(error, ...) hc_fail((error), HOTCELL_PLUGIN_TYPES_ERROR_INVALID_INPUT, hc_format(__VA_ARGS__))
/* A capability was not granted; the message names it. */
#define hc_denied(error, ...) hc_fail((error), HOTCELL_PLUGIN_TYPES_ERROR_DENIED, hc_format(__VA_ARGS__))
/* Something outside is not to be had at the moment; a later call may work. */
#define hc_unavailable(error, ...) hc_fail((error), HOTCELL_PLUGIN_TYPES_ERROR_UNAVAILABLE, hc_format(__VA_ARGS__))
/* Anything else. */
#define hc_other(error, ...) hc_fail((error), HOTCELL_PLUGIN_TYPES_ERROR_OTHER, hc_format(__VA_ARGS__))

/* What the code uses and plugin.toml does not ask for is an error of the compiler, with the line that asks for it. */
#define HC_NOT_ASKED_FOR(what, line)                                                                                   \
    __attribute__((unavailable("the code uses `" what "`; ask for it with `" line "` under `[capabilities]` in "       \
                               "plugin.toml")))

/* The host's functions. Those that need a capability are there where `[capabilities]` in plugin.toml asks for it. */

/* Writes a line to the log; `level` is the end of `HOTCELL_PLUGIN_LOG_LEVEL_…`: `hc_log(INFO, "%d items", count);` */
#define hc_log(level, ...)                                                                                             \
    do {                                                                                                               \
        hc_text hc_line = hc_format(__VA_ARGS__);                                                                      \
        hotcell_plugin_log_log(HOTCELL_PLUGIN_LOG_LEVEL_##level, &hc_line);                                            \
    } while (0)

/* Says that `done` of `total` steps are done; `total` is 0 where it is not known. */
static inline void hc_progress(uint64_t done, uint64_t total, const char *message) {
    hc_text text = hc_from(message);
    hotcell_plugin_progress_report(done, total > 0 ? &total : NULL, &text);
}

/* Whether there is a setting of that name, which goes into `value`. */
static inline bool hc_config(const char *key, hc_text *value) {
    hc_text name = hc_from(key);
    return hotcell_plugin_config_get(&name, value);
}

#ifdef HOTCELL_HAS_STATE
/* Whether the dotted path leads anywhere in the graph's state; the JSON that is there goes into `json`. */
static inline bool hc_state(const char *path, hc_text *json) {
    hc_text text = hc_from(path);
    return hotcell_plugin_state_get(&text, json);
}
#else
__attribute__((unavailable("only scripts and nodes have a state"))) bool hc_state(const char *path, hc_text *json);
#endif

#ifdef HOTCELL_HAS_KV
/* Puts the bytes under `key` into `value`, and into `found` whether there are any. False with an error. */
static inline bool hc_kv_get(hc_text key, bool *found, hc_text *value, hc_error *error) {
    plugin_option_list_u8_t option;
    if (!hotcell_plugin_kv_get(&key, &option, error)) return false;
    *found = option.is_some;
    if (option.is_some) {
        value->ptr = option.val.ptr;
        value->len = option.val.len;
    }
    return true;
}

/* Puts bytes under `key`. False with an error. */
static inline bool hc_kv_set(hc_text key, hc_text value, hc_error *error) {
    plugin_list_u8_t list = {value.ptr, value.len};
    return hotcell_plugin_kv_set(&key, &list, error);
}

/* Removes what is under `key`. False with an error. */
static inline bool hc_kv_delete(hc_text key, hc_error *error) { return hotcell_plugin_kv_delete(&key, error); }

/* The keys that begin with `prefix`. False with an error. */
static inline bool hc_kv_keys(hc_text prefix, plugin_list_string_t *keys, hc_error *error) {
    return hotcell_plugin_kv_keys(&prefix, keys, error);
}
#else
HC_NOT_ASKED_FOR("kv", "kv = true")
bool hc_kv_get(hc_text key, bool *found, hc_text *value, hc_error *error);
HC_NOT_ASKED_FOR("kv", "kv = true")
bool hc_kv_set(hc_text key, hc_text value, hc_error *error);
HC_NOT_ASKED_FOR("kv", "kv = true")
bool hc_kv_delete(hc_text key, hc_error *error);
#endif

#ifdef HOTCELL_HAS_SECRETS
/* The placeholder for a secret. False with an error. */
static inline bool hc_secret(const char *name, hc_text *placeholder, hc_error *error) {
    hc_text text = hc_from(name);
    return hotcell_plugin_secrets_placeholder(&text, placeholder, error);
}
#else
HC_NOT_ASKED_FOR("secret", "secret = [{ name = \"NAME\", why = \"...\" }]")
bool hc_secret(const char *name, hc_text *placeholder, hc_error *error);
#endif

#ifdef HOTCELL_HAS_LLM
/* Sends a request to the model and gets the reply, both JSON. False with an error. */
static inline bool hc_llm(hc_text request, hc_text *reply, hc_error *error) {
    return hotcell_plugin_llm_complete(&request, reply, error);
}
#else
HC_NOT_ASKED_FOR("llm", "llm = true")
bool hc_llm(hc_text request, hc_text *reply, hc_error *error);
#endif

#ifdef HOTCELL_HAS_OTHER_TOOLS
/* Calls another plugin's tool with a JSON object and gets its result as JSON. False with an error. */
static inline bool hc_tool(const char *name, hc_text arguments, hc_text *result, hc_error *error) {
    hc_text text = hc_from(name);
    return hotcell_plugin_other_tools_call(&text, &arguments, result, error);
}
#else
HC_NOT_ASKED_FOR("tool", "tool = [\"NAME\"]")
bool hc_tool(const char *name, hc_text arguments, hc_text *result, hc_error *error);
#endif

#ifdef HOTCELL_HAS_ASK
/* Puts a question to the person and gets the answer. The call may end here and start again once there is one. */
static inline bool hc_ask(const char *question, hc_text *answer, hc_error *error) {
    hc_text text = hc_from(question);
    return hotcell_plugin_ask_ask(&text, answer, error);
}
#else
HC_NOT_ASKED_FOR("ask", "ask = true")
bool hc_ask(const char *question, hc_text *answer, hc_error *error);
#endif

#ifdef HOTCELL_HAS_HTTP
#include "hotcell_http.h"
#else
typedef struct hc_response hc_response;
HC_NOT_ASKED_FOR("http", "http = [\"https://api.example.org\"]")
bool hc_http(const char *method, const char *url, const char *headers, hc_text body, hc_response *response,
             hc_error *error);
#endif

#endif
