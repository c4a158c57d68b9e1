"""Reads the tables of a directory with DuckDB and with pyarrow, and prints the rows that both find, as JSON.

Usage: read.py DIR. It fails on a file that either refuses, and where they differ.
"""

import glob
import json
import sys

import duckdb
import pyarrow.parquet as parquet


def plain(rows):
    return [[str(v) if hasattr(v, "isoformat") else v for v in row] for row in rows]


tables = {}
for path in sorted(glob.glob(f"{sys.argv[1]}/*.parquet")):
    name = path.rsplit("/", 1)[1].removesuffix(".parquet")
    file = parquet.ParquetFile(path, page_checksum_verification=True)
    read = file.read()
    read.validate(full=True)
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    found = connection.execute(f"select * from read_parquet('{path}')")
    columns, rows = [column[0] for column in found.description], plain(found.fetchall())
    same = [list(row.values()) for row in read.to_pylist()]
    assert columns == read.column_names, (columns, read.column_names)
    assert rows == plain(same), f"{name}: DuckDB and pyarrow differ"
    metadata = {key.decode(): value.decode() for key, value in file.metadata.metadata.items()}
    groups = [file.metadata.row_group(nth) for nth in range(file.metadata.num_row_groups)]
    bounds = {}
    for nth, column in enumerate(columns):
        of_column = [group.column(nth).statistics for group in groups]
        nulls = sum(of.null_count for of in of_column)
        assert nulls == sum(value is None for value in read.column(nth).to_pylist()), f"{name}.{column}: nulls"
        with_bounds = [of for of in of_column if of.has_min_max]
        values = [value for value in read.column(nth).to_pylist() if value is not None]
        if with_bounds and len(with_bounds) == len(groups):
            least, most = min(of.min for of in with_bounds), max(of.max for of in with_bounds)
            assert (least, most) == (min(values), max(values)), f"{name}.{column}: bounds"
    tables[name] = {"about": metadata, "groups": len(groups), "columns": columns, "rows": rows}
print(json.dumps(tables))
