"""What the functions of a plugin take and return besides plain values."""

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass
class Outcome(Generic[T]):
    """What running a node gave: its outputs, and the branch to leave by where the node declares branches."""

    outputs: T
    branch: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass
class Request(Generic[T]):
    """What is to be handed to the other system."""

    #: What the graph hands over.
    input: dict[str, Any]
    #: How the author of the graph set the connector up; of the type that the annotation `Request[T]` names.
    config: T
    #: In callback mode, the address to send the answer to.
    callback_url: str | None = None
    #: In callback mode, the text that has to come with the answer, so that it finds its run.
    session: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Accepted:
    """The other system took the request; its answer comes by the callback."""


@dataclass(frozen=True)
class Verdict:
    """What becomes of an event."""

    kind: str
    event: Any = None
    reason: str = ""


def accepted() -> Accepted:
    """From a connector: the request was taken, and the answer comes by the callback. The run pauses until then."""
    return Accepted()


def proceed() -> Verdict:
    """From a hook: the event goes on as it is. So it does when a hook returns nothing."""
    return Verdict("proceed")


def change(event: dict[str, Any]) -> Verdict:
    """From a hook: the event goes on with this object in its place."""
    return Verdict("change", event=event)


def refuse(reason: str) -> Verdict:
    """From a hook: the event does not go on, for this reason."""
    return Verdict("refuse", reason=reason)
