"""What files of tools import as `langchain_core.tools`, for the Python cell: functions and objects that are tools.

A tool is a function here, whichever way it was made. What the framework has beyond that is an error that names it.
"""

import functools
import inspect
import sys
import typing

# What the framework gives a tool, and no model does.
_OF_THE_FRAMEWORK = ("run_manager", "callbacks")


class ToolException(Exception):
    """What a tool raises that cannot do what it is asked."""


def _has_model(hint):
    return hasattr(hint, "model_validate") or any(map(_has_model, typing.get_args(hint)))


def _prepared(function, args_schema, arguments):
    """Arguments as a function takes them: models where it says so, and what stands for those that are not given."""
    if isinstance(args_schema, type):
        model = args_schema(**arguments)
        return {name: getattr(model, name) for name in args_schema.model_fields}
    prepared = dict(arguments)
    hints = typing.get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in prepared and hasattr(parameter.default, "get_default"):
            prepared[name] = parameter.default.get_default()
        elif name in prepared and _has_model(hints.get(name)):
            prepared[name] = sys.modules["pydantic"].validated(name, hints[name], prepared[name])
    return prepared


async def _first_of(value):
    return (await value)[0]


def _as_tool(function, name=None, description=None, args_schema=None, response_format="content"):
    @functools.wraps(function)
    def called(*places, **arguments):
        if places:
            return function(*places, **arguments)
        value = function(**_prepared(function, args_schema, arguments))
        if response_format != "content_and_artifact":
            return value
        return _first_of(value) if inspect.isawaitable(value) else value[0]

    def invoke(given, config=None, **_):
        if not isinstance(given, dict):
            given = {next(iter(inspect.signature(called).parameters)): given}
        return called(**given)

    async def ainvoke(given, config=None, **_):
        value = invoke(given)
        return await value if inspect.isawaitable(value) else value

    if description:
        called.__doc__ = description
    called.name, called.description, called.func = name or function.__name__, inspect.getdoc(called) or "", function
    called.args_schema, called.invoke, called.run, called.ainvoke = args_schema, invoke, invoke, ainvoke
    return called


def tool(
    *given,
    description=None,
    args_schema=None,
    response_format="content",
    return_direct=False,
    infer_schema=True,
    parse_docstring=False,
    error_on_invalid_docstring=True,
):
    """A function as a tool: `@tool`, or `@tool("name", ...)`."""
    names = [one for one in given if isinstance(one, str)]
    functions = [one for one in given if not isinstance(one, str)]

    def decorate(function):
        return _as_tool(function, names[0] if names else None, description, args_schema, response_format)

    return decorate(functions[0]) if functions else decorate


class StructuredTool:
    """A function as a tool."""

    @staticmethod
    def from_function(func=None, coroutine=None, name=None, **settings):
        made = tool(name or (func or coroutine).__name__, **settings)
        return made(func or coroutine)


class BaseTool:
    """An object as a tool: what it does is its `_run`, or `_arun`."""

    name: str = ""
    description: str = ""
    args_schema: typing.Any = None

    def __init__(self, **given):
        for name in {name: None for kind in reversed(type(self).__mro__) for name in inspect.get_annotations(kind)}:
            value = getattr(type(self), name, ...)
            if hasattr(value, "get_default"):
                value = ... if value.is_required() else value.get_default()
            value = given.get(name, value)
            if value is ... and not name.startswith("_"):
                raise TypeError(f"the tool `{type(self).__name__}` is made without its `{name}`")
            if value is not ...:
                setattr(self, name, value)

    def _run(self, *_, **__):
        raise NotImplementedError(f"the tool `{type(self).__name__}` has no `_run`")

    async def _arun(self, *_, **__):
        raise NotImplementedError(f"the tool `{type(self).__name__}` has no `_run`")

    def __as_tool__(self):
        """The function that this tool is."""
        run = self._arun if type(self)._run is BaseTool._run else self._run

        @functools.wraps(run)
        def called(**arguments):
            return run(**arguments)

        signature = inspect.signature(run)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in _OF_THE_FRAMEWORK]
        called.__signature__ = signature.replace(parameters=kept)
        made = _as_tool(called, self.name, self.description, self.args_schema)
        hints = {name: hint for name, hint in run.__annotations__.items() if name not in _OF_THE_FRAMEWORK}
        called.__annotations__, made.__annotations__ = hints, dict(hints)
        return made

    def invoke(self, given, config=None, **_):
        return self.__as_tool__().invoke(given)

    async def ainvoke(self, given, config=None, **_):
        return await self.__as_tool__().ainvoke(given)

    run = invoke


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    known = "BaseTool, StructuredTool, ToolException, tool"
    raise ImportError(f"of `{__name__}` a sealed cell has {known}, and no `{name}`")
