#!/bin/sh
# Installs the servers that `tests/real_servers.rs` talks to, in fixed versions, into <repository>/target/mcp-servers.
# Needs node (20 or later) with npm, and python3 (3.10 or later) with pip. Safe to run again.
set -eu

everything="@modelcontextprotocol/server-everything@2026.8.31"
time="mcp-server-time==2026.10.19"

here=$(cd "$(dirname "$0")" && pwd)
folder="$here/../../../../target/mcp-servers"
mkdir -p "$folder"
npm install --prefix "$folder/npm" --no-audit --no-fund --ignore-scripts "$everything"
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --disable-pip-version-check --quiet "$time"
echo "installed into $(cd "$folder" && pwd)"
