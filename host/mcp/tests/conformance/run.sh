#!/bin/sh
# Runs the official conformance suite against the server side and the client side of this crate, and against the port of
# `hotcell serve`, for both revisions of the protocol that have requirements of their own.
# Installs the suite into <repository>/target/mcp-servers, with a node of its own where the machine's is older than 22.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../../../.." && pwd)
folder="$repository/target/mcp-servers/conformance"
port=${1:-3911}

mkdir -p "$folder"
npm install --prefix "$folder" --no-audit --no-fund "@modelcontextprotocol/conformance@0.2.0-alpha.12" "node@22.23.3"
node="$folder/node_modules/node/bin/node"
suite="$folder/node_modules/@modelcontextprotocol/conformance/dist/index.js"

cd "$repository"
cargo build --release -p hotcell-mcp --examples -p hotcell
examples="$repository/target/release/examples"
cd "$folder"

"$examples/conformance_server" "$port" &
server=$!
"$repository/target/release/hotcell" serve "$here/agents" --listen "127.0.0.1:$((port + 1))" --journal "$folder/runs.db" &
serve=$!
trap 'kill "$server" "$serve" 2>/dev/null || true' EXIT
sleep 2
for revision in 2025-11-25 2026-07-28; do
    "$node" "$suite" server --url "http://localhost:$port/mcp" --requirements "$revision" \
        --expected-failures "$here/expected-failures-$revision.yml"
    "$node" "$suite" server --url "http://localhost:$((port + 1))/mcp" --requirements "$revision" \
        --expected-failures "$here/expected-failures-serve-$revision.yml"
done
for scenario in initialize tools_call elicitation-sep1034-client-defaults sse-retry; do
    "$node" "$suite" client --command "$examples/conformance_client" --scenario "$scenario"
done
