#!/bin/bash
set -euo pipefail
words() { jq -r '.words[]' <<<"$GRAPH_STATE"; }
read -r times top < <(words | sort | uniq -c | sort -rn | head -n 1)
kinds=$(words | sort -u | wc -l)
cat <<JSON
{"top": "$top", "times": $times, "kinds": $((kinds)), "region": "${LLM_AGENT_VAR_REGION:-none}"}
JSON
