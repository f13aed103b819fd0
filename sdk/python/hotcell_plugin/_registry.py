"""The decorators, and what they collect."""

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ._results import Outcome, Request
from ._shapes import Shape, fields_of, object_shape, parameters, plain_value, read_fields, shape
from .docstrings import parse
from .errors import DeclarationError, InvalidInput, PluginError

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
POINTS = tuple(
    f"{when}-{what}"
    for what in ("run", "node", "model-call", "tool-call", "agent-call", "question", "skill-load", "skill-unload")
    for when in ("before", "after")
) + ("node-failed",)


@dataclass
class Declared:
    """A function that the host calls."""

    function: Callable[..., Any]
    #: Its entry in the description, without what only the caller knows.
    described: dict[str, Any]
    #: Its parameters, or the shapes of the objects that it takes.
    inputs: Any = None
    #: The shape of what comes out, where it was declared.
    output: Shape | None = None


@dataclass
class Plugin:
    """Everything that the decorators of one plugin collected."""

    tools: dict[str, Declared] = field(default_factory=dict)
    nodes: dict[str, Declared] = field(default_factory=dict)
    hooks: dict[str, Declared] = field(default_factory=dict)
    script: Declared | None = None
    connector: Declared | None = None
    receive: Callable[..., Any] | None = None


#: The plugin that the imported modules declare.
declared = Plugin()


def tool(function: Any = None, *, name: str | None = None, description: str | None = None, read_only: bool = False):
    """Makes a function with typed parameters a tool."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        called = _name(name or function.__name__, "tool", declared.tools)
        documentation = parse(function.__doc__)
        fields = parameters(function, f"tool `{called}`", documentation.entries)
        entry = {"name": called, "description": description or documentation.text}
        if read_only:
            entry["read_only"] = True
        entry["parameters"] = object_shape(fields, lambda found: found).schema
        if (returns := _returned(function)) is not None:
            entry["returns"] = returns
        declared.tools[called] = Declared(function, entry, fields)
        return function

    return declare if function is None else declare(function)


def script(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function the script. It has no parameter, or one that gets the state: a `dict` gets all of it, a dataclass
    or TypedDict the keys that it names. What it returns, an object, is merged into the state."""
    if declared.script is not None:
        raise DeclarationError(
            f"`{function.__name__}`: a plugin has one script, and `{declared.script.function.__name__}` is it"
        )
    inputs = _objects(function, "script", most=1)
    declared.script = Declared(function, {}, inputs)
    return function


def node(name: str, *, branches: tuple[str, ...] | list[str] = (), description: str | None = None):
    """Makes a function a node type. Its parameters are the fields that the graph's author writes and, if wanted, the
    inputs, each a dataclass, a TypedDict or `dict`. It returns its outputs, or an `Outcome` with the branch to take."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        called = _name(name, "node type", declared.nodes)
        where = f"node type `{called}`"
        inputs = _objects(function, where, most=2)
        entry = {"type": called, "description": description or parse(function.__doc__).text}
        for key, one in zip(("fields", "inputs"), inputs):
            entry[key] = {"type": "object"} if one is None else one.schema
        output = None
        returned = typing.get_type_hints(function, include_extras=True).get("return", Any)
        if typing.get_origin(returned) is Outcome:
            returned = typing.get_args(returned)[0]
        if returned not in (Any, dict, Outcome, inspect.Signature.empty):
            output = shape(returned, f"{where}, its outputs")
            entry["outputs"] = output.schema
        if branches:
            entry["branches"] = list(branches)
        declared.nodes[called] = Declared(function, entry, inputs, output)
        return function

    if not isinstance(name, str):
        raise DeclarationError('`@node` needs the name of the node type: `@node("lookup")`')
    return declare


def hook(point: str, *, description: str | None = None):
    """Makes a function a hook: it gets the event and returns `proceed()` (or nothing), `change(event)` or
    `refuse(reason)`."""
    if point not in POINTS:
        raise DeclarationError(f"`{point}` is not a point of a run; there are: {', '.join(POINTS)}")

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        if point in declared.hooks:
            raise DeclarationError(f"there are two hooks for `{point}`; a plugin has one for each point")
        entry = {"point": point, "description": description or parse(function.__doc__).text}
        declared.hooks[point] = Declared(function, entry)
        return function

    return declare


def connector(*, modes: tuple[str, ...] | list[str] = ("sync",), description: str | None = None):
    """Makes a function the connector: it gets a `Request` and returns the answer, or `accepted()` in callback mode.
    `Request[Config]` says which type the configuration has."""
    if unknown := [mode for mode in modes if mode not in ("sync", "callback")]:
        raise DeclarationError(f"`{unknown[0]}` is not a mode of a connector; there are `sync` and `callback`")

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        if declared.connector is not None:
            raise DeclarationError("a plugin has one connector, and there are two")
        hints = typing.get_type_hints(function, include_extras=True)
        hints.pop("return", None)
        config = None
        for hint in hints.values():
            if typing.get_origin(hint) is Request:
                config = shape(typing.get_args(hint)[0], "the connector's configuration")
        entry = {"description": description or parse(function.__doc__).text, "modes": list(modes)}
        if config is not None:
            entry["config"] = config.schema
        declared.connector = Declared(function, entry, config)
        return function

    return declare


def receive(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function of the request and the body turn what came by the callback into the answer. Without one, the body
    is the answer."""
    if declared.receive is not None:
        raise DeclarationError("there are two functions with `@receive`; a connector has one")
    declared.receive = function
    return function


def _returned(function: Callable[..., Any]) -> dict[str, Any] | None:
    """The schema of what a tool answers, where its annotation says of which form that is."""
    returned = typing.get_type_hints(function, include_extras=True).get("return", Any)
    if returned in (Any, type(None)):
        return None
    try:
        return shape(returned, f"`{function.__name__}`, its result").schema or None
    except DeclarationError:
        # What it answers is whatever JSON it gives.
        return None


def _name(name: str, what: str, taken: dict[str, Any]) -> str:
    if not _NAME.fullmatch(name):
        raise DeclarationError(f"the {what} name `{name}` is not made of 1 to 64 letters, digits, `_`, `-` and `.`")
    if name.lower() in (one.lower() for one in taken):
        raise DeclarationError(f"the {what} name `{name}` is there twice")
    return name


def _objects(function: Callable[..., Any], where: str, most: int) -> list[Shape | None]:
    """The shapes of the objects that a function takes; None for one that takes any."""
    hints = typing.get_type_hints(function, include_extras=True)
    names = list(inspect.signature(function).parameters)
    if len(names) > most:
        raise DeclarationError(
            f"{where}: `{function.__name__}` has {len(names)} parameters, and at most {most} can be filled"
        )
    found: list[Shape | None] = []
    for name in names:
        hint = hints.get(name, dict)
        place = f"{where}, parameter `{name}`"
        if hint is dict or typing.get_origin(hint) is dict or hint is Any:
            found.append(None)
        elif dataclasses.is_dataclass(hint):
            found.append(_part(hint, place, lambda read, hint=hint: hint(**read)))
        elif typing.is_typeddict(hint):
            found.append(_part(hint, place, lambda read: read))
        else:
            raise DeclarationError(f"{place} has to be a dataclass, a TypedDict or `dict`")
    return found


def _part(kind: type, place: str, build: Callable[[dict[str, Any]], Any]) -> Shape:
    """An object of which the plugin takes the fields it names; others may be there."""
    fields = fields_of(kind, place, (kind,))
    schema = object_shape(fields, build).schema
    del schema["additionalProperties"]
    return Shape(schema, lambda value, where: build(read_fields(fields, value, where, strict=False)))


def read_object(one: Shape | None, value: Any, where: str) -> Any:
    """An object of the host's, as the function wants it."""
    if one is not None:
        return one.read(value, where)
    if not isinstance(value, dict):
        raise InvalidInput(f"{where} must be an object")
    return value


def outcome(declaration: Declared, returned: Any) -> Outcome:
    """What a node's function returned, checked against what it declares."""
    name = declaration.described["type"]
    given = returned if isinstance(returned, Outcome) else Outcome(returned)
    outputs = plain_value({} if given.outputs is None else given.outputs)
    if not isinstance(outputs, dict):
        raise PluginError(f"node type `{name}` returned {type(returned).__name__}; its outputs have to be an object")
    branches = declaration.described.get("branches", [])
    if branches and given.branch not in branches:
        raise PluginError(f"node type `{name}` left by the branch {given.branch!r}; it declares {', '.join(branches)}")
    if not branches and given.branch is not None:
        raise PluginError(f"node type `{name}` left by the branch `{given.branch}`, but it declares no branches")
    return Outcome(outputs, given.branch, given.metadata)
