"""Prints the words that are anywhere in files: as they are, in hexadecimal, in base64, and in what is compressed.

Usage: redact.py PATH WORD...
"""

import base64
import gzip
import os
import re
import sys
import zlib


def opened(data):
    """What a block of compressed bytes has in it."""
    for unpack in (gzip.decompress, zlib.decompress):
        try:
            return [unpack(data)]
        except (OSError, EOFError, zlib.error):
            pass
    return []


def parts(path):
    data = open(path, "rb").read()
    yield path.encode()
    yield data
    yield from opened(data)
    for block in re.findall(rb"[A-Za-z0-9+/]{40,}={0,2}", data):
        try:
            inner = base64.b64decode(block)
        except ValueError:
            continue
        yield inner
        yield from opened(inner)
    if path.endswith(".parquet"):
        import duckdb

        for row in duckdb.connect().execute("select * from read_parquet(?)", [path]).fetchall():
            yield repr(row).encode()


files = [sys.argv[1]]
if os.path.isdir(sys.argv[1]):
    files = [os.path.join(at, name) for at, _, names in os.walk(sys.argv[1]) for name in names]
for word in sys.argv[2:]:
    forms = [word.encode(), word.encode().hex().encode()]
    if any(form in part.lower() for path in files for part in parts(path) for form in forms):
        print(word)
