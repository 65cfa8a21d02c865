#!/usr/bin/env python3
"""Checks rows against a JSON Schema: check_schema.py SCHEMA <rows.jsonl

Understands what fraglab's schema uses of draft 2020-12 and refuses any other word of it. Strict: a
member that the schema does not describe is an error. jsonschema, where it is installed, has to agree."""
import json
import sys

WORDS = {"$schema", "title", "description", "$defs", "oneOf", "$ref", "type", "properties", "required",
         "additionalProperties", "const", "minimum"}
TYPES = {"object": dict, "string": str, "boolean": bool, "null": type(None), "integer": int, "number": (int, float)}


def is_type(value, name):
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, TYPES[name])


def problems(root, schema, value, where):
    unknown = set(schema) - WORDS
    assert not unknown, f"this test does not know {unknown}"
    if "$ref" in schema:
        target = root
        for key in schema["$ref"].removeprefix("#/").split("/"):
            target = target[key]
        return problems(root, target, value, where)
    if "oneOf" in schema:
        found = [problems(root, one, value, where) for one in schema["oneOf"]]
        fitting = sum(not list_ for list_ in found)
        return [] if fitting == 1 else min(found, key=len) or [f"{where}: {fitting} kinds fit"]
    found = []
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(is_type(value, name) for name in names):
        return [f"{where}: {value!r} is not of type {names}"]
    if "const" in schema and value != schema["const"]:
        found.append(f"{where}: expected {schema['const']!r}, found {value!r}")
    if "minimum" in schema and value is not None and value < schema["minimum"]:
        found.append(f"{where}: {value} is below {schema['minimum']}")
    if isinstance(value, dict):
        found += members(root, schema, value, where)
    return found


def members(root, schema, value, where):
    found = [f"{where}.{key} is missing" for key in schema.get("required", []) if key not in value]
    for key, member in value.items():
        inner = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
        if inner is None:
            found.append(f"{where}.{key} is not described")
        else:
            found += problems(root, inner, member, f"{where}.{key}")
    return found


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    rows = [json.loads(line) for line in sys.stdin]
    found = [f"row {i + 1}: {text}" for i, row in enumerate(rows) for text in problems(schema, schema, row, "row")]
    try:
        import jsonschema
        jsonschema.Draft202012Validator.check_schema(schema)
        checker = jsonschema.Draft202012Validator(schema)
        found += [f"row {i + 1}: jsonschema: {error.message}" for i, row in enumerate(rows)
                  for error in checker.iter_errors(row)]
    except (ImportError, AttributeError):
        pass
    print("\n".join(found))
    print(len(rows), "rows" if len(rows) != 1 else "row", sorted({row.get("schema", "") for row in rows}))
    return 1 if found or not rows else 0


sys.exit(main())
