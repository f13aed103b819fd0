"""Settings that the operator wrote for this plugin in `hotcell.toml`."""

from . import _host
from .errors import InvalidInput


def get(key: str, default: str | None = None) -> str | None:
    """The setting of that name, or `default`."""
    found = _host.interface("config").get(key)
    return default if found is None else found


def require(key: str) -> str:
    """The setting of that name; `InvalidInput` says which one is missing."""
    found = get(key)
    if found is None:
        raise InvalidInput(f"the setting `{key}` is missing; write it into `hotcell.toml` for this plugin")
    return found
