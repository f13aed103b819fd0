#!/usr/bin/env bash
set -e

# @describe Run a command of git.

# @option --command! The command.

main() {
    git "$argc_command" >> "$LLM_OUTPUT"
}
