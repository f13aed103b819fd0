"""The way to the host's functions.

Inside a cell they are modules that `componentize-py` generates. They are found once, when the plugin is built, because
a cell has no files to import from. Outside a cell there are none, and a test puts its own in with `testing`.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .errors import Denied, InvalidInput, PluginError, Unavailable

#: The modules by the name of their interface, and the same in the description's `capabilities`.
_interfaces: dict[str, Any] = {}
_CAPABILITIES = {
    "kv": "kv = true",
    "secrets": 'secret = [{ name = "NAME", why = "…" }]',
    "llm": "llm = true",
    "other_tools": 'tool = ["NAME"]',
    "ask": "ask = true",
    "files": 'fs = [{ guest = "/data", access = "read", why = "…" }]',
    "http": 'http = ["https://api.example.org"]',
}


def bind(name: str, interface: Any) -> None:
    """Makes the functions of an interface available."""
    _interfaces[name] = interface


def unbind_all() -> dict[str, Any]:
    """Takes all interfaces away and gives them back."""
    taken = dict(_interfaces)
    _interfaces.clear()
    return taken


def interface(name: str) -> Any:
    """The functions of an interface, or a `Denied` that says how to get them."""
    found = _interfaces.get(name)
    if found is not None:
        return found
    if name in _CAPABILITIES:
        raise Denied(
            f"the capability is not asked for: write `{_CAPABILITIES[name]}` under `[capabilities]` in plugin.toml "
            "and build again (in a test, give it with `hotcell_plugin.testing`)"
        )
    raise Denied(f"`{name}` is not to be had here: only in a cell, for the kinds of plugin that have it")


@contextmanager
def errors() -> Iterator[None]:
    """Turns the errors of the host into those of this package."""
    try:
        yield
    except Exception as raised:
        value = getattr(raised, "value", None)
        failure = getattr(value, "value", None)
        if failure is None or not hasattr(failure, "message"):
            raise
        kinds = {"Error_InvalidInput": InvalidInput, "Error_Denied": Denied, "Error_Unavailable": Unavailable}
        error = kinds.get(type(value).__name__, PluginError)(failure.message)
        error.facts = dict(failure.metadata)
        raise error from None


def to_json(value: Any, what: str) -> str:
    """The JSON text of a value; `what` names it in the error."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise PluginError(f"{what} cannot be written as JSON: {error}") from None


def progress(done: int, total: int | None = None, message: str = "") -> None:
    """Says that `done` of `total` steps are done; `total` is None where it is not known."""
    interface("progress").report(done, total, message)


def ask(question: str) -> str:
    """Puts a question to the person and gives the answer.

    Where no answer is there yet, the call ends here, the run pauses, and the call starts again from its beginning once
    the person has answered. So ask the same questions in the same order, before anything that must not happen twice.
    """
    with errors():
        return interface("ask").ask(question)


def secret(name: str) -> str:
    """A placeholder for the operator's secret `name`. On the way out to a server the secret is granted for, it is
    replaced by the value; everywhere else it stays a meaningless text."""
    with errors():
        return interface("secrets").placeholder(name)
