#!/bin/sh
# Installs `pyagentspec`, which `tests/agent_spec_pyagentspec.rs` exchanges configurations with, in a fixed version, into
# <repository>/target/pyagentspec. Needs python3 (3.10 or later) with pip. Safe to run again.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
folder="$here/../../../../../target/pyagentspec"
mkdir -p "$folder"
python3 -m venv "$folder"
"$folder/bin/pip" install --disable-pip-version-check --quiet "pyagentspec==26.3.1"
echo "installed into $(cd "$folder" && pwd)"
