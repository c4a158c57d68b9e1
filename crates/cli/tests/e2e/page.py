"""Reads a page of `report --as html`, and prints its header and how many items it has by kind and name, as JSON.

Usage: page.py FILE. Kinds whose rows are curves also have `left KIND`: how many rows do not end at 0.
"""

import base64
import json
import re
import sys
import zlib
from collections import Counter

text = open(sys.argv[1]).read()


def block(name):
    return zlib.decompress(base64.b64decode(re.search(f'id="{name}">([^<]*)<', text).group(1)))


def numbers(column):
    """Numbers of seven bits a byte, the lowest first."""
    n = shift = 0
    for byte in column:
        n, shift = n | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            yield n
            n = shift = 0


def signed(n):
    return n >> 1 ^ -(n & 1)


header, strings = json.loads(block("header")), json.loads(block("strings"))
columns = [numbers(block(name)) for name in header["columns"]]
items = Counter()
for kind, _, _, _, length, has in header["rows"]:
    kind = header["kinds"][kind]
    row = {}
    for nth, name in enumerate(header["columns"]):
        row[name] = [next(columns[nth]) if has >> nth & 1 else 0 for _ in range(length)]
    names = header["functions"] if kind == "function" else strings
    number = 0
    for change in row["name"]:
        number += signed(change)
        items[f"{kind} {names[number - 1] if number else ''}"] += 1
    if kind in ("heap", "files"):
        items[f"left {kind}"] += sum(map(signed, row["value"])) != 0
for *_, is_woken in header["flows"]:
    items["flow wakes" if is_woken else "flow starts"] += 1
assert not any(list(rest) for rest in columns), "numbers behind the last row"
print(json.dumps(header))
print(json.dumps(items))
