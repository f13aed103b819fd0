#!/bin/sh
# Runs the official conformance suite against the server side and the client side of this crate.
# Installs the suite into <repository>/target/mcp-servers, with a node of its own where the machine's is older than 22.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../../../.." && pwd)
folder="$repository/target/mcp-servers/conformance"
port=${1:-3911}

mkdir -p "$folder"
npm install --prefix "$folder" --no-audit --no-fund "@modelcontextprotocol/conformance@0.1.16" "node@22.23.3"
node="$folder/node_modules/node/bin/node"
suite="$folder/node_modules/@modelcontextprotocol/conformance/dist/index.js"

cd "$repository"
cargo build -p hotcell-mcp --examples
examples="$repository/target/debug/examples"
cd "$folder"

"$examples/conformance_server" "$port" &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
sleep 1
"$node" "$suite" server --url "http://localhost:$port/mcp" --suite all \
    --expected-failures "$here/expected-failures.yml"
for scenario in initialize tools_call elicitation-sep1034-client-defaults sse-retry; do
    "$node" "$suite" client --command "$examples/conformance_client" --scenario "$scenario"
done
