#!/usr/bin/env python3
"""Makes `26.3.1.json` of the JSON schema of all components, in the form in which it is published with the specification
(`pyagentspec` gives it, too: `Component.model_json_schema(by_alias=False)`): `reduce.py published.json > 26.3.1.json`.

Kept is what a reader needs: for each concrete component type a schema of its own fields, in which a field that holds a
component says so with `x-component` (one), `x-components` (a list) or `x-pieces` (within lists, beside values) and the
family that it takes, and for each family its concrete types. References to other definitions are written out; texts for
people are left out.

Mended are these defects of the published schema:
- Types that others are derived from forbid the `component_type` that they need.
- It says nothing of `null` where the specification says that it stands for the default: `id`, `branches`,
  `branch_name`, `session_parameters`.
- It forbids parameters of a session and of a model that the specification lets anybody add.
`agentspec_version`, `$referenced_components` and references are no matter of a component: the reader takes them out.
"""

import json
import sys

NULLABLE = {"id", "branches", "branch_name", "session_parameters"}
NOT_OF_A_COMPONENT = {"$referenced_components", "component_type", "agentspec_version"}


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        published = json.load(file)["$defs"]
    bases = {name[4:]: schema for name, schema in published.items() if name.startswith("Base")}
    reduced = {
        "families": {name: sorted(concrete(name, bases)) for name in sorted(bases)},
        "components": {name: component(own, published) for name in sorted(bases) if (own := body(bases[name], name))},
    }
    print(layout(reduced))


def layout(reduced: dict) -> str:
    """JSON with a line for each family and each field."""
    family = ",\n".join(f"  {json.dumps(name)}: {json.dumps(types)}" for name, types in reduced["families"].items())
    components = []
    for name, schema in reduced["components"].items():
        fields = ",\n".join(f"    {json.dumps(key)}: {json.dumps(own)}" for key, own in schema["properties"].items())
        rest = json.dumps({key: own for key, own in schema.items() if key != "properties"})[1:-1]
        components.append(f"  {json.dumps(name)}: {{{rest}, \"properties\": {{\n{fields}\n  }}}}")
    joined = ",\n".join(components)
    return f"{{\n \"families\": {{\n{family}\n }},\n \"components\": {{\n{joined}\n }}\n}}"


def body(base: dict, name: str) -> dict | None:
    """The schema of a type's own fields; none for abstract types."""
    if "properties" in base:
        return base
    return next((member for member in base["anyOf"] if member.get("title") == name), None)


def concrete(name: str, bases: dict) -> set[str]:
    """The concrete types of a family."""
    base = bases[name]
    found = {name} if body(base, name) else set()
    for member in base.get("anyOf", []):
        if "$ref" in member:
            found |= concrete(member["$ref"].rsplit("/", 1)[1], bases)
    return found


def component(own: dict, published: dict) -> dict:
    properties = {}
    for field, schema in own["properties"].items():
        if field in NOT_OF_A_COMPONENT:
            continue
        schema = value(schema, published)
        if field in NULLABLE and "null" not in kinds(schema):
            schema["type"] = [*kinds(schema), "null"]
        properties[field] = schema
    return {
        "type": "object",
        "properties": properties,
        "required": own["required"],
        "additionalProperties": False,
    }


def kinds(schema: dict) -> list[str]:
    kind = schema["type"]
    return kind if isinstance(kind, list) else [kind]


def value(schema: dict, published: dict) -> dict:
    """A schema with its references written out, a union with null being a list of types."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        if "Base" + name in published:
            return {"type": "object", "x-component": name}
        return value(published[name], published)
    if "anyOf" in schema:
        return union([value(member, published) for member in schema["anyOf"]], published)
    if "const" in schema:
        return {"type": "string", "enum": [schema["const"]]}
    kept = {key: schema[key] for key in KEPT if key in schema}
    if isinstance(kept.get("additionalProperties"), dict):
        kept["additionalProperties"] = value(kept["additionalProperties"], published)
    elif kept.get("additionalProperties") is True:
        del kept["additionalProperties"]
    if "properties" in schema:
        kept["properties"] = {name: value(inner, published) for name, inner in schema["properties"].items()}
    if "prefixItems" in schema:
        kept["x-pieces"] = value(schema["prefixItems"][0], published)["x-component"]
    if "items" in schema:
        items = value(schema["items"], published)
        if "x-component" in items:
            mixed = kinds(items) != ["object"]
            kept["x-pieces" if mixed else "x-components"] = items["x-component"]
        elif "x-pieces" in items:
            kept["x-pieces"] = items.pop("x-pieces")
            kept["items"] = items
        else:
            kept["items"] = items
    return kept


KEPT = "type enum required additionalProperties minimum exclusiveMinimum minItems maxItems".split()


def union(members: list[dict], published: dict) -> dict:
    """One schema for several: any of their types."""
    if any(not member for member in members):
        return {}
    families = [member["x-component"] for member in members if "x-component" in member]
    rest = [member for member in members if member != {"type": "null"} and "x-component" not in member]
    types = [kind for member in members for kind in kinds(member)]
    types = sorted(set(types), key=lambda kind: (kind == "null", types.index(kind)))
    one = dict(rest[0]) if len(rest) == 1 else {}
    if families:
        one["x-component"] = families[0] if len(families) == 1 else smallest(families, published)
    if "enum" in one and len(types) > 1:
        one["enum"] = [*one["enum"], *([None] if "null" in types else []), *([True, False] if "boolean" in types else [])]
    if any("enum" in member for member in rest) and len(rest) > 1:
        one["enum"] = [*(option for member in rest for option in member.get("enum", [])), True, False]
    return {**one, "type": types[0] if len(types) == 1 else types}


def smallest(families: list[str], published: dict) -> str:
    """The family in which all of these are."""
    bases = {name[4:]: schema for name, schema in published.items() if name.startswith("Base")}
    around = [name for name in bases if set(families) <= concrete(name, bases)]
    return min(around, key=lambda name: len(concrete(name, bases)))


main()
