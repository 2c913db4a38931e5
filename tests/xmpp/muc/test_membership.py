import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import cast
from xml.etree.ElementTree import Element

import pytest

from bridge.text import iso
from bridge.wire.names import DISCO_INFO, DISCO_ITEMS, MAM, MUC, MUC_OWNER, PING, STANZA_ERRORS
from bridge.xmpp.model.events import ConnectionChanged, Gap, MessageSent, OccupantChanged, Phase
from bridge.xmpp.model.faults import ConnectionFailedError, Fault, NotReflectedError, Place, Retry
from bridge.xmpp.model.journal import Journal
from bridge.xmpp.muc import payloads
from bridge.xmpp.muc.intake import QUIET_SECONDS
from bridge.xmpp.muc.membership import Membership
from bridge.xmpp.muc.participant import Participant
from bridge.xmpp.muc.publisher import Publisher
from bridge.xmpp.queries.keepalive import TIMING, Timing
from tests.faults.scene import Eyes
from tests.xmpp.elements import parsed
from tests.xmpp.muc.entering import enter
from tests.xmpp.place import PLACE
from tests.xmpp.played_connection import RESULT, Answer, PlayedConnection, refused

OWN = f"{PLACE.room}/Me"
SECONDS = 30.0
SHORT = Timing(idle_before_ping=0.01, max_unconfirmed=0.2, check_interval=0.005, ping_deadline=0.02)
END = Fault("gone", "It went.", "Wait.")
OUT = refused("not-acceptable")
MUC_USER = "http://jabber.org/protocol/muc#user"
ADMITTED = (
    f"<presence from='{OWN}'><x xmlns='{MUC_USER}'><status code='110'/>"
    "<item affiliation='none' role='participant'/></x></presence>"
)
SAID = f"<message from='{PLACE.room}/Wilma' type='groupchat' id='s1'><body>hi</body></message>"
KICKED = (
    f"<presence from='{OWN}' type='unavailable'><x xmlns='{MUC_USER}'>"
    "<item affiliation='none' role='none'/><status code='110'/><status code='307'/>"
    "</x></presence>"
)


def described(feature: str) -> Element:
    query = f"<query xmlns='{DISCO_INFO}'><feature var='{feature}'/></query>"
    return parsed(f"<iq type='result' from='{PLACE.room}'>{query}</iq>")


class Standing(PlayedConnection):
    """A connection that answers pings as told, keeps what is sent, and hears nothing.

    The room has an archive that lets nobody read, or does not answer.
    """

    def __init__(self, pong: Callable[[str | None], Answer] = lambda _: RESULT) -> None:
        super().__init__({DISCO_INFO: described(MAM), MUC_OWNER: RESULT})
        self.pinged: list[str | None] = []
        self.on_send: Callable[[Element], None] = lambda element: None
        self.archive_answers = True
        self.archive_asked = asyncio.Event()
        self.pong = pong

    def answer(self, to: str | None, namespace: str) -> Answer:
        if namespace != PING:
            return super().answer(to, namespace)
        self.pinged.append(to)
        return self.pong(to)

    async def collect(
        self, id_: str, to: str, payload: Element, take: Callable[[Element], bool]
    ) -> Element:
        self.archive_asked.set()
        if not self.archive_answers:
            await self.unless_ended(asyncio.get_running_loop().create_future())
        raise refused("forbidden")

    def send(self, element: Element) -> None:
        super().send(element)
        self.on_send(element)


class Inside(Eyes):
    """Sees what a membership tells that has no participant."""

    def __init__(self, standing: Standing, timing: Timing) -> None:
        publisher = Publisher(Journal("epoch"))
        membership = Membership(PLACE, None, publisher, timing=timing)
        publisher.rooms[PLACE.room] = membership.room
        alone = SimpleNamespace(memberships=[membership], listen=publisher.listen)
        super().__init__(cast(Participant, alone), PLACE.room)
        enter(membership)
        self.begin(standing, resumed=True)

    def begin(self, standing: Standing, *, resumed: bool) -> None:
        self.membership.begin(standing.connection, resumed=resumed)

    def admit(self, element: Element) -> None:
        if is_join(element):
            self.membership.receive(parsed(ADMITTED))

    def entering(self, answer: Callable[[Element], None] | None = None) -> Standing:
        """Begin on a new connection, on which a join is let in, or answered so."""
        standing = Standing()
        standing.on_send = answer or self.admit
        self.begin(standing, resumed=False)
        return standing

    async def condition(self) -> str:
        """Of the next fault."""
        fault, _, _ = await self.fault()
        return fault.condition

    @asynccontextmanager
    async def running(self, standing: Standing) -> AsyncIterator[None]:
        """Let it be on a connection that it has begun with, until that ends."""
        running = asyncio.create_task(self.membership.run(1))
        try:
            yield
        finally:
            if not standing.ended.done():
                standing.ended.set_result(END)
            async with asyncio.timeout(SECONDS):
                await running


@asynccontextmanager
async def inside(standing: Standing, timing: Timing) -> AsyncIterator[Inside]:
    """Let it be in its room, on a connection that goes on with the former session."""
    staying = Inside(standing, timing)
    async with staying.running(standing):
        yield staying


def is_join(element: Element) -> bool:
    return element.tag.endswith("}presence") and element.get("type") is None


async def test_a_room_that_confirms_us_is_asked_again_after_the_next_silence() -> None:
    def answer(target: str | None) -> Answer:
        if len(standing.pinged) == 3:
            standing.ended.set_result(END)
        return RESULT

    standing = Standing(answer)
    async with asyncio.timeout(SECONDS):
        async with inside(standing, SHORT) as staying:
            await asyncio.shield(standing.ended)
    assert standing.pinged == [OWN] * 3
    assert [each.event for each in staying.records] == [ConnectionChanged(Phase.JOINED)]


@pytest.mark.parametrize("answer", [None, refused("remote-server-timeout")])
async def test_a_room_that_decides_nothing_is_asked_until_it_is_known(answer: Answer) -> None:
    standing = Standing(lambda _: answer)
    loop = asyncio.get_running_loop()
    started = loop.time()
    async with inside(standing, SHORT) as staying:
        fault, _, _ = await staying.fault()
        assert fault.condition == "remote-server-timeout"
        assert PLACE.room in fault.message
        assert len(standing.pinged) > 1
        # No sooner than another look and its pings would end too late.
        least = SHORT.max_unconfirmed - SHORT.check_interval - 2 * SHORT.ping_deadline
        assert loop.time() - started >= least


class Busy(Standing):
    """A connection on which all answers come behind what the server sends of another room."""

    async def request(self, type_: str, to: str | None, payload: Element) -> Element:
        for _ in range(30):
            self.received += 100_000
            await asyncio.sleep(SHORT.check_interval)
        return await super().request(type_, to, payload)


async def test_a_room_whose_answer_comes_behind_very_much_is_not_silent() -> None:
    standing = Busy()
    async with inside(standing, SHORT) as staying:
        async with asyncio.timeout(SECONDS):
            while staying.status().self_ping_ms is None:  # noqa: ASYNC110
                await asyncio.sleep(SHORT.check_interval)
        assert staying.membership.inside
        assert [each.event for each in staying.records] == [ConnectionChanged(Phase.JOINED)]


async def test_a_room_that_speaks_during_a_self_ping_is_not_silent() -> None:
    def answer(_: str | None) -> Answer:
        if len(standing.pinged) == 1:
            staying.membership.receive(parsed(SAID))
            return refused("remote-server-timeout")
        return OUT

    # A single self-ping would end too late, if what came meanwhile did not count.
    standing = Standing(answer)
    async with inside(standing, replace(SHORT, max_unconfirmed=0.055)) as staying:
        assert await staying.condition() == "not-acceptable"
    assert len(standing.pinged) == 2


async def test_a_refusal_of_a_nickname_that_we_no_longer_have_decides_nothing() -> None:
    def answer(target: str | None) -> Answer:
        if target == OWN:
            staying.membership.occupant = f"{PLACE.room}/You"
            return refused("item-not-found")
        standing.ended.set_result(END)
        return RESULT

    standing = Standing(answer)
    async with inside(standing, SHORT) as staying:
        await asyncio.shield(standing.ended)
    assert standing.pinged == [OWN, f"{PLACE.room}/You"]


@pytest.mark.parametrize("confirmed", [0, 2])
async def test_what_was_said_since_the_room_was_heard_or_confirmed_us_may_be_missed(
    confirmed: int,
) -> None:
    """The server was heard all the while; of a room that lost us that says nothing."""

    def answer(_: str | None) -> Answer:
        if len(standing.pinged) > confirmed:
            return OUT
        heard.append(time.time())
        return RESULT

    heard: list[float] = []
    timing = replace(TIMING, idle_before_ping=0.2, check_interval=0.01)
    standing = Standing(answer)
    async with inside(standing, timing) as staying:
        standing.on_send = staying.admit
        await staying.joined()
        staying.membership.receive(parsed(ADMITTED.replace("participant", "moderator")))
        heard.append(time.time())
        gap = (await staying.see(lambda event: isinstance(event, Gap))).event
    assert isinstance(gap, Gap)
    assert iso(heard[-1] - 0.1) <= gap.from_ <= iso(heard[-1] + 0.1)
    assert gap.to >= iso(heard[-1] + timing.idle_before_ping - 0.1)


async def test_what_was_not_filled_in_when_a_session_was_cut_is_once_it_goes_on() -> None:
    lost = Standing(lambda _: OUT)
    async with inside(lost, replace(TIMING, idle_before_ping=0.01, check_interval=0.01)) as staying:
        await staying.joined()
        lost.archive_answers = False
        lost.on_send = staying.admit
        await staying.joined()
        async with asyncio.timeout(SECONDS):
            await lost.archive_asked.wait()
    resumed = Standing()
    staying.begin(resumed, resumed=True)
    async with staying.running(resumed):
        await staying.see(lambda event: isinstance(event, Gap))


async def test_a_nickname_is_lost_only_where_we_are_in_the_room_under_another() -> None:
    membership = Inside(Standing(), TIMING).membership
    assert membership.status().nickname_lost == ""
    membership.occupant = f"{PLACE.room}/Me_"
    assert membership.status().nickname_lost == "Me"
    (warning,) = membership.status().warnings
    assert "taken or refused" in warning
    given = parsed(ADMITTED.replace("/Me'", "/Me_'").replace("<item", "<status code='210'/><item"))
    membership.receive(given)
    (warning,) = membership.status().warnings
    assert all(it in warning for it in ("The room changed", '"Me"', "MCP_BOT_NICKNAME"))
    membership.begin(Standing().connection, resumed=False)
    assert membership.status().nickname_lost == ""


async def test_who_is_put_out_in_the_breath_of_the_join_says_goodbye_to_nobody() -> None:
    def admit_and_kick(element: Element) -> None:
        staying.admit(element)
        if is_join(element):
            staying.membership.receive(parsed(KICKED))

    staying = Inside(Standing(), TIMING)
    standing = staying.entering(admit_and_kick)
    async with staying.running(standing):
        assert await staying.condition() == "not-allowed"
    assert not [each for each in standing.sent if each.get("type") == "unavailable"]


async def test_who_is_put_out_while_the_archive_is_read_is_told_why() -> None:
    pongs = iter([OUT])
    standing = Standing(lambda _: next(pongs, RESULT))
    timing = replace(TIMING, idle_before_ping=0.01, check_interval=0.01)
    async with inside(standing, timing) as staying:
        await staying.joined()
        standing.archive_answers = False
        standing.on_send = staying.admit
        await staying.joined()
        async with asyncio.timeout(SECONDS):
            await standing.archive_asked.wait()
        staying.membership.receive(parsed(KICKED))
        assert await staying.condition() == "not-allowed"


async def test_a_connection_that_ends_as_we_go_out_ends_nothing_else() -> None:
    def cut(element: Element) -> None:
        raise ConnectionFailedError(END)

    standing = Standing(lambda _: OUT)
    async with inside(standing, SHORT) as staying:
        standing.on_send = cut
        assert await staying.condition() == "not-acceptable"


async def test_a_message_on_its_way_to_a_room_that_has_lost_us_is_not_waited_for() -> None:
    standing = Standing(lambda _: OUT)
    async with inside(standing, TIMING) as staying:
        await staying.joined()
        saying = asyncio.create_task(staying.membership.say("hello", 60))
        await staying.see(lambda event: isinstance(event, MessageSent))
        staying.membership.doubt()
        async with asyncio.timeout(SECONDS):
            with pytest.raises(NotReflectedError) as unknown:
                await saying
    assert unknown.value.fault.condition == "not-acceptable"


async def put_out() -> Inside:
    async with inside(Standing(), TIMING) as staying:
        await staying.joined()
        staying.membership.receive(parsed(KICKED))
        await staying.phase(Phase.WAITING)
    return staying


async def test_a_rest_goes_on_on_the_next_connection() -> None:
    """Else a kick would be good until the network stumbles."""
    staying = await put_out()
    due = staying.status().next_attempt_at
    standing = staying.entering()
    async with staying.running(standing):
        assert await staying.condition() == "not-allowed"
        status = staying.status()
        assert status.phase is Phase.WAITING
        assert due is not None
        assert status.next_attempt_at == pytest.approx(due, abs=1)
        assert not standing.sent
        assert staying.membership.try_again()
        await staying.joined()


async def test_to_try_again_while_joining_is_over_once_we_are_in() -> None:
    """Else the next fault would not be told, nor a kick be respected."""

    def admit(element: Element) -> None:
        staying.membership.try_again()
        staying.admit(element)

    staying = Inside(Standing(), TIMING)
    async with staying.running(staying.entering(admit)):
        await staying.joined()
        staying.membership.receive(parsed(KICKED))
        assert await staying.condition() == "not-allowed"
        assert staying.status().phase is Phase.WAITING


async def test_to_try_again_while_there_is_no_connection_ends_a_rest() -> None:
    staying = await put_out()
    assert staying.membership.try_again()
    async with staying.running(staying.entering()):
        await staying.joined()


@pytest.mark.parametrize(
    ("place", "asked"),
    [(PLACE._replace(account="other@chat.example"), False), (PLACE._replace(nickname="You"), True)],
    ids=["another account", "the same account"],
)
async def test_other_settings_keep_what_an_accounts_stay_told(place: Place, asked: bool) -> None:
    first = Standing()
    async with inside(first, TIMING) as staying:
        await staying.joined()
        staying.membership.receive(parsed(ADMITTED.replace("participant", "moderator")))
        first.ended.set_result(END)  # as the participant does before it hands on its settings
        staying.membership.configure(place, None)
    second = staying.entering()
    async with staying.running(second):
        await staying.joined()
        if asked:
            await staying.see(lambda event: isinstance(event, Gap))
    assert second.archive_asked.is_set() is asked


async def test_a_room_that_joining_made_is_asked_what_it_is_once_it_is_there() -> None:
    def admit(element: Element) -> None:
        if is_join(element):
            created = "<status code='110'/><status code='201'/>"
            staying.membership.receive(parsed(ADMITTED.replace("<status code='110'/>", created)))

    staying = Inside(Standing(), TIMING)
    standing = staying.entering(admit)
    async with staying.running(standing):
        await staying.joined()
    asked = [each.find(f"{{{DISCO_INFO}}}query") is not None for each in standing.sent]
    assert asked == [True, False, True]


async def test_a_room_at_no_room_service_is_told_with_those_that_there_are() -> None:
    def deny(element: Element) -> None:
        if not is_join(element):
            refusal = f"<iq type='error' from='{PLACE.room}'><error/></iq>"
            staying.membership.receive(parsed(refusal))

    items = f"<iq><query xmlns='{DISCO_ITEMS}'><item jid='muc.example.org'/></query></iq>"
    staying = Inside(Standing(), TIMING)
    standing = staying.entering(deny)
    standing.answers = {
        DISCO_ITEMS: parsed(items),
        PLACE.room_service: described(MAM),
        "muc.example.org": described(MUC),
    }
    async with staying.running(standing):
        fault, _, _ = await staying.fault()
    assert '"muc.example.org"' in fault.message


def _bounce(condition: str) -> Element:
    error = f"<error type='cancel'><{condition} xmlns='{STANZA_ERRORS}'/></error>"
    return parsed(f"<message from='{PLACE.room}' type='error' id='m1'>{error}</message>")


@pytest.mark.parametrize("condition", ["service-unavailable", "remote-server-not-found"])
async def test_a_bounce_of_a_service_that_is_gone_is_told_as_that(condition: str) -> None:
    standing = Standing()
    standing.answers = {PLACE.room_service: refused("service-unavailable")}
    async with asyncio.timeout(SECONDS), inside(standing, TIMING) as staying:
        await staying.joined()
        staying.membership.receive(_bounce(condition))
        fault, _, _ = await staying.fault()
    assert (fault.condition, fault.retry) == (condition, Retry.SOON)
    assert PLACE.room_service in fault.message
    assert standing.pinged == []


@pytest.mark.parametrize("condition", ["service-unavailable", "remote-server-timeout"])
async def test_after_a_bounce_of_a_service_that_is_there_the_room_is_asked(condition: str) -> None:
    pinged = asyncio.Event()

    def answer(_: str | None) -> Answer:
        pinged.set()
        return RESULT

    standing = Standing(answer)
    standing.answers = {PLACE.room_service: described(MUC)}
    async with asyncio.timeout(SECONDS), inside(standing, TIMING) as staying:
        await staying.joined()
        staying.membership.receive(_bounce(condition))
        await pinged.wait()
        assert staying.membership.inside
        # What is known of that moment is said until the room sends something of ours to all.
        was_unreached = condition == "remote-server-timeout"
        assert any("came back" in it for it in staying.status().warnings) is was_unreached
        said = f"<message from='{OWN}' type='groupchat' id='m2'><body>again</body></message>"
        staying.membership._reflections.sent("m2", "again")  # noqa: SLF001 - said without a room
        staying.membership.receive(parsed(said))
        assert not any("came back" in it for it in staying.status().warnings)


@pytest.mark.parametrize("condition", ["forbidden", "policy-violation"])
async def test_a_bounce_about_what_was_said_casts_no_doubt_on_the_service(condition: str) -> None:
    pinged = asyncio.Event()

    def answer(_: str | None) -> Answer:
        pinged.set()
        return RESULT

    standing = Standing(answer)
    async with asyncio.timeout(SECONDS), inside(standing, TIMING) as staying:
        await staying.joined()
        staying.membership.receive(_bounce(condition))
        staying.membership.doubt()
        await pinged.wait()
        assert staying.status().warnings == []
    assert PLACE.room_service not in [address for address, _ in standing.asked]


@pytest.mark.parametrize("condition", ["service-unavailable", "remote-server-not-found"])
@pytest.mark.parametrize("before", [True, False])
async def test_a_service_that_let_us_in_before_is_gone_and_its_name_is_right(
    condition: str, before: bool
) -> None:
    def refuse(element: Element) -> None:
        if is_join(element):
            error = f"<error type='cancel'><{condition} xmlns='{STANZA_ERRORS}'/></error>"
            presence = f"<presence from='{OWN}' type='error'>{error}</presence>"
            staying.membership.receive(parsed(presence))

    staying = Inside(Standing(), TIMING)
    if before:
        admitting = staying.entering()
        async with staying.running(admitting):
            await staying.joined()
    standing = staying.entering(refuse)
    standing.answers = {PLACE.room_service: refused("service-unavailable"), PLACE.domain: RESULT}
    async with staying.running(standing):
        fault, _, _ = await staying.fault()
    if before or condition == "service-unavailable":
        assert "cannot be reached" in fault.message
        assert fault.retry is Retry.SOON
    else:
        assert "knows no server" in fault.message
        assert fault.retry is Retry.LATER


async def test_what_the_room_tells_because_we_came_is_marked_and_what_happens_then_is_not() -> None:
    def presence(nickname: str) -> str:
        return f"<presence from='{PLACE.room}/{nickname}'><x xmlns='{MUC_USER}'/></presence>"

    def subject(text: str) -> str:
        sender = f"from='{PLACE.room}' type='groupchat'"
        return f"<message {sender}><subject>{text}</subject></message>"

    stamp = f"<delay xmlns='urn:xmpp:delay' from='{PLACE.room}' stamp='2026-01-01T00:00:00Z'/>"
    old = SAID.replace("<body>", f"{stamp}<body>").replace("s1", "s0")
    came = (presence("Wilma"), ADMITTED, presence("Fred"), old, subject("a"), SAID, subject("b"))

    def tell(element: Element) -> None:
        for xml in came if is_join(element) else ():
            staying.membership.receive(parsed(xml))

    staying = Inside(Standing(), TIMING)
    async with staying.running(staying.entering(tell)):
        await staying.joined()
    marks = [(each.event.kind, each.earlier) for each in staying.records]
    assert [mark for mark in marks if mark[0] != "connection"] == [
        ("join", True),
        ("join", False),
        ("join", False),
        ("message", True),
        ("subject", True),
        ("message", False),
        ("subject", False),
    ]


async def test_history_that_we_read_late_since_we_stood_still_is_history() -> None:
    stamp = f"<delay xmlns='urn:xmpp:delay' from='{PLACE.room}' stamp='2026-01-01T00:00:00Z'/>"
    staying = Inside(Standing(), TIMING)
    async with staying.running(staying.entering()):
        await staying.joined()
        time.sleep(QUIET_SECONDS + 0.1)  # noqa: ASYNC251 - that is what the test is about
        staying.membership.receive(parsed(SAID.replace("<body>", f"{stamp}<body>")))
        await asyncio.sleep(QUIET_SECONDS + 0.1)
        staying.membership.receive(parsed(SAID.replace("<body>", f"{stamp}<body>")))
    said = [each for each in staying.records if each.event.kind == "message"]
    assert [each.earlier for each in said] == [True, False]


def present(extensions: str, more: str = "") -> Element:
    """Return Wilma's presence with these elements, each in a namespace of its name."""
    inner = "".join(f"<{it} xmlns='urn:{it}'/>" for it in extensions)
    item = f"<x xmlns='{MUC_USER}'><item affiliation='none' role='participant'/></x>"
    return parsed(f"<presence from='{PLACE.room}/Wilma'>{more}{inner}{item}</presence>")


async def test_a_change_of_what_presence_carries_is_told_and_further_ones_are_folded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def changed() -> tuple[tuple[str, ...], tuple[str, ...] | None, str | None]:
        event = (await staying.see(lambda event: isinstance(event, OccupantChanged))).event
        assert isinstance(event, OccupantChanged)
        return event.payload, event.former_payload, event.show

    assert payloads.FOLD_SECONDS == 10
    monkeypatch.setattr(payloads, "FOLD_SECONDS", 0.1)
    async with inside(Standing(), TIMING) as staying:
        for extensions in ("", "a", "ab", "a", "cb"):
            staying.membership.receive(present(extensions))
        first, last = ("a (urn:a)",), ("b (urn:b)", "c (urn:c)")
        assert await changed() == (first, (), None)
        assert await changed() == (last, first, None)
        assert staying.status().occupants[0].payload == last
        # With a change of anything else it is told at once, and nothing of it later.
        for extensions, more in (("d", ""), ("e", "<show>away</show>"), ("f", "<show>away</show>")):
            staying.membership.receive(present(extensions, more))
        away = ("e (urn:e)",)
        assert await changed() == (away, last, "away")
        assert await changed() == (("f (urn:f)",), away, "away")
