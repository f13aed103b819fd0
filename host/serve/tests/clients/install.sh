#!/bin/sh
# Installs the clients of others that the server is tried with, in fixed versions, into <repository>/target/serve-clients. Needs
# python3 (3.10 or later) with pip. Safe to run again.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
folder="$here/../../../../target/serve-clients"
mkdir -p "$folder"
python3 -m venv "$folder"
"$folder/bin/pip" install --disable-pip-version-check --quiet "langgraph-sdk==0.4.14"
echo "installed into $(cd "$folder" && pwd)"
