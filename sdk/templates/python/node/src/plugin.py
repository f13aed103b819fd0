"""A node type in Python."""

from dataclasses import dataclass
from typing import TypedDict

from hotcell_plugin import Outcome, node


@dataclass
class Fields:
    """What the author of the graph writes on the node.

    Attributes:
        table: The values by their keys.
    """

    table: dict[str, str]


@dataclass
class Inputs:
    """What flows into the node.

    Attributes:
        key: The key to look up.
    """

    key: str


class Outputs(TypedDict, total=False):
    """What flows out of the node.

    Attributes:
        value: The value that was found.
    """

    value: str


@node("lookup", branches=["found", "missing"])
def lookup(fields: Fields, inputs: Inputs) -> Outcome[Outputs]:
    """Looks a key up in a table."""
    value: str | None = fields.table.get(inputs.key)
    if value is None:
        return Outcome({}, branch="missing")
    return Outcome({"value": value}, branch="found")
