"""Docstrings: the text for people and models, and the descriptions of parameters in `Args:` or `Attributes:`."""

import inspect
import re
from typing import NamedTuple

_SECTIONS = (
    "Args:",
    "Arguments:",
    "Attributes:",
    "Parameters:",
    "Returns:",
    "Raises:",
    "Yields:",
    "Example:",
    "Examples:",
)
_DESCRIBING = ("Args:", "Arguments:", "Attributes:", "Parameters:")
_ENTRY = re.compile(r"^(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")


class Documentation(NamedTuple):
    """What a docstring says."""

    #: The text before the first section, its paragraphs separated by an empty line.
    text: str
    #: The descriptions in `Args:` or `Attributes:` by name.
    entries: dict[str, str]


def parse(docstring: str | None) -> Documentation:
    """Reads a docstring, which may be missing."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    text: list[str] = []
    entries: dict[str, str] = {}
    section, current, base = None, None, None
    for line in lines:
        if line.strip() in _SECTIONS and not line.startswith(" "):
            section, current, base = line.strip(), None, None
            continue
        if section is None:
            text.append(line)
        elif section in _DESCRIBING and line.strip():
            indent = len(line) - len(line.lstrip())
            base = indent if base is None else base
            entry = _ENTRY.match(line.strip()) if indent == base else None
            if entry:
                current = entry.group(1)
                entries[current] = entry.group(2)
            elif current is not None:
                entries[current] = f"{entries[current]} {line.strip()}".strip()
    paragraphs = "\n".join(text).strip().split("\n\n")
    return Documentation("\n\n".join(" ".join(part.split()) for part in paragraphs).strip(), entries)
