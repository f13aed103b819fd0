/* The generated declarations that the headers use, for tests outside a cell. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint8_t *ptr;
    size_t len;
} plugin_string_t;

typedef struct {
    plugin_string_t message;
} hotcell_plugin_types_failure_t;

typedef struct {
    uint8_t tag;
    union {
        hotcell_plugin_types_failure_t other;
    } val;
} hotcell_plugin_types_error_t;

#define HOTCELL_PLUGIN_TYPES_ERROR_INVALID_INPUT 0

bool hotcell_plugin_config_get(plugin_string_t *key, plugin_string_t *value);
void hotcell_plugin_progress_report(uint64_t done, uint64_t *total, plugin_string_t *message);
