#!/usr/bin/env bash
set -e

# @describe Greet somebody.

# @option --whom! Who is greeted.

# @env LLM_OUTPUT=/dev/stdout The output path

main() {
    echo "Hello, $argc_whom" >> "$LLM_OUTPUT"
}
