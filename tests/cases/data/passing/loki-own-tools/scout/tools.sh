#!/usr/bin/env bash
set -eo pipefail

# shellcheck disable=SC1090
source "$LLM_PROMPT_UTILS_FILE"

# @env LLM_OUTPUT=/dev/stdout The output path
# @describe Tools of the scout

_line() {
  printf '%s (%s)\n' "$1" "$2"
}

# @cmd Note a place
# The second line of the description
# @option --place! The name of the place
# @option --country[no|se|dk] Its country
# @option --days <INT> How long the stay is
# @option --with-friend* Whoever comes along
# @flag --by-train No plane
note_place() {
  guard_operation "Note it?"
  _line "${argc_place}" "${argc_country:-somewhere}" >> "$LLM_OUTPUT"
  if [[ "${argc_by_train:-0}" -eq 1 ]]; then
    info "by train, ${argc_days:-0} days" >> "$LLM_OUTPUT"
  fi
  for friend in "${argc_with_friend[@]}"; do
    echo "with ${friend}" >> "$LLM_OUTPUT"
  done
}

# @cmd Say where the journey begins
home() {
  echo "this goes to the terminal"
  echo "${LLM_AGENT_NAME}: ${LLM_AGENT_VAR_HOME}" >> "$LLM_OUTPUT"
}

# @cmd Fail on purpose
# @arg reason! Why
break_down() {
  echo "no way: $1" >&2
  exit 3
}
