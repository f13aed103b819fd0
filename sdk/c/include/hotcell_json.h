/* As much JSON as small plugins need: members of objects, texts and numbers, and writing them.
 *
 * It reads JSON that the host gave, which is valid. A plugin that works on JSON from elsewhere wants a JSON library.
 */
#ifndef HOTCELL_JSON_H
#define HOTCELL_JSON_H

#include "hotcell_plugin.h"

/* A text that grows. Begin with `hc_builder out = {0};` and end with `out.text`. */
typedef struct {
    hc_text text;
    size_t room;
} hc_builder;

static inline void hc_add_bytes(hc_builder *out, const void *bytes, size_t length) {
    if (out->room - out->text.len < length) {
        size_t room = (out->text.len + length) * 2;
        uint8_t *moved = realloc(out->text.ptr, room);
        if (moved == NULL) abort();
        out->text.ptr = moved;
        out->room = room;
    }
    if (length > 0) memcpy(out->text.ptr + out->text.len, bytes, length);
    out->text.len += length;
}

/* Adds JSON as it is: brackets, names, numbers. */
static inline void hc_add(hc_builder *out, const char *json) { hc_add_bytes(out, json, strlen(json)); }

/* Adds JSON as it is. */
static inline void hc_add_json(hc_builder *out, hc_text json) { hc_add_bytes(out, json.ptr, json.len); }

/* Adds a text as a JSON string, with quotes and escapes. */
static inline void hc_add_text(hc_builder *out, hc_text text) {
    hc_add(out, "\"");
    for (size_t at = 0; at < text.len; at++) {
        uint8_t byte = text.ptr[at];
        char escaped[8];
        if (byte == '"' || byte == '\\') {
            hc_add_bytes(out, (char[]){'\\', (char)byte}, 2);
        } else if (byte < 0x20) {
            snprintf(escaped, sizeof escaped, "\\u%04x", byte);
            hc_add(out, escaped);
        } else {
            hc_add_bytes(out, &byte, 1);
        }
    }
    hc_add(out, "\"");
}

static inline size_t hc_skip_space(hc_text json, size_t at) {
    while (at < json.len && memchr(" \t\r\n", json.ptr[at], 4) != NULL) at++;
    return at;
}

/* The index behind the value that begins at `at`. */
static inline size_t hc_skip_value(hc_text json, size_t at) {
    size_t depth = 0;
    bool in_string = false;
    for (; at < json.len; at++) {
        uint8_t byte = json.ptr[at];
        if (in_string) {
            if (byte == '\\') at++;
            else if (byte == '"') in_string = false;
            if (!in_string && byte == '"' && depth == 0) return at + 1;
        } else if (byte == '"') {
            in_string = true;
        } else if (byte == '{' || byte == '[') {
            depth++;
        } else if (byte == '}' || byte == ']') {
            if (depth == 0) return at;
            if (--depth == 0) return at + 1;
        } else if (depth == 0 && (byte == ',' || memchr(" \t\r\n", byte, 4) != NULL)) {
            return at;
        }
    }
    return json.len;
}

static inline bool hc_hex(hc_text json, size_t at, unsigned *code) {
    *code = 0;
    if (at + 4 > json.len) return false;
    for (size_t digit = 0; digit < 4; digit++) {
        uint8_t byte = json.ptr[at + digit];
        unsigned value;
        if (byte >= '0' && byte <= '9') value = byte - '0';
        else if ((byte | 32) >= 'a' && (byte | 32) <= 'f') value = (byte | 32) - 'a' + 10;
        else return false;
        *code = *code * 16 + value;
    }
    return true;
}

static inline void hc_add_code(hc_builder *out, unsigned code) {
    uint8_t bytes[4];
    size_t length;
    if (code < 0x80) {
        bytes[0] = (uint8_t)code;
        length = 1;
    } else if (code < 0x800) {
        bytes[0] = (uint8_t)(0xC0 | code >> 6);
        length = 2;
    } else if (code < 0x10000) {
        bytes[0] = (uint8_t)(0xE0 | code >> 12);
        length = 3;
    } else {
        bytes[0] = (uint8_t)(0xF0 | code >> 18);
        length = 4;
    }
    for (size_t part = 1; part < length; part++) bytes[part] = (uint8_t)(0x80 | (code >> 6 * (length - 1 - part) & 0x3F));
    hc_add_bytes(out, bytes, length);
}

/* Whether `json` is a string; its text goes into `text`. */
static inline bool hc_json_text(hc_text json, hc_text *text) {
    if (json.len < 2 || json.ptr[0] != '"' || json.ptr[json.len - 1] != '"') return false;
    hc_builder out = {0};
    for (size_t at = 1; at + 1 < json.len; at++) {
        if (json.ptr[at] != '\\') {
            hc_add_bytes(&out, json.ptr + at, 1);
            continue;
        }
        static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
        const char *letter = memchr(letters, json.ptr[++at], 5);
        unsigned code, second;
        if (letter != NULL) {
            hc_add_bytes(&out, &meanings[letter - letters], 1);
        } else if (json.ptr[at] != 'u') {
            hc_add_bytes(&out, json.ptr + at, 1);
        } else {
            if (!hc_hex(json, at + 1, &code)) return false;
            at += 4;
            bool high = code >= 0xD800 && code < 0xDC00;
            if (high && at + 2 < json.len && json.ptr[at + 1] == '\\' && hc_hex(json, at + 3, &second) &&
                second >= 0xDC00 && second < 0xE000) {
                code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
                at += 6;
            } else if (code >= 0xD800 && code < 0xE000) {
                code = 0xFFFD; /* half of a pair alone is not a character */
            }
            hc_add_code(&out, code);
        }
    }
    *text = out.text.ptr != NULL ? out.text : hc_from("");
    return true;
}

/* Whether `json` is a number, which goes into `number`. */
static inline bool hc_json_number(hc_text json, double *number) {
    if (json.len == 0 || (json.ptr[0] != '-' && (json.ptr[0] < '0' || json.ptr[0] > '9'))) return false;
    char *string = hc_string(json), *end;
    *number = strtod(string, &end);
    return *end == '\0';
}

/* Whether `json` is true or false, which goes into `value`. */
static inline bool hc_json_bool(hc_text json, bool *value) {
    *value = hc_is(json, "true");
    return *value || hc_is(json, "false");
}

/* Whether the object `json` has a member of that name; its JSON goes into `value`. */
static inline bool hc_json_member_of(hc_text json, hc_text name, hc_text *value) {
    size_t at = hc_skip_space(json, 0);
    if (at >= json.len || json.ptr[at] != '{') return false;
    at++;
    while (true) {
        at = hc_skip_space(json, at);
        if (at >= json.len || json.ptr[at] != '"') return false;
        size_t end = hc_skip_value(json, at);
        hc_text key, quoted = {json.ptr + at, end - at};
        if (!hc_json_text(quoted, &key)) return false;
        at = hc_skip_space(json, end);
        if (at >= json.len || json.ptr[at] != ':') return false;
        at = hc_skip_space(json, at + 1);
        end = hc_skip_value(json, at);
        if (key.len == name.len && memcmp(key.ptr, name.ptr, name.len) == 0) {
            value->ptr = json.ptr + at;
            value->len = end - at;
            return true;
        }
        at = hc_skip_space(json, end);
        if (at >= json.len || json.ptr[at] != ',') return false;
        at++;
    }
}

/* The same with the name as a C string. */
static inline bool hc_json_member(hc_text json, const char *name, hc_text *value) {
    return hc_json_member_of(json, hc_from(name), value);
}

#endif
