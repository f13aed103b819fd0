"""Functions of this program as tools of agents.

They are **not sealed**: they run in this process, with everything that it may do. An agent has such a function only where
it is handed in and where the agent's file names it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, overload

from ._annotations._shapes import object_shape, parameters, plain_value, read_fields
from ._annotations.docstrings import parse
from ._annotations.errors import DeclarationError, InvalidInput
from ._hotcell import Call

_log = logging.getLogger("hotcell.tools")


@dataclass(frozen=True)
class Tool:
    """A function that agents may call by its name. It is called as the function that it was made of, too."""

    name: str
    #: What models are told about it
    description: str
    #: The JSON schema of its arguments, an object
    parameters: Mapping[str, Any]
    function: Callable[..., Any]
    #: From a JSON object to what the function takes; None for one that takes the object's entries as they are
    read: Callable[[Any], dict[str, Any]] | None = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.function(*arguments, **named)

    def _answer(self, arguments: str, loop: asyncio.AbstractEventLoop | None, call: Call) -> tuple[bool, str]:
        """The result as JSON, or the reason why there is none. Whatever is raised is the call's own affair."""
        try:
            given = json.loads(arguments)
            value = self.function(**(self.read(given) if self.read else given))
            if inspect.isawaitable(value):
                value = _awaited(value, loop, call)
            return True, _to_json(value)
        except InvalidInput as raised:
            return False, raised.message
        except BaseException as raised:
            _log.warning("the tool `%s` failed", self.name, exc_info=True)
            return False, f"{type(raised).__name__}: {raised}"


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(*, name: str | None = None, description: str | None = None) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None, /, *, name: str | None = None, description: str | None = None
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Makes a function with typed parameters a tool. Docstring and annotations say what models are told.

    >>> from hotcell import tool
    >>> @tool
    ... def lookup_account(customer: str) -> dict:
    ...     '''Finds the account of a customer.
    ...
    ...     Args:
    ...         customer: The name of the customer.
    ...     '''
    ...     return {"customer": customer, "balance": 12.5}
    >>> lookup_account.name, lookup_account.description
    ('lookup_account', 'Finds the account of a customer.')
    >>> lookup_account.parameters["properties"]
    {'customer': {'type': 'string', 'description': 'The name of the customer.'}}
    >>> lookup_account("Ada")
    {'customer': 'Ada', 'balance': 12.5}
    """

    def declare(function: Callable[..., Any]) -> Tool:
        called = name or str(getattr(function, "__name__", ""))
        documentation = parse(function.__doc__)
        try:
            fields = parameters(function, f"tool `{called}`", documentation.entries)
        except DeclarationError as error:
            raise TypeError(str(error)) from None
        schema = object_shape(fields, lambda found: found).schema
        told = description or str(documentation.text)
        return Tool(called, told, schema, function, lambda given: read_fields(fields, given, ""))

    return declare if function is None else declare(function)


class ToolRegistry:
    """Tools by their names.

    >>> from hotcell import ToolRegistry
    >>> def add(a: int, b: int) -> int:
    ...     '''Adds two numbers.'''
    ...     return a + b
    >>> registry = ToolRegistry([add])
    >>> registry.get("add").description
    'Adds two numbers.'
    """

    def __init__(self, tools: Iterable[Any] = ()):
        self._tools: dict[str, Tool] = {}
        for one in tools:
            self.register(one)

    def register(self, tool: Any) -> None:
        """Adds a function, a `Tool`, or an object with `name`, `description`, `parameters_schema` and `execute` (as tools of AgentLoom have
        them)."""
        made = as_tool(tool)
        if made.name in self._tools:
            raise ValueError(f"there is a tool `{made.name}` already")
        self._tools[made.name] = made

    def get(self, name: str) -> Tool:
        """The tool of that name; `KeyError` if there is none."""
        if name not in self._tools:
            known = ", ".join(f"`{one}`" for one in sorted(self._tools)) or "none"
            raise KeyError(f"there is no tool `{name}`; there are: {known}")
        return self._tools[name]

    def list(self) -> list[Tool]:
        """All tools, in the order in which they were registered."""
        return [*self._tools.values()]


def as_tool(given: Any) -> Tool:
    """What was handed in as a tool."""
    if isinstance(given, Tool):
        return given
    if all(hasattr(given, name) for name in ("name", "description", "parameters_schema", "execute")):
        schema = given.parameters_schema or {"type": "object"}
        return Tool(given.name, given.description, schema, given.execute)
    if callable(given):
        return tool(given)
    raise TypeError(f"{given!r} is not a tool: pass a function, or what `hotcell.tool` returns")


def tools_of(registry: Any, tools: Iterable[Any]) -> list[Tool]:
    """The tools of a registry, of ours or of another one's with the same shape, and further ones."""
    found: list[Tool] = []
    if registry is not None:
        known = registry.list()
        found.extend(as_tool(registry.get(one.name)) for one in known)
    found.extend(as_tool(one) for one in tools)
    return found


def handed(tools: Iterable[Tool]) -> list[tuple[str, str, str, Callable[..., tuple[bool, str]]]]:
    """Tools as the native half takes them."""
    return [(one.name, one.description, json.dumps(one.parameters), one._answer) for one in tools]


def _to_json(value: Any) -> str:
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json")
    return json.dumps(plain_value(value), ensure_ascii=False, allow_nan=False)


def _awaited(value: Awaitable[Any], loop: asyncio.AbstractEventLoop | None, call: Call) -> Any:
    """Awaits in the loop of whoever awaits the run, or in one of our own. Where the run is stopped, so is this."""

    async def whole() -> Any:
        return await value

    coroutine = whole()
    try:
        future = asyncio.run_coroutine_threadsafe(coroutine, loop or _own_loop())
    except BaseException:
        coroutine.close()
        if inspect.iscoroutine(value):
            value.close()
        raise
    call.when_stopped(future.cancel)
    return future.result()


_loop: asyncio.AbstractEventLoop | None = None
_lock = threading.Lock()


def _own_loop() -> asyncio.AbstractEventLoop:
    """The event loop for coroutines that runs call which nobody awaits."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="hotcell-coroutines", daemon=True).start()
        return _loop
