/* Everything that a plugin may use, one tool each. */

/* For `getentropy`. */
#define _GNU_SOURCE
#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include "hotcell_json.h"

static bool give(hc_text *result, hc_text text) {
    hc_builder out = {0};
    hc_add_text(&out, text);
    *result = out.text;
    return true;
}

static bool settings(hc_text *result, hc_error *error) {
    hc_text place;
    hc_log(INFO, "looked up");
    hc_progress(1, 2, "half");
    if (!hc_config("place", &place)) return hc_invalid_input(error, "the setting `place` is missing");
    return give(result, place);
}

static bool read_file(const char *path, hc_text *text) {
    char part[1024];
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    size_t length = fread(part, 1, sizeof part, file);
    fclose(file);
    *text = hc_copy(part, length);
    return true;
}

static int by_name(const void *one, const void *other) { return strcmp(*(char *const *)one, *(char *const *)other); }

static bool files(const char *path, hc_text *result, hc_error *error) {
    hc_text text;
    if (!read_file(path, &text)) return hc_other(error, "`%s` cannot be read", path);
    FILE *copy = fopen("/data/copy.txt", "w");
    if (copy == NULL) return hc_other(error, "the copy cannot be written");
    fwrite(text.ptr, 1, text.len, copy);
    fclose(copy);
    if (!read_file("/data/copy.txt", &text)) return hc_other(error, "the copy cannot be read");
    char *names[16];
    size_t count = 0;
    DIR *directory = opendir("/data");
    if (directory == NULL) return hc_other(error, "the directory cannot be listed");
    for (struct dirent *entry; count < 16 && (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] != '.') names[count++] = hc_string(hc_from(entry->d_name));
    }
    closedir(directory);
    remove("/data/copy.txt");
    qsort(names, count, sizeof *names, by_name);
    hc_builder out = {0};
    hc_add(&out, "{\"copied\":");
    hc_add_text(&out, text);
    hc_add(&out, ",\"names\":[");
    for (size_t at = 0; at < count; at++) {
        if (at > 0) hc_add(&out, ",");
        hc_add_text(&out, hc_from(names[at]));
    }
    hc_add(&out, "]}");
    *result = out.text;
    return true;
}

static bool store(hc_text *result, hc_error *error) {
    bool found, gone;
    hc_text value, none;
    plugin_list_string_t keys;
    if (!hc_kv_set(hc_from("a"), hc_from("1"), error)) return false;
    if (!hc_kv_delete(hc_from("gone"), error)) return false;
    if (!hc_kv_get(hc_from("a"), &found, &value, error) || !hc_kv_get(hc_from("gone"), &gone, &none, error)) return false;
    if (!hc_kv_keys(hc_from(""), &keys, error)) return false;
    hc_builder out = {0};
    hc_add(&out, "{\"a\":");
    hc_add_text(&out, value);
    hc_add(&out, gone ? ",\"gone\":true,\"keys\":[" : ",\"gone\":null,\"keys\":[");
    for (size_t at = 0; at < keys.len; at++) {
        if (at > 0) hc_add(&out, ",");
        hc_add_text(&out, keys.ptr[at]);
    }
    hc_add(&out, "]}");
    *result = out.text;
    return true;
}

static bool http(hc_text *result, hc_error *error) {
    hc_response response;
    if (!hc_http("POST", "https://api.example.org/echo", NULL, hc_from("ping"), &response, error)) return false;
    return give(result, response.body);
}

static bool model(hc_text *result, hc_error *error) {
    hc_text reply, json, text;
    hc_text request = hc_from("{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}");
    if (!hc_llm(request, &reply, error)) return false;
    if (!hc_json_member(reply, "text", &json) || !hc_json_text(json, &text)) return hc_other(error, "no text");
    return give(result, text);
}

static bool answer(hc_text *result, hc_error *error) {
    hc_text text;
    return hc_ask("Which way?", &text, error) && give(result, text);
}

static bool secrets(hc_text *result, hc_error *error) {
    hc_text placeholder;
    if (!hc_secret("KEY", &placeholder, error)) return false;
    *result = hc_from(placeholder.len > 0 ? "true" : "false");
    return true;
}

static bool draws(hc_text *result, hc_error *error) {
    char one[16], other[16];
    if (getentropy(one, sizeof one) != 0 || getentropy(other, sizeof other) != 0) return hc_other(error, "no entropy");
    *result = hc_from(memcmp(one, other, sizeof one) != 0 ? "true" : "false");
    return true;
}

bool exports_hotcell_plugin_call_tool_call(hc_text *name, hc_text *arguments, hc_text *result, hc_error *error) {
    if (hc_is(*name, "settings")) return settings(result, error);
    if (hc_is(*name, "files")) {
        hc_text json, path;
        if (!hc_json_member(*arguments, "path", &json) || !hc_json_text(json, &path)) {
            return hc_invalid_input(error, "`path` must be a text");
        }
        return files(hc_string(path), result, error);
    }
    if (hc_is(*name, "kv")) return store(result, error);
    if (hc_is(*name, "http")) return http(result, error);
    if (hc_is(*name, "secrets")) return secrets(result, error);
    if (hc_is(*name, "llm")) return model(result, error);
    if (hc_is(*name, "tools")) return hc_tool("other", hc_from("{\"x\":1}"), result, error);
    if (hc_is(*name, "ask")) return answer(result, error);
    if (hc_is(*name, "clock")) {
        *result = hc_format("%lld", (long long)time(NULL));
        return true;
    }
    if (hc_is(*name, "random")) return draws(result, error);
    return hc_invalid_input(error, "there is no tool `%s`", hc_string(*name));
}
