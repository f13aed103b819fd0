"""Surroundings for tests of a plugin outside a cell:

with surroundings(config={"units": "metric"}, kv={"seen": "1"}) as around:
    assert forecast("Oslo") == ...
assert around.notes == [("info", "asked for Oslo")]
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from . import _host
from .errors import Denied, InvalidInput, PluginError
from .http import Response


@dataclass
class Surroundings:
    """What the plugin saw and left."""

    config: dict[str, str]
    store: dict[str, bytes]
    state: dict[str, Any]
    answers: list[str]
    secrets: dict[str, str]
    model: Callable[[dict[str, Any]], dict[str, Any]] | None
    tools: dict[str, Callable[..., Any]]
    server: Callable[..., Response] | None
    #: Files by their paths.
    files: dict[str, bytes]
    #: Lines of the log: level and message.
    notes: list[tuple[str, str]] = field(default_factory=list)
    #: Reports of progress: done, total, message.
    reports: list[tuple[int, int | None, str]] = field(default_factory=list)


class _Functions:
    def __init__(self, **functions: Callable[..., Any]):
        for name, function in functions.items():
            setattr(self, name, function)


@contextmanager
def surroundings(
    *,
    config: dict[str, str] | None = None,
    kv: dict[str, str] | None = None,
    state: dict[str, Any] | None = None,
    answers: list[str] | None = None,
    secrets: dict[str, str] | None = None,
    llm: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    tools: dict[str, Callable[..., Any]] | None = None,
    http: Callable[..., Response] | None = None,
    files: dict[str, str] | None = None,
) -> Iterator[Surroundings]:
    """Gives the host's functions for the time of a `with`.

    `llm` takes a request and gives a reply, both as objects. `http` takes method, address, headers and body, and gives a
    `Response`.
    """
    around = Surroundings(
        dict(config or {}),
        {key: text.encode() for key, text in (kv or {}).items()},
        state or {},
        list(answers or []),
        dict(secrets or {}),
        llm,
        dict(tools or {}),
        http,
        {path: text.encode() for path, text in (files or {}).items()},
    )
    before = _host.unbind_all()
    for name, functions in _interfaces(around).items():
        _host.bind(name, functions)
    try:
        yield around
    finally:
        _host.unbind_all()
        for name, functions in before.items():
            _host.bind(name, functions)


def _interfaces(around: Surroundings) -> dict[str, Any]:
    def ask(question: str) -> str:
        if not around.answers:
            raise PluginError(f"the test has no answer to the question `{question}`")
        return around.answers.pop(0)

    def placeholder(name: str) -> str:
        if name not in around.secrets:
            raise Denied(f"the secret `{name}` is not given to this test")
        return f"<secret {name}>"

    def complete(request: str) -> str:
        if around.model is None:
            raise Denied("the test has no model; give one with `llm`")
        return json.dumps(around.model(json.loads(request)))

    def call(name: str, arguments: str) -> str:
        if name not in around.tools:
            raise Denied(f"the test has no tool `{name}`")
        return json.dumps(around.tools[name](**json.loads(arguments)))

    def send(method: str, url: str, headers: dict[str, str], body: bytes) -> Response:
        if around.server is None:
            raise Denied("the test has no server; give one with `http`")
        return around.server(method, url, headers, body)

    def value_at(path: str) -> str | None:
        value: Any = around.state
        for part in path.split("."):
            try:
                value = value[int(part)] if isinstance(value, list) else value[part]
            except (KeyError, IndexError, TypeError, ValueError):
                return None
        return json.dumps(value)

    def contents(path: str) -> bytes:
        if path not in around.files:
            raise InvalidInput(f"there is no `{path}`")
        return around.files[path]

    def inside(path: str) -> list[str]:
        start = path.rstrip("/") + "/"
        rest = [file[len(start) :] for file in around.files if file.startswith(start)]
        return list({name.split("/")[0] + ("/" if "/" in name else "") for name in rest})

    return {
        "files": _Functions(
            read=contents,
            write=around.files.__setitem__,
            entries=inside,
            make_directory=lambda path: None,
            remove=around.files.pop,
        ),
        "log": _Functions(log=lambda level, message: around.notes.append((level, message))),
        "progress": _Functions(report=lambda *report: around.reports.append(report)),
        "config": _Functions(get=around.config.get),
        "ask": _Functions(ask=ask),
        "secrets": _Functions(placeholder=placeholder),
        "llm": _Functions(complete=complete),
        "http": _Functions(send=send),
        "other_tools": _Functions(call=call),
        "state": _Functions(get=value_at, all=lambda: json.dumps(around.state)),
        "kv": _Functions(
            get=around.store.get,
            set=around.store.__setitem__,
            delete=lambda key: around.store.pop(key, None),
            keys=lambda prefix: sorted(key for key in around.store if key.startswith(prefix))[:1000],
        ),
    }
