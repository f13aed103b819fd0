"""Tools of other plugins within reach of the run. Capability `tool`; calls count against the run's budget."""

import json
from typing import Any

from . import _host


def call(name: str, /, **arguments: Any) -> Any:
    """Calls the tool `name` with the arguments and gives its result."""
    text = _host.to_json(arguments, f"the arguments for `{name}`")
    with _host.errors():
        return json.loads(_host.interface("other_tools").call(name, text))
