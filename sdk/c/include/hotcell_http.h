/* HTTP for plugins in C. `hotcell_plugin.h` includes it where `[capabilities]` in plugin.toml asks for `http`. */
#ifndef HOTCELL_HTTP_H
#define HOTCELL_HTTP_H

#include <strings.h>

/* Bytes that one write may have, and that are read at once. */
#define HC_HTTP_WRITTEN 4096
#define HC_HTTP_READ 65536

/* What a server answered. */
typedef struct {
    int status;
    /* A line `name: value` for each header. */
    hc_text headers;
    hc_text body;
} hc_response;

/* Whether the answer has a header of that name, whose value goes into `value`. */
static inline bool hc_header(hc_response response, const char *name, hc_text *value) {
    size_t length = strlen(name);
    const char *line = (const char *)response.headers.ptr, *end = line + response.headers.len;
    while (line < end) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        if (next == NULL) next = end;
        if ((size_t)(next - line) >= length + 2 && line[length] == ':' && strncasecmp(line, name, length) == 0) {
            *value = hc_copy(line + length + 2, (size_t)(next - line) - length - 2);
            return true;
        }
        line = next + 1;
    }
    return false;
}

static inline bool hc_http_failed(hc_error *error, const char *url, wasi_http_types_error_code_t code) {
    switch (code.tag) {
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_REQUEST_DENIED:
        return hc_denied(error, "the request to `%s` was not granted (capability `http`)", url);
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_REQUEST_URI_INVALID:
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_REQUEST_METHOD_INVALID:
        return hc_invalid_input(error, "the request to `%s` is none that can be sent", url);
    case WASI_HTTP_TYPES_ERROR_CODE_INTERNAL_ERROR:
        if (code.val.internal_error.is_some) {
            return hc_other(error, "the request to `%s` failed: %s", url, hc_string(code.val.internal_error.val));
        }
        return hc_other(error, "the request to `%s` failed", url);
    case WASI_HTTP_TYPES_ERROR_CODE_DNS_TIMEOUT:
    case WASI_HTTP_TYPES_ERROR_CODE_DNS_ERROR:
    case WASI_HTTP_TYPES_ERROR_CODE_DESTINATION_NOT_FOUND:
    case WASI_HTTP_TYPES_ERROR_CODE_DESTINATION_UNAVAILABLE:
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_REFUSED:
        return hc_unavailable(error, "the server of `%s` was not reached", url);
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_TERMINATED:
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_RESPONSE_INCOMPLETE:
        return hc_unavailable(error, "the connection to `%s` ended early", url);
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_TIMEOUT:
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_READ_TIMEOUT:
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_WRITE_TIMEOUT:
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_RESPONSE_TIMEOUT:
        return hc_unavailable(error, "the server of `%s` did not answer in time", url);
    default: return hc_other(error, "the request to `%s` failed (error %d of `wasi:http`)", url, code.tag);
    }
}

static inline wasi_http_types_method_t hc_http_method(const char *name) {
    static const char *const known[] = {"GET",     "HEAD",    "POST",  "PUT",  "DELETE",
                                        "CONNECT", "OPTIONS", "TRACE", "PATCH"};
    wasi_http_types_method_t method = {.tag = WASI_HTTP_TYPES_METHOD_OTHER, .val.other = hc_from(name)};
    for (size_t at = 0; at < sizeof known / sizeof *known; at++) {
        if (strcmp(name, known[at]) == 0) method.tag = (uint8_t)at;
    }
    return method;
}

/* The headers of a request: lines `name: value`, and how long the body is, which not every server does without. */
static inline bool hc_http_fields(const char *lines, size_t body, wasi_http_types_own_fields_t *fields) {
    size_t most = 2, count = 0;
    for (const char *at = lines; at != NULL && *at != '\0'; at++) most += *at == '\n';
    wasi_http_types_tuple2_field_name_field_value_t *entries = hc_memory(most * sizeof *entries);
    bool has_length = false;
    for (const char *line = lines; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n'), *next = end == NULL ? NULL : end + 1;
        if (end == NULL) end = line + strlen(line);
        const char *colon = memchr(line, ':', (size_t)(end - line));
        if (colon == NULL && end > line) return false;
        if (colon != NULL) {
            const char *value = colon + 1;
            while (value < end && *value == ' ') value++;
            while (end > value && end[-1] == '\r') end--;
            hc_text name = hc_copy(line, (size_t)(colon - line)), text = hc_copy(value, (size_t)(end - value));
            has_length = has_length || strcasecmp(hc_string(name), "content-length") == 0;
            entries[count].f0 = name;
            entries[count].f1.ptr = text.ptr;
            entries[count++].f1.len = text.len;
        }
        line = next;
    }
    if (body > 0 && !has_length) {
        hc_text length = hc_format("%zu", body);
        entries[count].f0 = hc_from("content-length");
        entries[count].f1.ptr = length.ptr;
        entries[count++].f1.len = length.len;
    }
    wasi_http_types_list_tuple2_field_name_field_value_t list = {entries, count};
    wasi_http_types_header_error_t wrong;
    return wasi_http_types_static_fields_from_list(&list, fields, &wrong);
}

static inline bool hc_http_request(const char *method, const char *url, const char *headers, size_t body,
                                   wasi_http_types_own_outgoing_request_t *request, hc_error *error) {
    wasi_http_types_scheme_t scheme = {.tag = WASI_HTTP_TYPES_SCHEME_HTTPS};
    const char *rest = url + 8;
    if (strncasecmp(url, "http://", 7) == 0) {
        scheme.tag = WASI_HTTP_TYPES_SCHEME_HTTP;
        rest = url + 7;
    } else if (strncasecmp(url, "https://", 8) != 0) {
        return hc_invalid_input(error, "`%s` begins with neither `https://` nor `http://`", url);
    }
    size_t server = strcspn(rest, "/?#"), path = strcspn(rest + server, "#");
    hc_text authority = hc_copy(rest, server);
    hc_text target = rest[server] == '/' ? hc_copy(rest + server, path)
                                         : hc_format("/%.*s", (int)path, rest + server);
    wasi_http_types_own_fields_t fields;
    if (!hc_http_fields(headers, body, &fields)) {
        return hc_invalid_input(error, "the headers of the request to `%s` are not lines of `name: value`", url);
    }
    *request = wasi_http_types_constructor_outgoing_request(fields);
    wasi_http_types_borrow_outgoing_request_t borrowed = wasi_http_types_borrow_outgoing_request(*request);
    wasi_http_types_method_t how = hc_http_method(method);
    if (wasi_http_types_method_outgoing_request_set_method(borrowed, &how) &&
        wasi_http_types_method_outgoing_request_set_scheme(borrowed, &scheme) &&
        wasi_http_types_method_outgoing_request_set_authority(borrowed, &authority) &&
        wasi_http_types_method_outgoing_request_set_path_with_query(borrowed, &target)) {
        return true;
    }
    return hc_invalid_input(error, "the request `%s %s` is none that can be sent", method, url);
}

/* Writes the body as far as it is taken. What became of a request that was ended early is in its answer. */
static inline void hc_http_write(wasi_http_types_own_outgoing_body_t outgoing, hc_text body) {
    wasi_http_types_own_output_stream_t stream;
    if (body.len > 0 &&
        wasi_http_types_method_outgoing_body_write(wasi_http_types_borrow_outgoing_body(outgoing), &stream)) {
        for (size_t at = 0; at < body.len; at += HC_HTTP_WRITTEN) {
            size_t left = body.len - at;
            plugin_list_u8_t part = {body.ptr + at, left < HC_HTTP_WRITTEN ? left : HC_HTTP_WRITTEN};
            wasi_io_streams_stream_error_t ended;
            if (!wasi_io_streams_method_output_stream_blocking_write_and_flush(
                    wasi_io_streams_borrow_output_stream(stream), &part, &ended)) {
                break;
            }
        }
        wasi_io_streams_output_stream_drop_own(stream);
    }
    wasi_http_types_error_code_t unfinished;
    wasi_http_types_static_outgoing_body_finish(outgoing, NULL, &unfinished);
}

static inline bool hc_http_read(wasi_http_types_own_incoming_response_t incoming, hc_response *response) {
    wasi_http_types_borrow_incoming_response_t borrowed = wasi_http_types_borrow_incoming_response(incoming);
    response->status = wasi_http_types_method_incoming_response_status(borrowed);
    wasi_http_types_own_fields_t fields = wasi_http_types_method_incoming_response_headers(borrowed);
    wasi_http_types_list_tuple2_field_name_field_value_t entries;
    wasi_http_types_method_fields_entries(wasi_http_types_borrow_fields(fields), &entries);
    size_t length = 0;
    for (size_t at = 0; at < entries.len; at++) length += entries.ptr[at].f0.len + entries.ptr[at].f1.len + 3;
    uint8_t *lines = hc_memory(length);
    response->headers.ptr = lines;
    response->headers.len = length;
    for (size_t at = 0; at < entries.len; at++) {
        hc_text name = entries.ptr[at].f0, value = {entries.ptr[at].f1.ptr, entries.ptr[at].f1.len};
        memcpy(lines, name.ptr, name.len);
        lines += name.len;
        *lines++ = ':';
        *lines++ = ' ';
        if (value.len > 0) memcpy(lines, value.ptr, value.len);
        lines += value.len;
        *lines++ = '\n';
    }
    wasi_http_types_own_incoming_body_t body;
    wasi_http_types_own_input_stream_t stream;
    response->body = hc_from("");
    if (!wasi_http_types_method_incoming_response_consume(borrowed, &body)) return false;
    if (!wasi_http_types_method_incoming_body_stream(wasi_http_types_borrow_incoming_body(body), &stream)) return false;
    size_t room = 0;
    for (;;) {
        plugin_list_u8_t part;
        wasi_io_streams_stream_error_t ended;
        if (!wasi_io_streams_method_input_stream_blocking_read(wasi_io_streams_borrow_input_stream(stream), HC_HTTP_READ,
                                                               &part, &ended)) {
            return ended.tag == WASI_IO_STREAMS_STREAM_ERROR_CLOSED;
        }
        if (part.len > room - response->body.len) {
            room = 2 * room + part.len;
            uint8_t *larger = hc_memory(room);
            memcpy(larger, response->body.ptr, response->body.len);
            response->body.ptr = larger;
        }
        memcpy(response->body.ptr + response->body.len, part.ptr, part.len);
        response->body.len += part.len;
    }
}

/* Sends a request and waits for the whole answer, whatever its status. `headers` are lines `name: value`, or NULL; a body
 * without bytes is none. False with an error. */
static inline bool hc_http(const char *method, const char *url, const char *headers, hc_text body,
                           hc_response *response, hc_error *error) {
    wasi_http_types_own_outgoing_request_t request;
    wasi_http_types_own_outgoing_body_t outgoing;
    wasi_http_outgoing_handler_own_future_incoming_response_t waiting;
    wasi_http_types_error_code_t code;
    if (!hc_http_request(method, url, headers, body.len, &request, error)) return false;
    if (!wasi_http_types_method_outgoing_request_body(wasi_http_types_borrow_outgoing_request(request), &outgoing)) {
        return hc_other(error, "the request to `%s` has no body to write", url);
    }
    if (!wasi_http_outgoing_handler_handle(request, NULL, &waiting, &code)) return hc_http_failed(error, url, code);
    hc_http_write(outgoing, body);
    wasi_http_types_borrow_future_incoming_response_t future = wasi_http_types_borrow_future_incoming_response(waiting);
    wasi_io_poll_own_pollable_t pollable = wasi_http_types_method_future_incoming_response_subscribe(future);
    wasi_io_poll_method_pollable_block(wasi_io_poll_borrow_pollable(pollable));
    wasi_io_poll_pollable_drop_own(pollable);
    wasi_http_types_result_result_own_incoming_response_error_code_void_t answer;
    if (!wasi_http_types_method_future_incoming_response_get(future, &answer) || answer.is_err) {
        return hc_other(error, "the host gave no answer of `%s`", url);
    }
    if (answer.val.ok.is_err) return hc_http_failed(error, url, answer.val.ok.val.err);
    if (hc_http_read(answer.val.ok.val.ok, response)) return true;
    return hc_unavailable(error, "the connection to `%s` ended early", url);
}

#endif
