"""Runs in the Python cell: describes the functions of a file, or calls one of them.

What is wanted comes as the state: `file` and `source` of the file, and for a call `function`, `arguments` and the
`answers` that a person gave so far. The answer is one JSON object: `tools`, or `value`, `asks` or `error`.
"""

import asyncio
import collections.abc
import enum
import inspect
import json
import os
import sys
import types
import typing


class _Question(BaseException):
    """Leaves a function that asks a person, also through `except Exception`."""


def _wanted():
    if "GRAPH_STATE" in os.environ:
        return json.loads(os.environ["GRAPH_STATE"])
    with open(os.environ["GRAPH_STATE_FILE"], encoding="utf-8") as file:
        return json.load(file)


def _stand_ins(answers):
    """The few names of the frameworks around such files that mean something here."""

    def tool(function=None, *_, **__):
        if callable(function):
            return function
        return lambda decorated: decorated

    class Message:
        def __init__(self, content="", **fields):
            self.content = content
            self.__dict__.update(fields)

        def __str__(self):
            return str(self.content)

    left = list(answers)

    def interrupt(value):
        if left:
            return left.pop(0)
        raise _Question(str(getattr(value, "content", value)))

    message = {name: type(name, (Message,), {}) for name in ("AIMessage", "HumanMessage", "SystemMessage")}
    for name, contents in {
        "langchain_core": {},
        "langchain_core.tools": {"tool": tool},
        "langchain_core.messages": message,
        "langchain": {},
        "langchain.tools": {"tool": tool},
        "langgraph": {},
        "langgraph.types": {"interrupt": interrupt},
    }.items():
        module = types.ModuleType(name)
        module.__path__ = []
        module.__dict__.update(contents)
        sys.modules[name] = module


def _load(file, source):
    name = os.path.basename(file).rsplit(".", 1)[0]
    module = types.ModuleType(name)
    module.__file__ = "/" + file
    sys.modules[name] = module
    exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)
    return module


_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def _schema(hint):
    """The JSON schema of a type; anything goes where it is not known."""
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        schema = _schema(parts[0])
        texts = [part for part in parts[1:] if isinstance(part, str)]
        return {**schema, "description": texts[0]} if texts else schema
    if origin is typing.Literal:
        return {"enum": list(parts)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_schema(part) for part in parts]}
    if origin in (tuple, set, frozenset, list, collections.abc.Sequence, collections.abc.Iterable):
        items = [part for part in parts if part is not Ellipsis]
        return {"type": "array", "items": _schema(items[0])} if len(items) == 1 else {"type": "array"}
    if hint in (list, tuple, set, frozenset):
        return {"type": "array"}
    if origin in (dict, collections.abc.Mapping):
        return {"type": "object", "additionalProperties": _schema(parts[1])} if len(parts) == 2 else {"type": "object"}
    if hint is dict:
        return {"type": "object"}
    if typing.is_typeddict(hint):
        fields = typing.get_type_hints(hint, include_extras=True)
        return {
            "type": "object",
            "properties": {name: _schema(field) for name, field in fields.items()},
            "required": sorted(hint.__required_keys__),
        }
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    return {}


def _describe(function):
    hints = typing.get_type_hints(function, include_extras=True)
    properties, required = {}, []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"the parameter `{name}` has no name by which it can be given")
        schema = _schema(hints.get(name, typing.Any))
        if parameter.default is parameter.empty:
            required.append(name)
        elif isinstance(parameter.default, (str, int, float, bool)):
            schema["default"] = parameter.default
        properties[name] = schema
    return {
        "description": inspect.getdoc(function) or "",
        "parameters": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
    }


def _functions(module):
    """The functions that the file itself defines, without those that it keeps to itself."""
    for name, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_"):
            yield name, value


def _describe_all(module):
    tools = {}
    for name, function in _functions(module):
        try:
            tools[name] = _describe(function)
        except Exception as error:
            tools[name] = {"error": f"{type(error).__name__}: {error}"}
    return {"tools": tools}


def _plain(value):
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    return str(value)


def _call(module, wanted):
    function = dict(_functions(module))[wanted["function"]]
    try:
        value = function(**wanted["arguments"])
        if inspect.iscoroutine(value):
            value = asyncio.run(value)
        return {"value": json.loads(json.dumps(value, default=_plain, allow_nan=False))}
    except _Question as question:
        return {"asks": str(question)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _main():
    wanted = _wanted()
    # What the file prints is no answer.
    out, sys.stdout = sys.stdout, sys.stderr
    for name in ("GRAPH_STATE", "GRAPH_STATE_FILE"):
        os.environ.pop(name, None)
    _stand_ins(wanted.get("answers", []))
    module = _load(wanted["file"], wanted["source"])
    answer = _call(module, wanted) if "function" in wanted else _describe_all(module)
    json.dump(answer, out)
    out.flush()


_main()
