"""docs/store.md: its examples run, and what it says is what the code does."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from bridge.store import (
    database,
    decision,
    former,
    outbox,
    pairing,
    postgresql,
    postgresql_tables,
    recorder,
    retention,
    shipping,
    team_former,
    writer,
)
from bridge.store.database import Amount, Happened, Observer, Sent, Tenure, TracedXml
from bridge.store.errors import NotOurStoreError
from bridge.store.location import Team
from bridge.store.postgresql import PostgresqlDatabase
from bridge.store.sqlite import SqliteDatabase
from bridge.store.tables import APPLICATION_ID, VERSION
from bridge.store.writer import gap
from bridge.xmpp.model.events import MessageReceived, OccupantLeft, encode
from tests.docs.pages import PAGES, Block, blocks, prose, quoted, tables
from tests.servers.postgresql import PASSWORD, Postgresql

PAGE = PAGES["docs/store.md"]
ROOM = "lobby@rooms.example"
BY = Observer("bot@example", "McpDebug", "run")
NIGHT = 1_700_000_000.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A store in which a night stands, as another program opens it."""
    path = tmp_path / "rooms.db"
    kick = OccupantLeft(
        f"{ROOM}/Robot", "Robot", codes=frozenset({307}), actor="Wilma", reason="spam"
    )
    said = MessageReceived(f"{ROOM}/Wilma", "Wilma", "good night")
    with closing(SqliteDatabase(path)) as database:
        with database.transaction():
            events = [encode(kick), encode(said), gap(NIGHT, NIGHT + 60, events=3)]
            database.append(BY, [Happened(NIGHT, ROOM, each, shared=True) for each in events])
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reading:
            yield reading


@pytest.mark.parametrize("block", blocks(PAGE, "sql"), ids=str)
def test_every_query_finds_what_it_says(block: Block, store: sqlite3.Connection) -> None:
    (row,) = store.execute(block.text).fetchall()
    assert row[1:] in {
        (ROOM, "Robot", "Wilma", "spam"),
        (1,),
        ("2023-11-14T22:13:20.000Z", "2023-11-14T22:14:20.000Z", 3),
    }


def test_every_table_and_column_is_explained(store: sqlite3.Connection) -> None:
    told = {quoted(row[0])[0]: set(quoted(row[1])) for row in tables(PAGE)["table"]}
    names = store.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    assert {name for (name,) in names if not name.startswith("sqlite_")} == told.keys()
    for name, columns in told.items():
        defined = {row[1] for row in store.execute(f"PRAGMA table_info({name})")}
        assert defined <= columns | {"id"}, name


def test_the_figures_on_the_page_are_those_of_the_code() -> None:
    said = " ".join(prose(PAGE).split())
    for figure in (
        f"{recorder.COMMIT_SECONDS * 1000:g} ms",
        f"{recorder.BATCH:,} events",
        f"{writer.MAX_WAITING * database.UNIT_BYTES // 10**6} MB",
        f"{writer.MAX_WAITING:,} events of up to {database.UNIT_BYTES // 1_000} kB",
        f"again every {recorder.RETRY_SECONDS:g} s",
        f"after {recorder.BUSY_SECONDS:g} s",
        f"`0x{APPLICATION_ID:X}`",
        f"the `user_version` {VERSION}",
        f"`version`: {postgresql_tables.VERSION}.",
        f"{postgresql_tables.ROW_BYTES} bytes a row",
        f"tries the database every {shipping.RETRY_SECONDS:g} s",
        f"not heard of for {postgresql.SILENCE_SECONDS:g} s",
        f"differ by {pairing.SAME_SECONDS:g} s at most",
        f"{former.MOVED} rows at a time",
        f"looks every {recorder.GUARD_SECONDS:g} s",
        f"most {retention.EXPIRED_AT_ONCE:,} rows a transaction",
    ):
        assert figure in said
    assert recorder.RENEW_SECONDS + recorder.COMMIT_SECONDS < decision.SILENCE_SECONDS
    assert outbox.CONFIRMED_SECONDS == 3_600


def test_each_role_can_do_its_part_with_what_the_page_grants_it(
    postgresql: Postgresql, tmp_path: Path
) -> None:
    team = postgresql.team(tmp_path)
    schema = team.url.parameters["options"].partition("=")[2]
    (block,) = blocks(PAGE, "postgresql")
    roles = {"readers": "", "recorders": "", "one_recorder": "IN ROLE recorders"}
    for role, member in roles.items():
        postgresql.query(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}' {member}")
        postgresql.query(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    granted = block.text.replace("SCHEMA public", f"SCHEMA {schema}")
    postgresql.query(f"SET search_path = {schema}; {granted}")

    def as_(name: str) -> Team:
        parameters = {**team.url.parameters, "user": name}
        return replace(team, url=replace(team.url, parameters=parameters))

    for name, deletes in (("recorders", False), ("one_recorder", True)):
        with closing(PostgresqlDatabase(as_(name).url, making=True)) as store:
            assert store.may_delete is deletes
            with store.transaction():
                mark = store.mark("file", "host", Sent(0, 0))
                store.append(BY, [Happened(NIGHT, ROOM, gap(NIGHT, NIGHT + 60), shared=True)])
                store.append_stanzas(BY, [TracedXml(NIGHT, "in", "1", "<a/>")])
                store.attend(mark.id, [(ROOM, BY.domain, Tenure(1, BY.run, 1, 2, 1, 2, False))])
                store.hear(mark)
                store.all(team_former.KEEP, ("run", 1))
            if deletes:
                with store.transaction():
                    for holding in store.holdings():
                        assert store.delete(holding, Amount(9, inf), None).rows == 2
                    store.set_ageing(store.ageing())
    with closing(PostgresqlDatabase(as_("readers").url, writable=False)) as reading:
        assert reading.newest() == 2
    with pytest.raises(NotOurStoreError, match=r"may only read; docs/store\.md says"):
        PostgresqlDatabase(as_("readers").url)
    empty = postgresql.team(tmp_path, making=False)
    url = replace(empty.url, parameters={**empty.url.parameters, "user": "readers"})
    schema = url.parameters["options"].partition("=")[2]
    postgresql.query(f"GRANT USAGE ON SCHEMA {schema} TO readers")
    with pytest.raises(NotOurStoreError, match=rf"denied for schema {schema}; docs/store\.md says"):
        PostgresqlDatabase(url, making=True)
