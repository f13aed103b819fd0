"""A script in Python: what it returns is merged into the graph's state."""

from typing import Any

from hotcell_plugin import InvalidInput, script, state


@script
def greet() -> dict[str, Any]:
    """Greets whoever the state names."""
    name = state.get("person.name")
    if not isinstance(name, str):
        raise InvalidInput("`person.name` is missing in the state")
    return {"greeting": f"Hello, {name}!"}
