"""What files of LeafMesh import as `leafmesh`: the decorators of agent functions and of tools, for the Python cell.

A decorated function keeps its name. What has to be called at another moment than the function itself is put beside it under a
name of its own, where the host finds it: `NAME__pre_compose` before the model is asked, and `NAME__compose__TARGET` when the agent
`TARGET` is called.
"""

import functools
import inspect
import re
import sys

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ARGUMENTS = ("Args:", "Arguments:", "Parameters:")
_INPUT = ("input_data", "input", "data")
_CONTEXT = ("context", "ctx")


async def _given(function, result, input_data, context):
    """Calls a function with as many of these as it takes: one, the result; two, with the context; three, with the input."""
    arguments = [result, context]
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = [None]
    if all(parameter is not None for parameter in parameters):
        places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        needed = [one for one in places if one.default is one.empty]
        if len(needed) > 2:
            arguments = [result, input_data, context]
        elif not any(one.kind is one.VAR_POSITIONAL for one in parameters):
            arguments = arguments[: len(places)]
    else:
        arguments = [result]
    value = function(*arguments)
    return await value if inspect.isawaitable(value) else value


async def _prepared(processor, input_data, context):
    """Calls a processor: by the names of its parameters where they say what they are, otherwise with the input and the context."""
    places = [
        one
        for one in inspect.signature(processor).parameters.values()
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    named = {**dict.fromkeys(_INPUT, input_data), **dict.fromkeys(_CONTEXT, context)}
    if places and all(one.name in named for one in places):
        arguments = [named[one.name] for one in places]
    else:
        arguments = [input_data, context][: len(places)]
    value = processor(*arguments)
    return await value if inspect.isawaitable(value) else value


def _callable(what, of):
    if not callable(what):
        raise TypeError(f"@{of} takes functions, and `{what!r}` is none")
    return what


def _after(function, of, follow):
    """A function with the same name that goes on with the result of another: `follow(result, input_data, context)`."""
    _callable(function, of)

    @functools.wraps(function)
    async def followed(llm_response=None, input_data=None, context=None):
        result = function(llm_response, input_data, context)
        if inspect.isawaitable(result):
            result = await result
        return await follow(result, input_data, context)

    return followed


def _beside(function, suffix, companion):
    """Puts a function into the module of another."""
    name = f"{function.__name__}__{suffix}"
    companion.__name__ = companion.__qualname__ = name
    companion.__module__ = function.__module__
    vars(sys.modules[function.__module__])[name] = companion


def chain(*steps):
    """Functions that work on the result, one after the other: each is given what the one before it gave."""
    for step in steps:
        _callable(step, "chain")

    async def follow(result, input_data, context):
        for step in steps:
            result = await _given(step, result, input_data, context)
        return result

    return lambda function: _after(function, "chain", follow)


def chain_with_results(*steps):
    """As `chain`; what every step gave is kept beside what the agent itself gave."""
    for step in steps:
        _callable(step, "chain_with_results")

    async def follow(main, input_data, context):
        result, results = main, []
        for step in steps:
            result = await _given(step, result, input_data, context)
            results.append(result)
        return {"main_result": main, "chain_results": results}

    return lambda function: _after(function, "chain_with_results", follow)


def conditional_chain(condition, *steps, otherwise=None):
    """As `chain`, if the condition holds for the result; if not, `otherwise` (one function) works on it, if there is one."""
    for step in (condition, *steps, *filter(None, [otherwise])):
        _callable(step, "conditional_chain")

    async def follow(result, input_data, context):
        holds = await _given(condition, result, input_data, context)
        for step in steps if holds else filter(None, [otherwise]):
            result = await _given(step, result, input_data, context)
        return result

    return lambda function: _after(function, "conditional_chain", follow)


def pre_compose(context_processor=None, input_processor=None, others_processor=None):
    """Prepares data before the model is asked; they are `context["prepared_data"]`."""
    processors = {
        "business_context": context_processor,
        "clean_user_input": input_processor,
        "others": others_processor,
    }
    processors = {name: _callable(one, "pre_compose") for name, one in processors.items() if one is not None}

    def decorate(function):
        async def prepare(input_data, context):
            return {name: await _prepared(one, input_data, context) for name, one in processors.items()}

        _beside(_callable(function, "pre_compose"), "pre_compose", prepare)
        return function

    return decorate


def compose(**shapers):
    """Shapes what agents are given that are called with the result: each by the function of its name."""
    for shaper in shapers.values():
        _callable(shaper, "compose")

    def decorate(function):
        _callable(function, "compose")
        for target, shaper in shapers.items():

            async def shape(result, context, shaper=shaper):
                return await _given(shaper, result, {}, context)

            _beside(function, f"compose__{target}", shape)
        return function

    return decorate


def _tool(decorator, name, description, marks):
    def decorate(function):
        _callable(function, decorator)
        known = name or function.__name__
        if not _TOOL_NAME.fullmatch(known):
            raise ValueError(f"@{decorator}: `{known}` cannot be the name of a tool: letters, digits, `_` and `-`, 64 of them at most")
        if description:
            lines = (inspect.getdoc(function) or "").splitlines()
            begin = next((number for number, line in enumerate(lines) if line.strip() in _ARGUMENTS), len(lines))
            function.__doc__ = "\n".join([description, *(["", *lines[begin:]] if lines[begin:] else [])])
        function.__marks__ = marks
        vars(sys.modules[function.__module__])[known] = function
        return function

    if callable(name):
        function, name = name, None
        return decorate(function)
    return decorate


def global_tool(name=None, description=None, category=None, allowed_agents=None, requires_confirmation=False):
    """A tool that every agent may have, or those of `allowed_agents`."""
    marks = {"category": category, "allowed": allowed_agents, "confirm": bool(requires_confirmation)}
    return _tool("global_tool", name, description, marks)


def tool(name=None, description=None, category=None, requires_confirmation=False):
    """A tool."""
    return _tool("tool", name, description, {"category": category, "confirm": bool(requires_confirmation)})


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    known = "chain, chain_with_results, compose, conditional_chain, global_tool, pre_compose, tool"
    raise ImportError(f"of `leafmesh` a sealed cell has {known}, and no `{name}`; connectors are set in the configuration")
