"""What the generated bindings of a component call. Imported only while a plugin is built, inside the cell's image.

Everything that a call may need is imported here: a cell has no files, so an `import` that runs later finds nothing.
"""

import _strptime  # noqa: F401  `datetime.strptime` imports it on its first call
import encodings.idna  # noqa: F401  so do texts with the codec `idna`
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from componentize_py_types import Err

from . import _calls, _host
from ._places import words
from ._results import Accepted, Request
from .errors import PluginError

_INTERFACES = ("log", "progress", "config", "kv", "secrets", "llm", "other_tools", "ask", "state")


def _bound(name: str) -> Any:
    try:
        return importlib.import_module(f"wit_world.imports.{name}")
    except ImportError:
        return None


_found = {name: _bound(name) for name in _INTERFACES}
# Where `wasi:http` has types as well, those of the contract have the longer name.
_types = _bound("hotcell_plugin_types") or _bound("types")


class _Log:
    """The generated `log`, with the names of levels in the place of its enum."""

    @staticmethod
    def log(level: str, message: str) -> None:
        _found["log"].log(getattr(_found["log"].Level, level.upper()), message)


for _name, _interface in _found.items():
    if _interface is not None:
        _host.bind(_name, _Log if _name == "log" else _interface)
if _bound("outgoing_handler") is not None:
    _host.bind("http", importlib.import_module("hotcell_plugin._wasi_http"))
if _bound("preopens") is not None:
    _host.bind("files", importlib.import_module("hotcell_plugin._wasi_files"))


def _draw_anew() -> None:
    """Seeds the module `random` again: its state is a part of the image, and every call would draw the same numbers."""
    module = sys.modules.get("random")
    if module is not None:
        module.seed()


@contextmanager
def _typed_errors() -> Iterator[None]:
    _draw_anew()
    try:
        yield
    except PluginError as error:
        kinds = {
            "invalid-input": _types.Error_InvalidInput,
            "denied": _types.Error_Denied,
            "unavailable": _types.Error_Unavailable,
        }
        failure = _types.Failure(error.message, [(key, str(value)) for key, value in error.facts.items()])
        raise Err(kinds.get(error.kind, _types.Error_Other)(failure)) from None
    except Exception as error:
        failure = _types.Failure(words(error), [])
        raise Err(_types.Error_Other(failure)) from None


class CallTool:
    """`call-tool`."""

    def call(self, name: str, arguments: str) -> str:
        with _typed_errors():
            return _calls.call_tool(name, arguments)


class RunScript:
    """`run-script`."""

    def run(self) -> str:
        with _typed_errors():
            needs_state = _calls.declared.script is not None and _calls.declared.script.inputs
            return _calls.run_script(_host.interface("state").all() if needs_state else "{}")


class RunNode:
    """`run-node`."""

    def run(self, node_type: str, fields: str, inputs: str) -> Any:
        from_bindings = _exports("run_node")
        with _typed_errors():
            given = _calls.run_node(node_type, fields, inputs)
            return from_bindings.Outcome(given.outputs, given.branch, list(given.metadata.items()))


class Hook:
    """`hook`."""

    def on(self, point: str, event: str) -> Any:
        from_bindings = _exports("hook")
        with _typed_errors():
            verdict = _calls.on_event(point, event)
            if verdict.kind == "change":
                return from_bindings.Verdict_Change(verdict.event)
            if verdict.kind == "refuse":
                return from_bindings.Verdict_Refuse(_types.Failure(verdict.reason, []))
            return from_bindings.Verdict_Proceed()


def _request(given: Any) -> Request:
    callback = given.callback
    return Request(
        given.input, given.config, callback and callback.url, callback and callback.session, dict(given.metadata)
    )


class Connect:
    """`connect`."""

    def send(self, request: Any) -> Any:
        from_bindings = _exports("connect")
        with _typed_errors():
            answer = _calls.send(_request(request))
            return from_bindings.Reply_Accepted() if isinstance(answer, Accepted) else from_bindings.Reply_Done(answer)

    def receive(self, request: Any, body: str) -> str:
        with _typed_errors():
            return _calls.receive(_request(request), body)


_export_modules = {}
for _name in ("run_node", "hook", "connect"):
    try:
        _export_modules[_name] = importlib.import_module(f"wit_world.exports.{_name}")
    except ImportError:
        # The plugin does not export this one.
        pass


def _exports(name: str) -> Any:
    return _export_modules[name]
