"""Calls of the host, from JSON texts to functions and back. Knows nothing of the generated bindings."""

import json
from typing import Any

from ._host import to_json
from ._registry import declared, outcome, read_object
from ._results import Accepted, Outcome, Request, Verdict
from ._shapes import plain_value, read_fields
from .errors import InvalidInput, PluginError


def _parse(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"{what} is not JSON: {error}") from None


def call_tool(name: str, arguments: str) -> str:
    """Calls a tool and gives its result as JSON."""
    tool = declared.tools.get(name)
    if tool is None:
        names = ", ".join(f"`{one}`" for one in declared.tools) or "none"
        raise InvalidInput(f"there is no tool `{name}`; there are: {names}")
    found = read_fields(tool.inputs, _parse(arguments, "the text of the arguments"), "")
    return to_json(plain_value(tool.function(**found)), f"the result of the tool `{name}`")


def run_script(state: str) -> str:
    """Runs the script on the state and gives the object to merge."""
    script = declared.script
    if script is None:
        raise PluginError("the plugin has no function with `@script`")
    values = [read_object(one, _parse(state, "the state"), "state") for one in script.inputs]
    result = plain_value(script.function(*values))
    result = {} if result is None else result
    if not isinstance(result, dict):
        raise PluginError(f"the script returned {type(result).__name__}; it has to return an object (a dict)")
    return to_json(result, "the result of the script")


def run_node(node_type: str, fields: str, inputs: str) -> Outcome:
    """Runs a node; the outputs are a JSON text."""
    node = declared.nodes.get(node_type)
    if node is None:
        names = ", ".join(f"`{one}`" for one in declared.nodes) or "none"
        raise InvalidInput(f"there is no node type `{node_type}`; there are: {names}")
    texts = (("fields", fields), ("inputs", inputs))
    values = [
        read_object(one, _parse(text, f"the text of the {what}"), what) for one, (what, text) in zip(node.inputs, texts)
    ]
    given = outcome(node, node.function(*values))
    return Outcome(to_json(given.outputs, f"the outputs of the node type `{node_type}`"), given.branch, given.metadata)


def on_event(point: str, event: str) -> Verdict:
    """Asks the hook; the event of a `change` is a JSON text."""
    hook = declared.hooks.get(point)
    if hook is None:
        return Verdict("proceed")
    verdict = hook.function(_parse(event, "the event"))
    if verdict is None:
        return Verdict("proceed")
    if not isinstance(verdict, Verdict):
        raise PluginError(
            f"the hook for `{point}` returned {type(verdict).__name__}; return `proceed()`, `change(event)`, "
            "`refuse(reason)` or nothing"
        )
    if verdict.kind == "change":
        return Verdict(
            "change", event=to_json(plain_value(verdict.event), f"the event that the hook for `{point}` changed")
        )
    return verdict


def _with_config(request: Request) -> Request:
    if declared.connector is None:
        raise PluginError("the plugin has no function with `@connector`")
    shape = declared.connector.inputs
    request.input = read_object(None, _parse(request.input, "the input"), "input")
    config = _parse(request.config, "the configuration")
    request.config = config if shape is None else shape.read(config, "config")
    return request


def send(request: Request) -> Any:
    """Hands over; gives the answer as JSON, or `Accepted`. Input and configuration of the request are JSON texts."""
    request = _with_config(request)
    answer = declared.connector.function(request)
    return answer if isinstance(answer, Accepted) else to_json(plain_value(answer), "the connector's answer")


def receive(request: Request, body: str) -> str:
    """Turns what came by the callback into the answer."""
    request = _with_config(request)
    value = _parse(body, "the body of the callback")
    if declared.receive is None:
        return to_json(value, "the answer")
    return to_json(plain_value(declared.receive(request, value)), "the connector's answer")
