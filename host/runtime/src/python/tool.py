"""Runs in the Python cell: describes the functions of a module, or calls one of them.

What is wanted comes as the state: the name of the `module`, the `modules` that are known (the text and the file of each, or null
for one that is not to be had) and the `packages`, folders with more of them; for a call `function`, `arguments` and the `answers`
that a person gave so far; or the name of a `model`. The answer is one JSON object: `needs`, the names of modules that have to be
looked for first, or `tools`, or `model`, the schema of that model, or `models`, the names of those that there are, or `value`,
`asks` or `error`.
"""

import ast
import asyncio
import collections.abc
import enum
import importlib
import importlib.abc
import importlib.util
import inspect
import json
import linecache
import os
import re
import sys
import traceback
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
    """The few names of the frameworks around such files that mean something here, beside those that the host hands over."""

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

    def refusing(module, known):
        def absent(name):
            if name.startswith("__"):
                raise AttributeError(name)
            raise ImportError(f"of `{module}` a sealed cell has {', '.join(known)}, and no `{name}`")

        return absent

    kinds = {"AIMessage": "ai", "HumanMessage": "human", "SystemMessage": "system", "ToolMessage": "tool"}
    message = {"BaseMessage": Message, **{name: type(name, (Message,), {"type": kind}) for name, kind in kinds.items()}}
    # Parameters of tools are annotated with them, and the framework alone gives them.
    callbacks = {name: type(name, (), {}) for name in ("CallbackManagerForToolRun", "AsyncCallbackManagerForToolRun")}
    for name, contents in {
        "langchain_core": {},
        "langchain_core.callbacks": callbacks,
        "langchain_core.messages": message,
        "langchain": {},
        "langgraph": {},
        "langgraph.types": {"interrupt": interrupt},
    }.items():
        module = types.ModuleType(name)
        module.__path__ = []
        module.__dict__.update(contents)
        if contents:
            module.__dict__["__getattr__"] = refusing(name, contents)
        sys.modules[name] = module


class _Modules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules that the host handed over, before any others but those of the cell itself."""

    def __init__(self, modules):
        self._modules = {name: module for name, module in modules.items() if module}
        self.names = self._modules.keys()
        self.files = {module["file"] for module in self._modules.values()}

    def find_spec(self, name, path=None, target=None):
        if name not in self._modules:
            return None
        module = self._modules[name]
        spec = importlib.util.spec_from_loader(name, self, origin=module["file"], is_package=module["package"])
        spec.has_location = True
        return spec

    def exec_module(self, module):
        known = self._modules[module.__name__]
        file, source = known["file"], known["source"]
        # Tracebacks quote the source, which is in no file here.
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)


# Packages that many use and that have native code: to name a folder with them would not help.
_NATIVE = frozenset(
    ("aiohttp", "cryptography", "cv2", "faiss", "grpc", "lxml", "matplotlib", "numpy", "orjson", "pandas", "PIL",
     "polars", "psycopg", "psycopg2", "pyarrow", "pydantic_core", "scipy", "sentence_transformers", "sklearn",
     "spacy", "tensorflow", "tiktoken", "tokenizers", "torch", "transformers", "uvloop")
)


class _Explains(importlib.abc.MetaPathFinder):
    """Answers last, and says why a module cannot be had."""

    def find_spec(self, name, path=None, target=None):
        top, _, rest = name.partition(".")
        own = name.rpartition(".")[2]
        for folder in path if path is not None else sys.path:
            for file in _files(folder):
                if file.startswith(own + ".") and file.endswith((".so", ".pyd", ".dylib")):
                    raise ModuleNotFoundError(
                        f"No module named {name!r}: `{file}` is native code, which cannot run in a sealed cell; only packages "
                        "written in Python alone can be used",
                        name=name,
                    )
        if top in _STAND_INS and rest:
            raise ModuleNotFoundError(
                f"No module named {name!r}: of `{top}` a sealed cell has only {', '.join(f'`{one}`' for one in _STAND_INS[top])}",
                name=name,
            )
        if path is not None or name.startswith("_"):
            return None
        if top in sys.stdlib_module_names:
            raise ModuleNotFoundError(
                f"No module named {name!r}: this part of the standard library needs sockets, processes, threads or native code, "
                "which a sealed cell has not",
                name=name,
            )
        if top in _NATIVE:
            raise ModuleNotFoundError(
                f"No module named {name!r}: it has native code, which cannot run in a sealed cell; only packages written in Python "
                "alone can be used",
                name=name,
            )
        raise ModuleNotFoundError(
            f"No module named {name!r}: neither the project nor the cell has it. A folder or virtual environment with it can be "
            "named in `hotcell.toml`: `[python]` and below it `path = [\".venv\"]`",
            name=name,
        )


def _files(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []


_STAND_INS = {
    "langchain_core": ["langchain_core.callbacks", "langchain_core.messages", "langchain_core.tools"],
    "langchain": ["langchain.tools"],
    "langgraph": ["langgraph.types"],
    "pydantic": ["pydantic"],
}
# Those of them that the host hands over.
_HANDED = ("langchain_core.tools", "langchain.tools", "pydantic")


def _needs(modules):
    """The names that the modules import and that nobody has looked for yet."""
    needs = set()
    for name, module in modules.items():
        if not module:
            continue
        try:
            tree = ast.parse(module["source"])
        except (SyntaxError, ValueError):
            # Importing it tells what is wrong.
            continue
        package = name if module["package"] else name.rpartition(".")[0]
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                needs.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    above = package.split(".")[: len(package.split(".")) - node.level + 1]
                    base = ".".join([*above, *filter(None, [base])])
                needs.update(filter(None, [base, *(f"{base}.{alias.name}" for alias in node.names if alias.name != "*")]))
    parents = {".".join(name.split(".")[:count]) for name in needs for count in range(1, name.count(".") + 1)}
    foreign = sys.stdlib_module_names | _STAND_INS.keys()
    return sorted(
        name
        for name in needs | parents
        if name not in modules and (name in _HANDED or name.partition(".")[0] not in foreign)
    )


def _own_pydantic(folders):
    """Whether folders of the operator have a version of `pydantic` that is written in Python alone."""
    found = {file.partition(".")[0] for folder in folders for file in _files(folder)}
    return "pydantic" in found and "pydantic_core" not in found


def _load(wanted):
    known = wanted["modules"]
    if _own_pydantic(wanted.get("packages", [])):
        known = {name: module for name, module in known.items() if name != "pydantic"}
    modules = _Modules(known)
    sys.dont_write_bytecode = True
    sys.path[:] = wanted.get("packages", [])
    importlib.invalidate_caches()
    # A module of the project comes before one of the library with the same name, as in a folder of its own.
    for name in modules.names:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, modules)
    # Before the one that only says that there is nothing.
    sys.meta_path.insert(len(sys.meta_path) - 1, _Explains())
    return importlib.import_module(wanted["module"]), modules.files


def _told(error, files):
    """An error with the lines of the project's own that led to it."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename in files and not frame.filename.startswith("<")]
    text = "".join(traceback.format_exception_only(error)).rstrip()
    if not own:
        return text
    return text + "\nTraceback (most recent call last):\n" + "".join(traceback.format_list(own)).rstrip()


_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def _schema(hint):
    """The JSON schema of a type; anything goes where it is not known."""
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if hasattr(hint, "model_json_schema"):
        return hint.model_json_schema()
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        schema = _schema(parts[0])
        texts = [part for part in parts[1:] if isinstance(part, str)]
        for part in parts[1:]:
            schema = part.in_schema(schema) if hasattr(part, "in_schema") else schema
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


def _documented(function):
    """What the doc string says of the function, and of each of its arguments: under `Args:`, or as `:param name:`."""
    lines = (inspect.getdoc(function) or "").splitlines()
    kept, described, name, indent = [], {}, None, None
    for line in lines:
        depth = len(line) - len(line.lstrip())
        if indent is None and line.strip() in ("Args:", "Arguments:", "Parameters:"):
            indent, name = depth, None
        elif sphinx := re.match(r"\s*:param\s+(?:[^:]*\s)?\**(\w+)\s*:\s*(.*)", line):
            described[sphinx[1]] = sphinx[2].strip()
        elif indent is None:
            kept.append(line)
        elif line.strip() and depth <= indent:
            indent = None
            kept.append(line)
        elif entry := re.match(r"\s+\**(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)", line):
            name = entry[1]
            described[name] = entry[2].strip()
        elif name and line.strip():
            described[name] = f"{described[name]} {line.strip()}".strip()
    known = inspect.signature(function).parameters
    if not described or not described.keys() <= known.keys():
        return "\n".join(lines), {}
    return "\n".join(kept).strip(), described


def _parameters(function, documented):
    """The JSON schema of what a function takes."""
    own = getattr(function, "args_schema", None)
    if own is not None:
        schema = own if isinstance(own, dict) else own.model_json_schema()
        return {key: value for key, value in schema.items() if key != "description"} | {"additionalProperties": False}
    hints = typing.get_type_hints(function, include_extras=True)
    properties, required = {}, []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"the parameter `{name}` has no name by which it can be given")
        schema, default = _schema(hints.get(name, typing.Any)), parameter.default
        if hasattr(default, "in_schema"):
            schema, default = default.in_schema(schema), parameter.empty if default.is_required() else default.default
        if default is parameter.empty:
            required.append(name)
        elif isinstance(default, (str, int, float, bool)):
            schema["default"] = default
        if documented.get(name):
            schema.setdefault("description", documented[name])
        properties[name] = schema
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _describe(function):
    description, documented = _documented(function)
    return {
        "marks": getattr(function, "__marks__", {}),
        "description": description,
        "parameters": _parameters(function, documented),
    }


def _as_function(value):
    """A function, also that of an object that is a tool."""
    if hasattr(type(value), "__as_tool__"):
        return value.__as_tool__()
    return value if inspect.isfunction(value) else None


def _functions(module, modules):
    """The functions that the file defines, or has from others of the project, without those that it keeps to itself. Its own
    stand first."""
    named = [(name, _as_function(value)) for name, value in vars(module).items() if not name.startswith("_")]
    found = [(name, function) for name, function in named if function]
    # What stands in place of a library is nobody's own.
    known = {name for name, other in modules.items() if other and not other["file"].startswith("<")}
    own = [(name, function) for name, function in found if function.__module__ == module.__name__]
    others = [(name, function) for name, function in found if function.__module__ in known - {module.__name__}]
    return [*own, *others]


def _describe_all(module, modules):
    tools = {}
    for name, function in _functions(module, modules):
        try:
            tools[name] = _describe(function)
        except Exception as error:
            tools[name] = {"error": f"{type(error).__name__}: {error}"}
            continue
        tools[name]["own"] = function.__module__ == module.__name__
    return {"tools": tools}


def _describe_model(module, files, name):
    """The JSON schema of a model that the module has; without one of that name, the names of those that it has."""
    models = {
        known: value
        for known, value in vars(module).items()
        if isinstance(value, type) and hasattr(value, "model_json_schema") and value.__module__.partition(".")[0] != "pydantic"
    }
    if name not in models:
        return {"models": list(models)}
    try:
        return {"model": json.loads(json.dumps(models[name].model_json_schema(), default=_plain, allow_nan=False))}
    except Exception as error:
        return {"error": _told(error, files)}


def _plain(value):
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    return str(value)


def _call(module, files, wanted):
    function = dict(_functions(module, wanted["modules"]))[wanted["function"]]
    arguments = wanted["arguments"]
    try:
        value = function(*arguments) if isinstance(arguments, list) else function(**arguments)
        if inspect.iscoroutine(value):
            value = asyncio.run(value)
        return {"value": json.loads(json.dumps(value, default=_plain, allow_nan=False))}
    except _Question as question:
        return {"asks": str(question)}
    except Exception as error:
        return {"error": _told(error, files)}


def _answer(wanted):
    if "function" not in wanted and (needs := _needs(wanted["modules"])):
        return {"needs": needs}
    files = {module["file"] for module in wanted["modules"].values() if module}
    try:
        module, files = _load(wanted)
    except Exception as error:
        return {"error": _told(error, files)}
    if "model" in wanted:
        return _describe_model(module, files, wanted["model"])
    return _call(module, files, wanted) if "function" in wanted else _describe_all(module, wanted["modules"])


def _main():
    wanted = _wanted()
    # What the file prints is no answer.
    out, sys.stdout = sys.stdout, sys.stderr
    for name in ("GRAPH_STATE", "GRAPH_STATE_FILE"):
        os.environ.pop(name, None)
    if wanted.get("agent"):
        # What such files know from Loki.
        os.environ.update(LLM_ROOT_DIR="/llm", LLM_AGENT_NAME=wanted["agent"])
        os.environ["LLM_AGENT_ROOT_DIR"] = "/llm/agents/" + wanted["agent"]
        os.environ["LLM_AGENT_FUNC"] = wanted.get("function", "")
    _stand_ins(wanted.get("answers", []))
    json.dump(_answer(wanted), out)
    out.flush()


_main()
