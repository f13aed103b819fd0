"""The graph's state, read lazily. For scripts and nodes."""

import json
from typing import Any

from . import _host


def get(path: str, default: Any = None) -> Any:
    """The value at a dotted path such as `order.items.0.name`, or `default` where the path leads nowhere."""
    found = _host.interface("state").get(path)
    return default if found is None else json.loads(found)


def all() -> dict[str, Any]:
    """The whole state."""
    return json.loads(_host.interface("state").all())
