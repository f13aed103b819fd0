/* A node type in C. `description.json` says which fields, inputs, outputs and branches it has. */
#include "hotcell_json.h"

bool exports_hotcell_plugin_run_node_run(hc_text *node_type, hc_text *fields, hc_text *inputs,
                                         exports_hotcell_plugin_run_node_outcome_t *outcome, hc_error *error) {
    hc_text table, json, key, value;
    if (!hc_is(*node_type, "lookup")) return hc_invalid_input(error, "there is no node type `%s`", hc_string(*node_type));
    if (!hc_json_member(*fields, "table", &table)) return hc_invalid_input(error, "the field `table` is missing");
    if (!hc_json_member(*inputs, "key", &json) || !hc_json_text(json, &key)) {
        return hc_invalid_input(error, "the input `key` must be a text");
    }
    bool found = hc_json_member_of(table, key, &value);
    hc_builder out = {0};
    hc_add(&out, "{");
    if (found) {
        hc_add(&out, "\"value\": ");
        hc_add_json(&out, value);
    }
    hc_add(&out, "}");
    memset(outcome, 0, sizeof *outcome);
    outcome->outputs = out.text;
    outcome->branch.is_some = true;
    outcome->branch.val = hc_from(found ? "found" : "missing");
    return true;
}
