"""What came of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ._hotcell import Report
from .errors import RunFailed, RunInterrupted, RunWaiting


@dataclass(frozen=True)
class Question:
    """A question to a person, or to the program that runs the agent (`call`)."""

    #: What an answer names it by, where several are open
    id: str
    #: The node that asks
    node: str
    text: str
    #: Answers that are offered; any other text is allowed, too
    options: tuple[str, ...] = ()
    #: What an empty answer means
    default: str | None = None
    #: The call that is asked for, where the question is for a program: `name` and `arguments`
    call: Mapping[str, Any] | None = None
    #: Until when it waits for an answer (RFC 3339); None for as long as it takes
    expires: str | None = None

    @classmethod
    def _of(cls, told: Mapping[str, Any]) -> Question:
        return cls(
            told.get("id", ""),
            told["node"],
            told["text"],
            tuple(told.get("options", ())),
            told.get("default"),
            told.get("call"),
            told.get("expires"),
        )


@dataclass(frozen=True)
class Failure:
    """A node that failed and after which the run went on."""

    node: str
    error: str
    #: Whether the run went on with the node that the graph names for that
    handled: bool


@dataclass(frozen=True)
class Run:
    """A run that gave control back."""

    #: Its name in the journal
    id: str
    #: `completed`, `failed`, `stopped`, `waiting`, `interrupted`, `paused` or `cancelled`
    status: str
    #: Its result as text, if it has completed
    output: str | None
    #: Why it failed or was stopped
    error: str | None
    #: The node that failed
    node: str | None
    #: What it asks, if it waits
    questions: tuple[Question, ...]
    #: The nodes that failed and after which it went on
    failures: tuple[Failure, ...]
    #: What it used in all processes: `calls`, `fuel`, `model_requests`, `input_tokens`, ...
    usage: Mapping[str, Any]
    #: The same by what used it. What begins with `unsealed:` is a function of this program
    used_by: Mapping[str, Any]
    _report: Report = field(repr=False, compare=False)

    @cached_property
    def state(self) -> dict[str, Any]:
        """The state that it came to."""
        return json.loads(self._report.state())

    @property
    def cost_usd(self) -> float:
        """What its requests to models cost by the price table, in US dollars."""
        return self.usage.get("cost_nano_usd", 0) / 1e9

    def check(self) -> Run:
        """The run itself if it has completed.

        Raises `RunFailed`, `RunWaiting` or `RunInterrupted` otherwise.
        """
        if self.status == "completed":
            return self
        if self.status == "waiting":
            asked = "; ".join(f"{one.text} (`{one.node}`)" for one in self.questions)
            raise RunWaiting(f"run `{self.id}` waits for an answer: {asked}", self)
        if self.status in ("failed", "stopped"):
            raise RunFailed(self.error or f"run `{self.id}` {self.status}", self)
        raise RunInterrupted(f"run `{self.id}` is {self.status}", self)

    @classmethod
    def _of(cls, report: Report) -> Run:
        told = json.loads(report.json())
        return cls(
            told["run"],
            told["status"],
            told.get("output"),
            told.get("error"),
            told.get("node"),
            tuple(Question._of(one) for one in told.get("questions", ())),
            tuple(Failure(one["node"], one["error"], one["handled"]) for one in told["failures"]),
            told["usage"],
            told["used_by"],
            report,
        )


@dataclass(frozen=True)
class RunSummary:
    """A run in the journal."""

    id: str
    #: The name of its graph
    graph: str
    thread: str | None
    #: A status of `Run`, or `running`
    status: str
    #: Seconds since the beginning of 1970
    created: float
    updated: float
    #: The beginning of its result or error
    outcome: str | None
