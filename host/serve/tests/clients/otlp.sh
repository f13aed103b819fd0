#!/usr/bin/env bash
# A collector from PyPI takes the traces and metrics of a real server, and prints what it understood.
set -euo pipefail
cd "$(dirname "$0")/../../../.."

venv=target/otlp-collector
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet rotel==0.0.1a15
agent=$("$venv/bin/python" -c 'import pathlib, rotel; print(pathlib.Path(rotel.__file__).with_name("rotel-agent"))')
hotcell=${HOTCELL:-target/release/hotcell}

work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
grpc=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$agent" start --debug-log traces,metrics --debug-log-verbosity detailed --exporter blackhole \
    --otlp-http-endpoint "127.0.0.1:$port" --otlp-grpc-endpoint "127.0.0.1:$grpc" >"$work/collector.log" 2>&1 &
collector=$!

mkdir -p "$work/agents/scripts"
cat >"$work/agents/graph.yaml" <<'GRAPH'
name: traced
version: "1.0"
start: work
nodes:
  work: { type: script, script: scripts/work.js, next: done }
  done: { type: end, output: "{{word}}" }
GRAPH
echo 'console.log(JSON.stringify({ word: "well" }));' >"$work/agents/scripts/work.js"
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do kill -0 "$collector"; sleep 0.1; done

OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:$port" OTEL_SERVICE_NAME=checked \
    "$hotcell" run "$work/agents" --journal memory --quiet
kill "$collector"
wait "$collector" || true
for name in 'invoke_workflow traced' 'script work' 'cell scripts/work.js' hotcell.cell.fuel gen_ai.operation.name checked \
    gen_ai.invoke_agent.duration hotcell.cell.duration; do
    grep -q -- "$name" "$work/collector.log" || { cat "$work/collector.log"; echo "the collector was not told of $name" >&2; exit 1; }
done
echo "the collector understood traces and metrics"
