"""What the archives of real servers do, with the facts that `archive` relies on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from bridge.text import iso, stamp_of
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.model.events import MessageReceived, Source
from bridge.xmpp.model.faults import Place
from bridge.xmpp.model.journal import Journal
from bridge.xmpp.muc.archive import (
    ArchiveError,
    ArchiveQuery,
)
from bridge.xmpp.muc.membership import Membership
from bridge.xmpp.muc.publisher import Publisher
from tests.faults.scene import configure
from tests.servers.server import XmppServer
from tests.servers.witness import Witness
from tests.xmpp.played_archive import Found, archive_of, find, said
from tests.xmpp.probing import settings

MESSAGES = 130
SECONDS = 30.0


@asynccontextmanager
async def standing(server: XmppServer, room: str) -> AsyncIterator[Connection]:
    read = settings(server.environment(MUC_ROOM=room))
    membership = Membership(Place.of(read), None, Publisher(Journal("epoch")))
    connection = Connection(
        read, resource="reader", on_stage=lambda _: None, on_stanza=membership.receive
    )
    try:
        await connection.open()
        membership.begin(connection, resumed=False)
        connection.start_dispatch()
        await membership.join("Reader")
        yield connection
    finally:
        connection.leave()
        connection.close()


_told: dict[str, tuple[str, list[str]]] = {}


async def told(server: XmppServer) -> tuple[str, list[str]]:
    """A room of this server in which much has been said, once for all tests, and what."""
    if server.name in _told:
        return _told[server.name]
    room, bodies = server.room(), list[str]()
    async with (
        Witness(server, server.witness, room, "Wilma") as wilma,
        Witness(server, server.bot, room, "Fred") as fred,
    ):
        await configure(wilma, persistentroom="1")
        await wilma.joined("Fred")
        for number in range(MESSAGES):
            name, speaker = ("Fred", fred) if number % 5 == 0 else ("Wilma", wilma)
            bodies.append(f"{name} says Ärger {number}")
            speaker.say(bodies[-1])
            if number % 5 in {0, 4}:  # in this order
                await wilma.heard(bodies[-1], SECONDS)
    return _told.setdefault(server.name, (room, bodies))


async def search(
    connection: Connection, room: str, query: ArchiveQuery, limit: int = 1000
) -> Found:
    return await find(connection, room, query, limit=limit, seconds=SECONDS)


async def test_all_that_was_said_is_found_with_its_sender(real_server: XmppServer) -> None:
    room, bodies = await told(real_server)
    async with standing(real_server, room) as connection:
        archive = archive_of(connection, room)
        result = [page async for page in archive.pages(ArchiveQuery(most=100))]
    assert said([each for page in result for each in page.results]) == bodies
    assert [page.complete for page in result] == [False] * (len(result) - 1) + [True]
    # Prosody's rooms give fifty at most, whatever is asked for.
    is_prosody = real_server.name == "prosody"
    has_seconds = is_prosody and real_server.version < (13,)
    assert max(len(page.results) for page in result) == (50 if is_prosody else 100)
    first = result[0].results[0]
    assert first.at is not None
    assert first.at.endswith("Z")
    # Prosody 0.12 stamps to the second, Prosody 13 and ejabberd to the microsecond.
    assert ("." in first.at) is not has_seconds
    (event,) = first.events
    assert isinstance(event, MessageReceived)
    assert (event.source, event.stanza_id) == (Source.ARCHIVE, first.id)
    assert (event.from_, event.sender) == (f"{room}/Fred", "Fred")
    assert event.delayed_from == stamp_of(first.at)


async def test_the_newest_lead_to_the_older(real_server: XmppServer) -> None:
    limit = 60
    room, bodies = await told(real_server)
    async with standing(real_server, room) as connection:
        result = await search(connection, room, ArchiveQuery(backward=True), limit)
        assert said(result.results) == bodies[-limit:]
        assert result.more
        older = await search(
            connection, room, ArchiveQuery(backward=True, position=result.next_id), limit
        )
        assert said(older.results) == bodies[-2 * limit : -limit]


async def test_times_bound_a_search_and_are_themselves_within(real_server: XmppServer) -> None:
    room, _ = await told(real_server)
    async with standing(real_server, room) as connection:
        whole = (await search(connection, room, ArchiveQuery())).results
        stamps = [datetime.fromisoformat(each.at or "") for each in whole]
        start, end = stamps[30], stamps[90]
        between = tuple(each for each, at in zip(whole, stamps, strict=True) if start <= at <= end)
        query = ArchiveQuery(start=whole[30].at, end=whole[90].at)
        assert (await search(connection, room, query)).results == between
        newest = replace(query, backward=True)
        assert (await search(connection, room, newest, 10)).results == between[-10:]
        # A moment later: Prosody 0.12 does not see the difference.
        later = (start + timedelta(microseconds=1)).isoformat(timespec="microseconds")
        after = await search(connection, room, ArchiveQuery(start=later))
        has_seconds = real_server.name == "prosody" and real_server.version < (13,)
        assert after.results == tuple(
            each
            for each, at in zip(whole, stamps, strict=True)
            if at > start or (has_seconds and at == start)
        )
        long_past = ArchiveQuery(end=iso(start.timestamp() - 3600))
        for past in (long_past, replace(long_past, backward=True)):
            result = await search(connection, room, past)
            assert (result.results, result.more) == ((), False)


async def test_an_id_that_nobody_gave(real_server: XmppServer) -> None:
    room, _ = await told(real_server)
    async with standing(real_server, room) as connection:
        is_prosody = real_server.name == "prosody"
        # On ejabberd ids are times: these are long ago, and long after.
        for id_ in ("1234567890123456", "9234567890123456"):
            for query in (ArchiveQuery(position=id_), ArchiveQuery(backward=True, position=id_)):
                if is_prosody or query.backward is id_.startswith("1"):
                    with pytest.raises(ArchiveError, match="archive-position"):
                        await search(connection, room, query)
                else:
                    result = await search(connection, room, query)
                    assert len(result.results) == MESSAGES


async def test_there_is_nothing_beyond_the_last_in_either_direction(
    real_server: XmppServer,
) -> None:
    room, _ = await told(real_server)
    async with standing(real_server, room) as connection:
        whole = (await search(connection, room, ArchiveQuery())).results
        for query in (
            ArchiveQuery(position=whole[-1].id),
            ArchiveQuery(backward=True, position=whole[0].id),
        ):
            result = await search(connection, room, query)
            assert (result.results, result.more) == ((), False)


async def test_a_room_with_its_archive_off_has_none_if_it_answers(real_server: XmppServer) -> None:
    room = real_server.room()
    async with Witness(real_server, real_server.witness, room, "Wilma") as wilma:
        wilma.say("kept")
        await wilma.heard("kept")
        form = await wilma.muc.get_room_config(room)
        prosodys, ejabberds = "muc#roomconfig_enablearchiving", "mam"
        form.set_values({prosodys if real_server.name == "prosody" else ejabberds: False})
        await wilma.muc.set_room_config(room, form)
        async with standing(real_server, room) as connection:
            with pytest.raises(ArchiveError, match="archive-missing"):
                await search(connection, room, ArchiveQuery())
            # Why it must not be asked directly: both answer.
            page = await archive_of(connection, room).page(ArchiveQuery())
            assert said(page.results) == ["kept"]


async def test_who_is_banned_may_not_read(real_server: XmppServer) -> None:
    room, other = real_server.room(), real_server.room()
    async with (
        Witness(real_server, real_server.witness, room, "Wilma") as wilma,
        standing(real_server, other) as connection,
    ):
        wilma.say("not for you")
        await wilma.heard("not for you")
        await wilma.muc.set_affiliation(room, "outcast", jid=real_server.bot.jid)
        with pytest.raises(ArchiveError, match="archive-refused"):
            await archive_of(connection, room).page(ArchiveQuery())
