"""A small store of the plugin's own that outlives the call and the run. Capability `kv`."""

import json
from typing import Any

from . import _host


def get(key: str) -> bytes | None:
    """The bytes under `key`, or None. A key has 1 to 256 bytes."""
    with _host.errors():
        return _host.interface("kv").get(key)


def get_text(key: str) -> str | None:
    """The text under `key`, or None."""
    found = get(key)
    return None if found is None else found.decode("utf-8")


def get_json(key: str) -> Any:
    """The JSON value under `key`, or None."""
    found = get(key)
    return None if found is None else json.loads(found)


def set(key: str, value: bytes | str) -> None:
    """Puts `value` under `key`, in the place of what was there."""
    with _host.errors():
        _host.interface("kv").set(key, value.encode("utf-8") if isinstance(value, str) else bytes(value))


def set_json(key: str, value: Any) -> None:
    """Puts a JSON value under `key`."""
    set(key, _host.to_json(value, f"the value for `{key}`"))


def delete(key: str) -> None:
    """Removes what is under `key`; without anything there it does nothing."""
    with _host.errors():
        _host.interface("kv").delete(key)


def keys(prefix: str = "") -> list[str]:
    """The keys that begin with `prefix`, in order, 1,000 at most."""
    with _host.errors():
        return _host.interface("kv").keys(prefix)
