"""A store in which something stands that no bridge wrote."""

import sqlite3
from contextlib import closing
from pathlib import Path

FORMS = [
    """'{"kind":"nothing"}'""",
    """'{"kind":"message","from":"a","sender":["b"],"body":"c"}'""",
    """'{"kind":"message","from":"a","sender":"b","bodx":"c"}'""",
    """'{"kind":"message","from":"a","sender":"b","source":"nowhere"}'""",
    """'{"kind":"message","from":"a","sender":"b","reactions":"c"}'""",
    """'{"kind":"message","direction":"out","from":"a","sender":"b","id":["c"]}'""",
    """'{"kind":"message","direction":["in"],"from":"a","sender":"b","id":"c"}'""",
    """'{"kind":"leave","from":"a","sender":"b","codes":[[110]]}'""",
    """'{"kind":"connection","phase":"nowhere"}'""",
    """'{"kind":"connection","phase":"waiting","nextAttemptInMs":"soon"}'""",
]
"""JSON that has a kind, and is the exact form of no event."""


def damage(path: Path, table: str, id_: int | None, column: str, value: str) -> None:
    """Put a value there, which is SQL, as a bad disk would: no index or constraint knows of it."""
    of_our = "type = 'table' AND name = ?"
    of_table = "type = 'index' AND tbl_name = ? AND sql NOTNULL"
    with closing(sqlite3.connect(path)) as store, store:
        store.execute("PRAGMA writable_schema = ON")
        indexes = store.execute(f"SELECT * FROM sqlite_schema WHERE {of_table}", [table]).fetchall()  # noqa: S608
        store.execute(f"DELETE FROM sqlite_schema WHERE {of_table}", [table])  # noqa: S608
        find = f"SELECT sql FROM sqlite_schema WHERE {of_our}"  # noqa: S608
        ((whole,),) = store.execute(find, [table]).fetchall()
        change = f"UPDATE sqlite_schema SET sql = ? WHERE {of_our}"  # noqa: S608
        store.execute(change, [whole.replace(" NOT NULL", ""), table])
    with closing(sqlite3.connect(path)) as store, store:
        where = "TRUE" if id_ is None else f"id = {id_}"
        store.execute(f"UPDATE {table} SET {column} = {value} WHERE {where}")  # noqa: S608
        store.execute("PRAGMA writable_schema = ON")
        store.execute(change, [whole, table])
        store.executemany("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", indexes)
