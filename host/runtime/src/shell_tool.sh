# Runs in the shell cell: says which tools a file declares with its comments, or calls one of them.
#
# What is wanted comes as the state: `file`, `source` and `agent` of the file, and for a call `function`, `arguments` and
# `folder`, where it works. The answer is one JSON object: `tools`, or `value` or `error`.

wanted=/tmp/.wanted.json
if [[ -n "${GRAPH_STATE:-}" ]]; then
  printf '%s' "$GRAPH_STATE" > "$wanted"
else
  cat "$GRAPH_STATE_FILE" > "$wanted"
fi
unset GRAPH_STATE GRAPH_STATE_FILE

# The folders that such files know from Loki. Whatever is granted may lie below them.
export LLM_ROOT_DIR=/llm
export LLM_AGENT_NAME="$(jq -r '.agent // "agent"' "$wanted")"
export LLM_AGENT_ROOT_DIR="$LLM_ROOT_DIR/agents/$LLM_AGENT_NAME"
export LLM_AGENT_DATA_DIR=/tmp/data LLM_AGENT_CACHE_DIR=/tmp/cache
export LLM_PROMPT_UTILS_FILE="$LLM_ROOT_DIR/utils/prompt-utils.sh"
export LLM_OUTPUT=/tmp/.output
# What a cell may do was decided when it was granted: nobody is asked once more.
export AUTO_CONFIRM=true
mkdir -p "$LLM_AGENT_ROOT_DIR" "$LLM_ROOT_DIR/utils" "$LLM_AGENT_DATA_DIR" "$LLM_AGENT_CACHE_DIR"

cat > "$LLM_PROMPT_UTILS_FILE" <<'UTILS'
info() { printf 'INFO: %s\n' "$*"; }
warn() { printf 'WARN: %s\n' "$*"; }
error() { printf 'ERROR: %s\n' "$*"; }
debug() { printf 'DEBUG: %s\n' "$*"; }
trace() { printf 'TRACE: %s\n' "$*"; }
success() { printf 'SUCCESS: %s\n' "$*"; }
show_error() { printf '%s\n' "$*" >&2; }
show_success() { printf '%s\n' "$*" >&2; }
red() { printf '%s\n' "$*"; }
green() { printf '%s\n' "$*"; }
gold() { printf '%s\n' "$*"; }
blue() { printf '%s\n' "$*"; }
magenta() { printf '%s\n' "$*"; }
cyan() { printf '%s\n' "$*"; }
white() { printf '%s\n' "$*"; }
detect_os() { echo linux; }
guard_operation() { :; }
guard_path() { :; }
validate_present() {
  if [[ -z "$1" ]]; then
    error "Please specify the value"
    return 1
  fi
}
_no_person() {
  printf '`%s` asks a person, and a sealed tool has nobody at its terminal; take the answer as an option of the tool\n' "$1" >&2
  exit 1
}
input() { _no_person input; }
text() { _no_person text; }
confirm() { _no_person confirm; }
list() { _no_person list; }
checkbox() { _no_person checkbox; }
password() { _no_person password; }
editor() { _no_person editor; }
range() { _no_person range; }
with_validate() { _no_person with_validate; }
open_link() { _no_person open_link; }
UTILS

tools="$LLM_AGENT_ROOT_DIR/$(basename "$(jq -r .file "$wanted")")"
jq -rj .source "$wanted" > "$tools"
# Loki adds this line itself; with it the file is a program whose arguments its comments declare.
if ! grep -q -e '--argc-eval' "$tools"; then
  printf '\neval "$(argc --argc-eval "$0" "$@")"\n' >> "$tools"
fi
argc --argc-export "$tools" > /tmp/.declared.json || exit 1

if [[ "$(jq 'has("function")' "$wanted")" == false ]]; then
  jq '
    def key: .id | gsub("-"; "_");
    def plain: ascii_upcase | if . == "INT" then {type: "integer"} elif . == "NUM" then {type: "number"} else {type: "string"} end;
    def single:
      if .flag == true then {type: "boolean"}
      else ((.notations // [.notation])[0] // "" | plain)
        + (if .choice.type == "Values" then {enum: .choice.data} else {} end)
      end;
    def schema:
      (if (.multiple_occurs or .multiple_values or .multiple) and .flag != true then {type: "array", items: single} else single end)
      + (if (.describe // "") == "" then {} else {description: .describe} end)
      + (if .default.type == "Value" then {default: (.default.value | tonumber? // .)} else {} end);
    def all: (.flag_options[] | select(.id != "help" and .id != "version")), .positionals[];
    def tool: {
      description: .describe,
      parameters: {
        type: "object",
        properties: ([all | {(key): schema}] | add // {}),
        required: [all | select(.required) | key],
        additionalProperties: false
      }
    };
    {tools: (if (.subcommands | length) > 0 then ([.subcommands[] | {(.name): tool}] | add)
             elif .command_fn == "main" then {(.name): tool}
             else {} end)}
  ' /tmp/.declared.json
  exit
fi

words="$(jq -r --slurpfile declared /tmp/.declared.json '
  def key: .id | gsub("-"; "_");
  def word: if type == "string" then . else tojson end;
  . as $wanted
  | $declared[0] as $program
  | ($program.subcommands | length > 0) as $several
  | (if $several then first($program.subcommands[] | select(.name == $wanted.function)) else $program end) as $tool
  | ($wanted.arguments | keys) - [($tool.flag_options[], $tool.positionals[]) | key]
  | if length > 0 then error("there is no argument `" + join("`, `") + "`") else . end
  | [(if $several then $tool.name else empty end),
     ($tool.flag_options[] | . as $option | $wanted.arguments[key]
       | select(. != null)
       | if $option.flag then select(. == true) | $option.long_name
         elif type == "array" then .[] | "\($option.long_name)=\(word)"
         else "\($option.long_name)=\(word)" end),
     (if ($tool.positionals | length) > 0 then "--" else empty end),
     ($tool.positionals[] | $wanted.arguments[key] | select(. != null) | if type == "array" then .[] | word else word end)]
  | @sh
' "$wanted" 2> /tmp/.stderr)" || {
  jq -Rsc '{error: .}' < /tmp/.stderr
  exit 0
}
export LLM_AGENT_FUNC="$(jq -r .function "$wanted")"
: > "$LLM_OUTPUT"
cd "$(jq -r '.folder // "/tmp"' "$wanted")" || exit 1
eval "bash \"\$tools\" $words" > /tmp/.stdout 2> /tmp/.stderr
status=$?
cat /tmp/.stderr >&2
# What a tool puts into the file counts; one that only prints is taken at its word.
[[ -s "$LLM_OUTPUT" ]] || LLM_OUTPUT=/tmp/.stdout
if ((status == 0)); then
  jq -Rsc '{value: .}' < "$LLM_OUTPUT"
else
  cat /tmp/.stderr "$LLM_OUTPUT" | jq -Rsc --arg status "$status" '{error: "it ended with status \($status): \(.)"}'
fi
