"""What the archives of real servers do, with the facts that `archive` relies on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest

from bridge.text import iso, stamp_of
from bridge.xmpp.link import stanzas
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.model.events import MessageReceived, Source
from bridge.xmpp.model.faults import Place
from bridge.xmpp.model.journal import Journal
from bridge.xmpp.muc.archive import (
    ArchiveForbiddenError,
    ArchiveQuery,
    NoArchiveError,
    UnknownPositionError,
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


@dataclass(frozen=True)
class Told:
    """A room in which much has been said; it stays when all have left."""

    room: str
    bodies: tuple[str, ...]


_told: dict[str, Told] = {}


async def told(server: XmppServer) -> Told:
    """The room of this server; said once for all tests."""
    if server.name in _told:
        return _told[server.name]
    room = server.room()
    bodies = []
    async with (
        Witness(server, server.witness, room, "Wilma") as wilma,
        Witness(server, server.bot, room, "Fred") as fred,
    ):
        await configure(wilma, persistentroom="1")
        await wilma.joined("Fred")
        for number in range(MESSAGES):
            name, speaker = ("Fred", fred) if number % 5 == 0 else ("Wilma", wilma)
            body = f"{name} says {'Ärger' if number % 50 == 7 else 'all is well'} {number}"
            bodies.append(body)
            speaker.say(body)
            if number % 5 in {0, 4}:  # in this order
                await wilma.heard(body, SECONDS)
    return _told.setdefault(server.name, Told(room, tuple(bodies)))


async def search(
    connection: Connection, room: str, query: ArchiveQuery, limit: int = 1000
) -> Found:
    return await find(connection, room, query, limit=limit, seconds=SECONDS)


async def test_all_that_was_said_is_found_with_its_sender(real_server: XmppServer) -> None:
    past = await told(real_server)
    async with standing(real_server, past.room) as connection:
        archive = archive_of(connection, past.room)
        found = [page async for page in archive.pages(ArchiveQuery(most=100))]
    assert said([one for page in found for one in page.results]) == list(past.bodies)
    assert [page.complete for page in found] == [False] * (len(found) - 1) + [True]
    # Prosody's rooms give fifty at most, whatever is asked for.
    is_prosody = real_server.name == "prosody"
    assert max(len(page.results) for page in found) == (50 if is_prosody else 100)
    first = found[0].results[0]
    assert first.at is not None
    assert first.at.endswith("Z")
    # Prosody stamps to the second, and ejabberd to the microsecond.
    assert ("." in first.at) is not is_prosody
    (event,) = first.events
    assert isinstance(event, MessageReceived)
    assert (event.source, event.stanza_id) == (Source.ARCHIVE, first.id)
    assert (event.from_, event.sender) == (f"{past.room}/Fred", "Fred")
    assert event.delayed_from == stamp_of(first.at)


async def test_the_newest_lead_to_the_older(real_server: XmppServer) -> None:
    limit = 60
    past = await told(real_server)
    async with standing(real_server, past.room) as connection:
        found = await search(connection, past.room, ArchiveQuery(before=""), limit)
        assert said(found.results) == list(past.bodies[-limit:])
        assert found.more
        older = await search(connection, past.room, ArchiveQuery(before=found.next_id), limit)
        assert said(older.results) == list(past.bodies[-2 * limit : -limit])


async def test_times_bound_a_search_and_are_themselves_within(real_server: XmppServer) -> None:
    past = await told(real_server)
    async with standing(real_server, past.room) as connection:
        whole = await search(connection, past.room, ArchiveQuery())
        stamps = [datetime.fromisoformat(one.at or "") for one in whole.results]
        start, end = stamps[30], stamps[90]
        between = [
            one for one in whole.results if start <= datetime.fromisoformat(one.at or "") <= end
        ]
        query = ArchiveQuery(start=whole.results[30].at, end=whole.results[90].at)
        assert (await search(connection, past.room, query)).results == tuple(between)
        newest = replace(query, before="")
        assert (await search(connection, past.room, newest, 10)).results == tuple(between[-10:])
        # A moment later: Prosody does not see the difference.
        later = (start + timedelta(microseconds=1)).isoformat(timespec="microseconds")
        after = await search(connection, past.room, ArchiveQuery(start=later))
        expected = [
            body
            for body, at in zip(past.bodies, stamps, strict=True)
            if at >= start and (real_server.name == "prosody" or at > start)
        ]
        assert said(after.results) == expected
        long_past = ArchiveQuery(end=iso(start.timestamp() - 3600))
        assert await search(connection, past.room, long_past) == Found((), None, False)


@pytest.mark.parametrize("open_room", [False, True])
async def test_a_real_jid_is_where_it_is_shown(real_server: XmppServer, *, open_room: bool) -> None:
    room = real_server.room()
    async with Witness(real_server, real_server.witness, room, "Wilma") as wilma:
        await configure(wilma, whois="anyone" if open_room else "moderators")
        async with standing(real_server, room) as connection:
            wilma.say("of Wilma's")
            await wilma.heard("of Wilma's")
            connection.send(stanzas.groupchat_message(room, "of mine", "1"))
            await wilma.heard("of mine")
            found = await search(connection, room, ArchiveQuery())
    jids = {
        event.body: event.jid
        for result in found.results
        for event in result.events
        if isinstance(event, MessageReceived)
    }
    # ejabberd shows everybody their own.
    shows_mine = open_room or real_server.name == "ejabberd"
    assert (jids["of Wilma's"] or "").partition("/")[0] == (
        real_server.witness.jid if open_room else ""
    )
    assert (jids["of mine"] or "").partition("/")[0] == (real_server.bot.jid if shows_mine else "")


async def test_an_id_that_nobody_gave(real_server: XmppServer) -> None:
    past = await told(real_server)
    query = ArchiveQuery(after="1234567890123456")
    async with standing(real_server, past.room) as connection:
        if real_server.name == "prosody":
            with pytest.raises(UnknownPositionError):
                await search(connection, past.room, query)
        else:  # ids are times there: this is one long ago
            found = await search(connection, past.room, query)
            assert len(found.results) == MESSAGES


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
            assert not await archive_of(connection, room).exists()
            with pytest.raises(NoArchiveError):
                await search(connection, room, ArchiveQuery())
            # Why it must not be asked directly: both answer.
            assert said((await archive_of(connection, room).page(ArchiveQuery())).results) == [
                "kept"
            ]


async def test_who_is_banned_may_not_read(real_server: XmppServer) -> None:
    room, other = real_server.room(), real_server.room()
    async with (
        Witness(real_server, real_server.witness, room, "Wilma") as wilma,
        standing(real_server, other) as connection,
    ):
        wilma.say("not for you")
        await wilma.heard("not for you")
        await wilma.muc.set_affiliation(room, "outcast", jid=real_server.bot.jid)
        with pytest.raises(ArchiveForbiddenError):
            await archive_of(connection, room).page(ArchiveQuery())
