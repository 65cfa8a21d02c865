#!/usr/bin/env python3
"""What differs between two CSV files of result rows: compare_rows.py KNOWN NOW

Rows are matched by trace, device and policy label, fields by their path: a new policy is one new row for
each trace, a new metric one new field. Prints a line for each difference; exits 1 if there is any."""
import csv
import sys

KEY = ("trace.name", "trace.device", "policy.label")
SHOWN_MAX = 200


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        lines = csv.DictReader(file)
        rows = {}
        for row in lines:
            key = tuple(row[name] for name in KEY)
            if key in rows:
                sys.exit(f"{path}:{lines.line_num}: {name_of(key)} is there twice")
            rows[key] = row
        return lines.fieldnames or [], rows


def name_of(key):
    return f"{key[0]} device {key[1]} {key[2]}"


def differences(known, now):
    (known_fields, known_rows), (now_fields, now_rows) = known, now
    yield from (f"field that is no more: {path}" for path in known_fields if path not in now_fields)
    yield from (f"new field: {path}" for path in now_fields if path not in known_fields)
    yield from (f"row that is no more: {name_of(key)}" for key in known_rows if key not in now_rows)
    yield from (f"new row: {name_of(key)}" for key in now_rows if key not in known_rows)
    both = [path for path in known_fields if path in now_fields]
    for key, row in known_rows.items():
        for path in both if key in now_rows else ():
            if row[path] != now_rows[key][path]:
                yield f"{name_of(key)}: {path} was {row[path] or 'empty'}, is {now_rows[key][path] or 'empty'}"
    if [path for path in now_fields if path in known_fields] != both:
        yield "the fields are in another order"
    if [key for key in now_rows if key in known_rows] != [key for key in known_rows if key in now_rows]:
        yield "the rows are in another order"


def main():
    found = list(differences(read(sys.argv[1]), read(sys.argv[2])))
    print("\n".join(found[:SHOWN_MAX]))
    if len(found) > SHOWN_MAX:
        print(f"and {len(found) - SHOWN_MAX} more")
    return 1 if found else 0


sys.exit(main())
