/* A connector in C. It keeps the last message in its store, for another system to be told of. */
#include "hotcell_json.h"

bool exports_hotcell_plugin_connect_send(exports_hotcell_plugin_connect_request_t *request,
                                         exports_hotcell_plugin_connect_reply_t *reply, hc_error *error) {
    hc_text json, box;
    if (!hc_json_member(request->config, "box", &json) || !hc_json_text(json, &box)) {
        return hc_invalid_input(error, "the configuration names no `box`");
    }
    hc_builder message = {0};
    hc_add(&message, "{\"message\": ");
    hc_add_json(&message, request->input);
    if (request->callback.is_some) {
        hc_add(&message, ", \"callback\": ");
        hc_add_text(&message, request->callback.val.url);
        hc_add(&message, ", \"session\": ");
        hc_add_text(&message, request->callback.val.session);
    }
    hc_add(&message, "}");
    if (!hc_kv_set(box, message.text, error)) return false;

    memset(reply, 0, sizeof *reply);
    if (request->callback.is_some) {
        reply->tag = EXPORTS_HOTCELL_PLUGIN_CONNECT_REPLY_ACCEPTED;
        return true;
    }
    hc_builder answer = {0};
    hc_add(&answer, "{\"kept\": ");
    hc_add_text(&answer, box);
    hc_add(&answer, "}");
    reply->tag = EXPORTS_HOTCELL_PLUGIN_CONNECT_REPLY_DONE;
    reply->val.done = answer.text;
    return true;
}

bool exports_hotcell_plugin_connect_receive(exports_hotcell_plugin_connect_request_t *request, hc_text *body,
                                            hc_text *answer, hc_error *error) {
    (void)request;
    hc_text found;
    if (!hc_json_member(*body, "answer", &found)) return hc_invalid_input(error, "the other system sent no `answer`");
    /* A copy: what is returned is freed after the call, and a part of `body` cannot be freed. */
    *answer = hc_copy((const char *)found.ptr, found.len);
    return true;
}
