"""What goes wrong, as exceptions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .runs import Run


class HotcellError(Exception):
    """Something cannot be done; the message says what, why, and what to do."""


@dataclass(frozen=True)
class Place:
    """A place in a file; lines and columns count from 1."""

    file: str
    line: int
    column: int


@dataclass(frozen=True)
class Diagnostic:
    """One finding about an agent's file."""

    #: `error`, `warning` or `note`
    severity: str
    message: str
    #: The node that it is about
    node: str | None
    place: Place | None
    #: What to do about it
    help: str | None

    def __str__(self) -> str:
        where = f"{self.place.file}:{self.place.line}:{self.place.column}: " if self.place else ""
        advice = f" ({self.help})" if self.help else ""
        return f"{where}{self.severity}: {self.message}{advice}"

    @classmethod
    def _of(cls, told: Mapping[str, Any]) -> Diagnostic:
        place = told["place"]
        where = Place(place["file"], place["line"], place["column"]) if place else None
        return cls(told["severity"], told["message"], told["node"], where, told["help"])


class LoadError(HotcellError):
    """An agent cannot be loaded. The message shows every finding at its place in the file."""

    #: Everything that was found, warnings included
    diagnostics: list[Diagnostic]

    def __init__(self, message: str, diagnostics: str = "[]"):
        super().__init__(message)
        self.diagnostics = [Diagnostic._of(told) for told in json.loads(diagnostics)]


class InputError(HotcellError, ValueError):
    """A run was given something that its agent does not take. Nothing was begun."""


class RunError(HotcellError):
    """A run did not come to a result."""

    #: How it stands
    run: Run

    def __init__(self, message: str, run: Run):
        super().__init__(message)
        self.run = run


class RunFailed(RunError):
    """A run failed, or came to a cap after which it goes no further."""


class RunWaiting(RunError):
    """A run waits for an answer: `run.questions` has the questions. Answer it, and resume it."""


class RunInterrupted(RunError):
    """A run was stopped, paused or cancelled before it came to a result."""
