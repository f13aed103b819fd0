"""Runs one call outside a cell: `python3 -m hotcell_plugin.native MODULE FOLDER INTERFACES`.

The call is the first line of standard input, a JSON object. What the plugin asks of the host goes out as a line, and the
answer comes back as one. What it prints goes to standard error. `hotcell plugin test --fast` is at the other end.
"""

import importlib
import json
import os
import sys
from typing import Any

from . import _calls, _host
from ._places import authored, words
from ._results import Accepted, Request
from .errors import DeclarationError, Denied, InvalidInput, PluginError, Unavailable
from .http import Response

_KINDS = {"invalid-input": InvalidInput, "denied": Denied, "unavailable": Unavailable}
_lines = sys.stdout


def _say(**said: Any) -> None:
    _lines.write(json.dumps(said) + "\n")
    _lines.flush()


def _ask(function: str, **arguments: Any) -> Any:
    _say(ask={"function": function, "arguments": arguments})
    answer = json.loads(sys.stdin.readline())
    if error := answer.get("error"):
        raise _KINDS.get(error["kind"], PluginError)(error["message"])
    return answer["value"]


class _Functions:
    def __init__(self, **functions: Any):
        for name, function in functions.items():
            setattr(self, name, function)


def _kept(key: str) -> bytes | None:
    found = _ask("kv.get", key=key)
    return None if found is None else bytes(found)


def _send(method: str, url: str, headers: dict[str, str], body: bytes) -> Response:
    reply = _ask("http.send", method=method, url=url, headers=headers, body=body.decode("utf-8", "replace"))
    headers = {name.lower(): value for name, value in reply["headers"].items()}
    return Response(reply["status"], headers, reply["body"].encode())


def _bind(wanted: list[str]) -> None:
    interfaces = {
        "log": _Functions(log=lambda level, message: _say(log={"level": level, "message": message})),
        "progress": _Functions(
            report=lambda done, total, message: _say(progress={"done": done, "total": total, "message": message})
        ),
        "config": _Functions(get=lambda key: _ask("config.get", key=key)),
        "state": _Functions(get=lambda path: _ask("state.get", path=path), all=lambda: _ask("state.all")),
        "ask": _Functions(ask=lambda question: _ask("ask.ask", question=question)),
        "secrets": _Functions(placeholder=lambda name: _ask("secrets.placeholder", name=name)),
        "llm": _Functions(complete=lambda request: _ask("llm.complete", request=request)),
        "other_tools": _Functions(call=lambda name, text: _ask("other_tools.call", name=name, arguments=text)),
        "http": _Functions(send=_send),
        "files": _Functions(
            read=lambda path: bytes(_ask("files.read", path=path)),
            write=lambda path, contents: _ask("files.write", path=path, contents=list(contents)),
            entries=lambda path: _ask("files.entries", path=path),
            make_directory=lambda path: _ask("files.make_directory", path=path),
            remove=lambda path: _ask("files.remove", path=path),
        ),
        "kv": _Functions(
            get=_kept,
            set=lambda key, value: _ask("kv.set", key=key, value=list(value)),
            delete=lambda key: _ask("kv.delete", key=key),
            keys=lambda prefix: _ask("kv.keys", prefix=prefix),
        ),
    }
    for name in wanted:
        _host.bind(name, interfaces[name])


def _connect(order: dict[str, Any]) -> None:
    callback = order["callback"]
    request = Request(
        order["input"], order["config"], callback and callback["url"], callback and callback["session"], {}
    )
    if order["body"] is not None:
        return _say(text=_calls.receive(request, order["body"]))
    answer = _calls.send(request)
    return _say(accepted=None) if isinstance(answer, Accepted) else _say(text=answer)


def _perform(order: dict[str, Any]) -> None:
    if tool := order.get("tool"):
        _say(text=_calls.call_tool(tool["name"], tool["arguments"]))
    elif node := order.get("node"):
        outcome = _calls.run_node(node["type"], node["fields"], node["inputs"])
        _say(outcome={"outputs": outcome.outputs, "branch": outcome.branch})
    elif hook := order.get("hook"):
        verdict = _calls.on_event(hook["point"], hook["event"])
        if verdict.kind == "change":
            _say(change=verdict.event)
        elif verdict.kind == "refuse":
            _say(refuse=verdict.reason)
        else:
            _say(proceed=None)
    elif connector := order.get("connector"):
        _connect(connector)
    else:
        declared = _calls.declared.script
        state = _host.interface("state").all() if declared is not None and declared.inputs else "{}"
        _say(text=_calls.run_script(state))


def main() -> int:
    """Imports the module and makes the call."""
    module, folder, interfaces = sys.argv[1:4]
    sys.path.insert(0, folder)
    authored(folder, os.path.relpath(folder))
    sys.stdout = sys.stderr
    order = json.loads(sys.stdin.readline())
    try:
        importlib.import_module(module)
        if "random" in sys.modules:
            sys.modules["random"].seed()
        _bind(interfaces.replace("-", "_").split(","))
        _perform(order)
    except PluginError as error:
        _say(failed={"kind": error.kind, "message": error.message})
    except DeclarationError as error:
        _say(failed={"kind": "other", "message": str(error)})
    except Exception as error:
        _say(failed={"kind": "other", "message": words(error)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
