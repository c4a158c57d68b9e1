"""Runs the questions of docs/QUERIES.md in DuckDB, and prints what it finds, by its heading, as JSON.

Usage: queries.py PAGE ENGINE, where `tables` is. It fails where the engine finds anything else.
"""

import json
import re
import sys


def duckdb():
    import duckdb

    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    connection.execute("set threads = 2")

    def run(statement):
        answer = connection.execute(statement)
        names = [column[0] for column in answer.description]
        return [dict(zip(names, row)) for row in answer.fetchall()]

    return run


def datafusion():
    import datafusion

    context = datafusion.SessionContext()
    return lambda statement: context.sql(statement).to_pylist()


def clickhouse():
    import chdb.session

    session = chdb.session.Session()
    session.query("set output_format_json_quote_64bit_integers = 0")

    def run(statement):
        found = session.query(statement, "JSON").bytes()
        return json.loads(found)["data"] if found else []

    return run


def statements(text):
    return [statement for statement in text.split(";\n") if statement.strip()]


def of_page(text):
    """Statements by their headings."""
    parts = [part.split("\n", 1) for part in re.split(r"^#{2,3} ", text, flags=re.M)]
    blocks = ((title, re.findall(r"^```sql\n(.*?)^```$", rest, flags=re.M | re.S)) for title, rest in parts)
    found = {title: statements("".join(sql)) for title, sql in blocks if sql}
    return {"Setup" if title.startswith("# ") else title: sql for title, sql in found.items()}


def of_engine(text, page):
    """Those that an engine has instead."""
    parts = [part.split("\n", 1) for part in re.split(r"^-- (?=.*\n[^-\n])", text, flags=re.M)[1:]]
    own = {title: statements(sql) for title, sql in parts}
    assert own.keys() <= page.keys(), f"no such headings: {own.keys() - page.keys()}"
    return own


def plain(value):
    """A value as each engine has it: numbers to 12 digits, times to the microsecond."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return int(value) if float(value).is_integer() else float(f"{value:.12g}")
    text = str(value)
    time = re.fullmatch(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.(\d+))?(?:\+00:00)?", text)
    return f"{time[1]}.{(time[2] or '').ljust(6, '0')}" if time else text


def rows(found):
    return sorted(json.dumps([plain(value) for value in row.values()]) for row in found)


page = of_page(open(sys.argv[1]).read())
expected, wrong = {}, []
for engine in dict.fromkeys(["duckdb", sys.argv[2]]):
    own = {} if engine == "duckdb" else of_engine(open(sys.argv[1].removesuffix("md") + f"{engine}.sql").read(), page)
    run = globals()[engine]()
    for title, sql in (page | own).items():
        try:
            found = [run(statement) for statement in sql][-1]
        except Exception as error:
            wrong.append(f"{engine}: {title}: {error}")
            continue
        if title == "Setup":
            continue
        here, there = rows(found), rows(expected.setdefault(title, found))
        if here != there:
            differ = [[row for row in a if row not in b] for a, b in ((there, here), (here, there))]
            wrong.append(f"{title}: duckdb finds {differ[0]}, {engine} {differ[1]}")
if wrong:
    sys.exit("\n".join(wrong))
print(json.dumps(expected, default=str))
