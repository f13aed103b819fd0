#!/bin/sh
# Installs the clients of others that the server is tried with, and the servers that its connectors talk with, in fixed versions, into <repository>/target/serve-clients. Needs
# python3 (3.10 or later) with pip; node (20 or later) with npm for those that are in JavaScript, which are left out without it. Safe
# to run again.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
folder="$here/../../../../target/serve-clients"
mkdir -p "$folder"
python3 -m venv "$folder"
"$folder/bin/pip" install --disable-pip-version-check --quiet "langgraph-sdk==0.4.14" "openai==3.57.0" \
    "a2a-sdk==1.3.0" "a2a-proof==0.16.0" \
    "langgraph==1.2.24" "langgraph-cli[inmem]==0.4.40" "uvicorn==0.54.0" "starlette==1.10.0"
if command -v npm >/dev/null; then
    npm install --silent --no-fund --no-audit --prefix "$folder/oidc" "oidc-provider@9.13.3"
    npm install --silent --no-fund --no-audit --prefix "$folder/langgraph" "@langchain/langgraph-sdk@2.0.0"
    npm install --silent --no-fund --no-audit --no-save --prefix "$folder" "@ag-ui/client@1.0.0"
else
    echo "npm is not here: clients in JavaScript are left out"
fi
echo "installed into $(cd "$folder" && pwd)"
