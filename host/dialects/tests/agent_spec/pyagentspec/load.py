"""Loads every configuration of a folder with `pyagentspec`: `load.py FOLDER [ORIGINALS]`.

What is handed in beside `NAME.json` is `NAME.parts.json`. With a second folder, a configuration has to equal the one of the
same name there that was written by `pyagentspec`, in the version that ours is written in. Prints what cannot be loaded or differs, and fails then; else the numbers of both.
"""

import json
import sys
from pathlib import Path

from pyagentspec import AgentSpecDeserializer


def load(path: Path):
    """The component of a file. Parts that are values are handed in as they are, which the loader of parts cannot read."""
    document = json.loads(path.read_text())
    parts = path.with_suffix(".parts.json")
    registry = {}
    if parts.exists():
        known = json.loads(parts.read_text())["$referenced_components"]
        version = {"agentspec_version": document["agentspec_version"]}
        is_component = lambda part: isinstance(part, dict) and "component_type" in part
        components = {key: version | part for key, part in known.items() if is_component(part)}
        registry = {key: part for key, part in known.items() if key not in components}
        if components:
            registry |= AgentSpecDeserializer().from_dict(
                {"$referenced_components": components},
                components_registry=dict(registry),
                import_only_referenced_components=True,
            )
    return AgentSpecDeserializer().from_dict(document, components_registry=registry)


def main() -> None:
    folder = Path(sys.argv[1])
    originals = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    loaded, compared, problems = 0, 0, []
    for path in sorted(path for path in folder.glob("*.json") if not path.name.endswith(".parts.json")):
        try:
            component = load(path)
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
        compared += 1
        if load(original) != component:
            problems.append(f"{path.name}: it is not equal to the original")
    print(loaded, compared)
    if problems:
        sys.exit("\n".join(problems))


main()
