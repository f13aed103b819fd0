"""Loads every configuration of a folder with `pyagentspec`: `load.py FOLDER [ORIGINALS]`.

With a second folder, a configuration has to equal the one of the same name there that was written by `pyagentspec`, in the
version that ours is written in, and needs nothing handed in. Prints what cannot be loaded or differs, and fails then; else the numbers of both.
"""

import json
import sys
from pathlib import Path

from pyagentspec import AgentSpecDeserializer


def main() -> None:
    folder = Path(sys.argv[1])
    originals = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    loaded, compared, problems = 0, 0, []
    for path in sorted(folder.glob("*.json")):
        try:
            component = AgentSpecDeserializer().from_json(path.read_text())
        except Exception as error:  # whatever it is, it is to be shown
            problems.append(f"{path.name}: {type(error).__name__}: {error}")
            continue
        loaded += 1
        if originals is None:
            continue
        # `pyagentspec` keeps the version with a component, and ours is the first that has what is used.
        name = path.name.removesuffix(".yaml.json").removesuffix(".json").rsplit(".", 3)[0]
        version = json.loads(path.read_text())["agentspec_version"]
        original = originals / f"{name}.{version}.json"
        if original.with_suffix(".parts.json").exists():
            continue
        compared += 1
        if AgentSpecDeserializer().from_json(original.read_text()) != component:
            problems.append(f"{path.name}: it is not equal to the original")
    print(loaded, compared)
    if problems:
        sys.exit("\n".join(problems))


main()
