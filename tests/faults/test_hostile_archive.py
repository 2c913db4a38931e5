"""An archive that lies, floods or falls silent, on a wire of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from xml.etree.ElementTree import Element

import pytest

from bridge.xmpp.link import stanzas
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.model.events import Event
from bridge.xmpp.model.faults import ConnectionFailedError
from bridge.xmpp.muc.archive import MAX_RESULTS, ArchiveError, ArchiveQuery
from tests.faults.reaching import participant_at
from tests.faults.scripted_server import HONEST, ROOM, ScriptedServer, Wire, local
from tests.xmpp.played_archive import archive_of, find, said

MAM = "urn:xmpp:mam:2"
SECONDS = 60.0

Answer = Callable[[Wire, Element, str], None]
"""What the server does with a query: the IQ, and the id of the query."""


def result(query: str, id_: str, body: str, *, sender: str = ROOM) -> str:
    return (
        f"<message from='{sender}'><result xmlns='{MAM}' queryid='{query}'"
        f"{f' id={chr(39)}{id_}{chr(39)}' if id_ else ''}>"
        "<forwarded xmlns='urn:xmpp:forward:0'>"
        "<delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/>"
        f"<message xmlns='jabber:client' type='groupchat' from='{ROOM}/Wilma'>"
        f"<body>{body}</body></message></forwarded></result></message>"
    )


def fin(iq: Element, first: str = "", last: str = "", *, complete: bool = False) -> str:
    done = " complete='true'" if complete else ""
    named = f"<first>{first}</first><last>{last}</last>" if last else ""
    return (
        f"<iq type='result' id='{iq.get('id')}' from='{ROOM}'><fin xmlns='{MAM}'{done}>"
        f"<set xmlns='http://jabber.org/protocol/rsm'>{named}</set></fin></iq>"
    )


@asynccontextmanager
async def asking(answer: Answer) -> AsyncIterator[tuple[Connection, list[Event]]]:
    """A connection to a room whose archive answers so; and what it publishes."""

    async def stand(wire: Wire) -> None:
        while True:
            iq = await wire.element()
            if local(iq) != "iq":
                continue
            query = iq.find(f"{{{MAM}}}query")
            if query is not None and iq.get("type") == "set":
                answer(wire, iq, query.get("queryid", ""))
            else:
                features = f"<feature var='{MAM}'/>"
                info = f"<query xmlns='http://jabber.org/protocol/disco#info'>{features}</query>"
                whom = f" from='{iq.get('to')}'" if iq.get("to") else ""
                wire.send(f"<iq type='result' id='{iq.get('id')}'{whom}>{info}</iq>")

    published: list[Event] = []
    async with ScriptedServer(replace(HONEST, stand=stand)) as server, participant_at(server) as us:
        await us.joined()
        us.participant.listen(lambda record: published.append(record.event))
        yield us.participant.connection, published


async def search(connection: Connection) -> list[str]:
    return said((await find(connection, ROOM, ArchiveQuery(), seconds=SECONDS)).results)


@pytest.mark.parametrize("over", [0, 1])
async def test_more_results_than_were_asked_for_are_borne_up_to_the_bound(over: int) -> None:
    def answer(wire: Wire, iq: Element, query: str) -> None:
        for number in range(MAX_RESULTS + over):
            wire.send(result(query, str(number), "more"))
        if not over:  # otherwise they have no end
            wire.send(fin(iq, complete=True))

    async with asking(answer) as (connection, published), asyncio.timeout(SECONDS):
        with pytest.raises(ArchiveError, match="archive-odd") if over else nullcontext():
            page = await archive_of(connection, ROOM).page(ArchiveQuery(most=10))
            assert len(page.results) == MAX_RESULTS
        await connection.request("get", None, stanzas.ping())
        assert published == []


async def test_pages_of_nothing_that_lead_on_are_followed() -> None:
    asked = 0

    def answer(wire: Wire, iq: Element, query: str) -> None:
        nonlocal asked
        asked += 1
        if asked == 3:
            wire.send(result(query, "9", "at last"))
        wire.send(fin(iq, str(asked), str(asked), complete=asked == 3))

    async with asking(answer) as (connection, _):
        assert await search(connection) == ["at last"]


async def test_a_connection_that_is_cut_in_mid_page_is_told_as_such() -> None:
    def answer(wire: Wire, iq: Element, query: str) -> None:
        del iq
        wire.send(result(query, "1", "half"))
        wire.hang_up()

    async with asking(answer) as (connection, _):
        with pytest.raises(ConnectionFailedError):
            await asyncio.wait_for(search(connection), SECONDS)
