# @describe Tools that are part of hotcell itself.

# @cmd Run a command in a sealed shell and give what it prints.
# The shell has coreutils, grep, sed, awk, jq and curl built in; other programs do not exist there. It sees only the directories that were granted.
# @option --command! The command.
execute_command() {
  local status=0
  eval "$argc_command" >> "$LLM_OUTPUT" 2>&1 || status=$?
  if [[ "$status" -ne 0 ]]; then
    cat "$LLM_OUTPUT" >&2
    : > "$LLM_OUTPUT"
  fi
  return "$status"
}
