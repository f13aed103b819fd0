/* A hook in C. */
#include "hotcell_json.h"

bool exports_hotcell_plugin_hook_on(hc_text *point, hc_text *event, exports_hotcell_plugin_hook_verdict_t *verdict,
                                    hc_error *error) {
    hc_text json, tool, refused;
    memset(verdict, 0, sizeof *verdict);
    verdict->tag = EXPORTS_HOTCELL_PLUGIN_HOOK_VERDICT_PROCEED;
    if (!hc_is(*point, "before-tool-call")) return true;
    if (!hc_json_member(*event, "tool", &json) || !hc_json_text(json, &tool)) {
        return hc_invalid_input(error, "the event does not name a tool");
    }
    hc_log(INFO, "the tool %s is called", hc_string(tool));
    if (hc_config("refuse", &refused) && hc_is(tool, hc_string(refused))) {
        verdict->tag = EXPORTS_HOTCELL_PLUGIN_HOOK_VERDICT_REFUSE;
        verdict->val.refuse.message = hc_format("the tool `%s` must not be called here", hc_string(tool));
    }
    return true;
}
