"""Plugins for hotcell in Python.

A tool is a function with typed parameters and one decorator:

    from hotcell_plugin import tool

    @tool(read_only=True)
    def add(a: float, b: float = 0.0) -> float:
        \"\"\"Adds two numbers.

        Args:
            a: The first number.
            b: The second number.
        \"\"\"
        return a + b

Its parameters become a JSON schema, its docstring the description. Arguments are checked before the function runs.
"""

from . import config, files, http, kv, llm, log, state, tools
from ._host import ask, progress, secret
from ._registry import connector, hook, node, receive, script, tool
from ._results import Accepted, Outcome, Request, accepted, change, proceed, refuse
from .errors import Denied, InvalidInput, PluginError, Unavailable

__all__ = [
    "Accepted",
    "Denied",
    "InvalidInput",
    "Outcome",
    "PluginError",
    "Request",
    "Unavailable",
    "accepted",
    "ask",
    "change",
    "config",
    "connector",
    "files",
    "hook",
    "http",
    "kv",
    "llm",
    "log",
    "node",
    "proceed",
    "progress",
    "receive",
    "refuse",
    "script",
    "secret",
    "state",
    "tool",
    "tools",
]
