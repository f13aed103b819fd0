/* A script in C: the object that it gives is merged into the graph's state. */
#include "hotcell_json.h"

bool exports_hotcell_plugin_run_script_run(hc_text *result, hc_error *error) {
    hc_text json, name;
    if (!hc_state("person.name", &json) || !hc_json_text(json, &name)) {
        return hc_invalid_input(error, "`person.name` is missing in the state");
    }
    hc_builder out = {0};
    hc_add(&out, "{\"greeting\": ");
    hc_add_text(&out, hc_format("Hello, %s!", hc_string(name)));
    hc_add(&out, "}");
    *result = out.text;
    return true;
}
