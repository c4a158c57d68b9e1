"""Runs the statements of docs/QUERIES.md, and prints what each finds, by its heading, as JSON.

Usage: queries.py PAGE, where `tables` is.
"""

import json
import re
import sys

import duckdb

page = open(sys.argv[1]).read()
connection = duckdb.connect()
connection.execute("set timezone = 'UTC'")
connection.execute("set threads = 2")
found = {}
for part in re.split(r"^#{2,3} ", page, flags=re.M):
    title = part.split("\n", 1)[0]
    for block in re.findall(r"^```sql\n(.*?)^```$", part, flags=re.M | re.S):
        for statement in block.split(";\n"):
            if not statement.strip():
                continue
            try:
                answer = connection.execute(statement)
            except duckdb.Error as error:
                sys.exit(f"{title}: {error}\n{statement}")
            if not statement.lstrip().startswith("create"):
                columns = [column[0] for column in answer.description]
                found[title] = [dict(zip(columns, row)) for row in answer.fetchall()]
print(json.dumps(found, default=str))
