"""Says what a plugin offers: `python3 -m hotcell_plugin.describe MODULE FOLDER`, one JSON object on standard output.

The module is imported by the Python that builds it, not in a cell. What it prints goes to standard error.
"""

import ast
import contextlib
import importlib
import json
import os
import sys
import sysconfig
from typing import Any

from . import _places
from ._host import _CAPABILITIES
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


#: What a plugin imports of this package, by the interface that it needs.
_INTERFACES = {
    "ask": "ask",
    "files": "files",
    "http": "http",
    "kv": "kv",
    "llm": "llm",
    "secret": "secrets",
    "state": "state",
    "tools": "other_tools",
}


def undeclared(source: str, interfaces: list[str]) -> tuple[int, str] | None:
    """The first line of a module that uses what the plugin does not ask for, with what is wrong."""
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module == "hotcell_plugin":
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hotcell_plugin."):
            names = [node.module.split(".")[1]]
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".")[1] for alias in node.names if alias.name.startswith("hotcell_plugin.")]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "hotcell_plugin":
            names = [node.attr]
        for name in names:
            interface = _INTERFACES.get(name)
            if interface is None or interface in interfaces:
                continue
            if interface not in _CAPABILITIES:
                return node.lineno, f"the code uses `{name}`, which a plugin of this kind does not have"
            line = _CAPABILITIES[interface]
            return node.lineno, f"the code uses `{name}`; ask for it with `{line}` under `[capabilities]` in plugin.toml"
    return None


def _undeclared_in(folder: str, interfaces: str) -> str | None:
    wanted = interfaces.replace("-", "_").split(",")
    for module in modules():
        if module.startswith(folder + os.sep) and module.endswith(".py"):
            with open(module, encoding="utf-8") as file:
                found = undeclared(file.read(), wanted)
            if found is not None:
                return f"{os.path.relpath(module)}:{found[0]}: {found[1]}"
    return None


def modules() -> list[str]:
    """The files of the modules that were imported, without Python's own."""
    library = sysconfig.get_path("stdlib")
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    found = {os.path.abspath(file) for file in files if file}
    return sorted(file for file in found if "site-packages" in file or not file.startswith(library))


def main() -> int:
    """Imports the module and prints what it declares."""
    module, folder = sys.argv[1:3]
    sys.path.insert(0, folder)
    _places.authored(folder, os.path.relpath(folder))
    try:
        with contextlib.redirect_stdout(sys.stderr):
            importlib.import_module(module)
    except DeclarationError as error:
        found = _places.place(error)
        print(f"{found}: {error}" if found else error, file=sys.stderr)
        return 1
    except Exception as error:
        print(_places.shown(error), file=sys.stderr)
        return 1
    if interfaces := os.environ.get("HOTCELL_INTERFACES"):
        if problem := _undeclared_in(os.path.abspath(folder), interfaces):
            print(problem, file=sys.stderr)
            return 1
    if listed := os.environ.get("HOTCELL_MODULES"):
        with open(listed, "w", encoding="utf-8") as file:
            json.dump(modules(), file)
    json.dump(description(), sys.stdout, ensure_ascii=False, allow_nan=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
