"""Says what a plugin offers: `python3 -m hotcell_plugin.describe MODULE FOLDER`, one JSON object on standard output.

The module is imported by the Python that builds it, not in a cell. What it prints goes to standard error.
"""

import contextlib
import importlib
import json
import sys
import traceback
from typing import Any

from ._registry import declared
from .errors import DeclarationError


def description() -> dict[str, Any]:
    """What the decorators collected, in the form of the description."""
    found: dict[str, Any] = {}
    if declared.tools:
        found["tools"] = [tool.described for tool in declared.tools.values()]
    if declared.nodes:
        found["nodes"] = [node.described for node in declared.nodes.values()]
    if declared.hooks:
        found["hooks"] = [hook.described for hook in declared.hooks.values()]
    if declared.connector is not None:
        found["connector"] = declared.connector.described
    if declared.script is not None:
        found["script"] = True
    return found


def main() -> int:
    """Imports the module and prints what it declares."""
    module, folder = sys.argv[1:3]
    sys.path.insert(0, folder)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            importlib.import_module(module)
    except DeclarationError as error:
        frames = [
            frame for frame in traceback.extract_tb(error.__traceback__) if "hotcell_plugin" not in frame.filename
        ]
        place = f"{frames[-1].filename}, line {frames[-1].lineno}: " if frames else ""
        print(f"{place}{error}", file=sys.stderr)
        return 1
    json.dump(description(), sys.stdout, ensure_ascii=False, allow_nan=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
