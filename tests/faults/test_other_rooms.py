"""Rooms of other servers: how they let us in, send their history, and give back what we say."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from bridge.text import iso
from bridge.tools.send import WAS_OUT
from bridge.xmpp.model.events import Gap
from tests.e2e.bridge_process import RpcFailedError
from tests.faults.scene import Scene, configure
from tests.faults.scripted_server import (
    DOMAIN,
    HONEST,
    MUC_USER,
    NICKNAME,
    ROOM,
    STANZA_ERRORS,
    USERNAME,
    ScriptedServer,
    Wire,
    local,
    present,
    said,
    subject,
)
from tests.faults.serving import ServedBridge, served_at
from tests.faults.test_odd_stanzas import direct

SECONDS = 30.0
STABLE = "http://jabber.org/protocol/muc#stable_id"
OLD = "2026-01-15T18:21:58.000Z"
FUTURE = "2999-01-01T00:00:00.000Z"
BY_WILMA = f"<delay xmlns='urn:xmpp:delay' stamp='{OLD}' from='wilma@{DOMAIN}/phone'/>"
BY_ROOM = f"<delay xmlns='urn:xmpp:delay' stamp='{OLD}' from='{ROOM}'/>"
BY_NOBODY = f"<delay xmlns='urn:xmpp:delay' stamp='{OLD}'/>"
FORMER = "<x xmlns='jabber:x:delay' stamp='20260115T18:21:58'/>"
AHEAD = f"<delay xmlns='urn:xmpp:delay' stamp='{FUTURE}' from='{ROOM}'/>"

Reflect: TypeAlias = Callable[[str, str], str]
"""What the room sends for a message with this text and this id."""


def at_once(text: str, id_: str) -> str:
    return said(NICKNAME, text, id_)


def own(*codes: int, jid: str = "") -> str:
    """Our own presence."""
    shown = f"<item jid='{jid}' affiliation='none'" if jid else "<item affiliation='none'"
    return present(NICKNAME, *codes).replace("<item affiliation='none'", shown)


@dataclass(frozen=True)
class OtherRoom:
    """A room that is no Prosody's and no ejabberd's."""

    arrival: str = present("Wilma") + own(110) + subject("")
    """What it sends to a newcomer."""
    later: str = ""
    """What it sends after that."""
    reflect: Reflect = at_once
    features: tuple[str, ...] = ()
    others: int | None = None
    """How many others it says are in it; None if it does not say."""
    cut_after: int = 0
    """With how many messages of ours the connection breaks; 0: with none."""

    async def join(self, wire: Wire) -> None:
        await self._until(wire, "presence", self.others)
        wire.send(self.arrival)
        wire.send(self.later)

    async def stand(self, wire: Wire) -> None:
        heard = 0
        while True:
            ours = None if self.others is None else self.others + 1
            message = await self._until(wire, "message", ours)
            text, id_ = message.findtext("{jabber:client}body") or "", message.get("id", "")
            wire.send(self.reflect(text, id_))
            heard += 1
            if heard == self.cut_after:
                await wire.sent()
                wire.abort()

    async def _until(self, wire: Wire, name: str, occupants: int | None = None) -> Any:
        """Answer questions until the client sends this; so many are in the room."""
        while local(element := await wire.element()) != name:
            if local(element) != "iq":
                continue
            described = "".join(f"<feature var='{feature}'/>" for feature in self.features)
            described += "" if occupants is None else counting(occupants)
            query = f"<query xmlns='http://jabber.org/protocol/disco#info'>{described}</query>"
            content = query if self.features and element.get("to") == ROOM else ""
            wire.send(
                f"<iq type='result' id='{element.get('id')}' from='{element.get('to')}'>"
                f"{content}</iq>"
            )
        return element


@asynccontextmanager
async def beside(*rooms: OtherRoom, home: Path) -> AsyncIterator[ServedBridge]:
    """A bridge that is in such a room; after a cut, in the next one of that address."""
    scripts = [replace(HONEST, join=room.join, stand=room.stand) for room in rooms]
    async with ScriptedServer(*scripts) as server, served_at(server, home) as bridge:
        yield bridge


async def messages(bridge: ServedBridge, **arguments: object) -> list[dict[str, Any]]:
    page = await bridge.bare("xmppHistory", kinds=["message"], detail="full", **arguments)
    entries: list[dict[str, Any]] = page["entries"]
    return [entry for entry in entries if entry["direction"] == "in"]


def former_subject(text: str, stamp: str = "") -> str:
    """The subject that somebody set, with a stamp as rooms send it in their history."""
    return subject(text).replace("</subject>", f"</subject>{stamp}")


def told(entry: dict[str, Any], *names: str) -> list[object]:
    return [entry.get(name) for name in names]


# History.


@pytest.mark.parametrize(
    ("stamp", "by"),
    [
        (BY_ROOM, None),
        (BY_WILMA, f"wilma@{DOMAIN}/phone"),
        (BY_NOBODY, None),
        (FORMER, None),
        (BY_WILMA + FORMER, None),
    ],
    ids=["the room", "the sender", "somebody unnamed", "as once", "the last of two"],
)
async def test_what_has_a_delay_before_the_subject_is_history_whoever_stamped_it(
    stamp: str, by: str | None, tmp_path: Path
) -> None:
    old = said("Wilma", "old news", "h1", stamp)
    room = OtherRoom(present("Wilma") + own(110) + old + subject(""), said("Wilma", "news", "n1"))
    async with beside(room, home=tmp_path) as bridge:
        await bridge.bare("xmppWait", since="oldest", contains="news", timeoutSeconds=SECONDS)
        history, live = await messages(bridge)
        assert told(history, "source", "delayedFrom", "stampedBy") == ["history", OLD, by]
        assert history.get("stampedAt") == (None if stamp == BY_ROOM else OLD)
        assert told(live, "source", "delayedFrom", "stampedAt") == ["live", None, None]
        assert (await bridge.status())["lastIncoming"]["body"] == "news"
        # What is history is never new.
        for wanted, matched in (("old news", False), ("news", True)):
            waited = await bridge.bare(
                "xmppWait", since="oldest", pattern=f"^{wanted}$", timeoutSeconds=0.1
            )
            assert (waited["matched"], "old news" in str(waited)) == (matched, False)


@pytest.mark.parametrize("stamp", [BY_WILMA, AHEAD])
async def test_the_last_message_of_the_history_has_its_own_time_and_never_a_future_one(
    stamp: str, tmp_path: Path
) -> None:
    room = OtherRoom(own(110) + said("Wilma", "old news", "h1", stamp) + subject(""))
    async with beside(room, home=tmp_path) as bridge:
        await bridge.until(lambda status: status["lastIncoming"] is not None)
        status = await bridge.status()
        (history,) = await messages(bridge)
        assert status["lastIncoming"]["receivedAt"] == history["delayedFrom"] <= history["at"]
        assert history["stampedAt"] == (OLD if stamp == BY_WILMA else FUTURE)


@pytest.mark.parametrize(
    "between",
    [subject("so"), former_subject("so", BY_ROOM), said("Fred", "live", "l1")],
    ids=["the subject", "a subject with a stamp", "a live message"],
)
async def test_a_delay_proves_nothing_once_the_history_has_ended(
    between: str, tmp_path: Path
) -> None:
    late = said("Wilma", "forged", "f1", BY_WILMA)
    async with beside(OtherRoom(own(110) + between + late), home=tmp_path) as bridge:
        waited = await bridge.bare(
            "xmppWait", since="oldest", contains="forged", timeoutSeconds=SECONDS
        )
        assert waited["matched"]
        *_, entry = await messages(bridge)
        assert told(entry, "source", "delayedFrom", "stampedBy") == ["live", None, None]


async def test_a_message_without_words_does_not_end_the_history(tmp_path: Path) -> None:
    typing = said("Wilma", "x", "t1", "<composing xmlns='http://jabber.org/protocol/chatstates'/>")
    typing = typing.replace("<body>x</body>", "")
    old = said("Wilma", "old news", "h1", BY_WILMA)
    async with beside(OtherRoom(own(110) + typing + old + subject("")), home=tmp_path) as bridge:
        await bridge.until(lambda status: status["lastIncoming"] is not None)
        *_, entry = await messages(bridge)
        assert entry["source"] == "history"


NOTICE = said("", "This room is not anonymous.", "n1")
HISTORY = said("Wilma", "old", "h1", BY_WILMA)


@pytest.mark.parametrize(
    "arrival",
    [
        own(110) + NOTICE + HISTORY + subject(""),
        HISTORY + own(110) + subject(""),
        said("Wilma", "live", "l1") + HISTORY + own(110) + subject(""),
    ],
    ids=["after a notice", "before our presence", "after a live message"],
)
async def test_the_history_may_come_in_another_order(arrival: str, tmp_path: Path) -> None:
    async with beside(OtherRoom(arrival), home=tmp_path) as bridge:
        await bridge.until(lambda status: status["lastIncoming"] is not None)
        sources = {entry["body"]: entry["source"] for entry in await messages(bridge)}
        assert sources.pop("old") == "history"
        assert set(sources.values()) <= {"live"}


async def test_a_former_subject_ends_the_list_of_those_who_were_there_before_us(
    tmp_path: Path,
) -> None:
    arrival = own(110) + former_subject("then", BY_ROOM) + present("Fred")
    async with beside(OtherRoom(arrival), home=tmp_path) as bridge:
        await bridge.until(lambda status: status["occupants"] == 2)
        (fred,) = (await bridge.bare("xmppOccupants", nickname="Fred"))["occupants"]
        assert "since" in fred


async def test_the_history_of_a_room_is_not_told_again_when_we_come_back(tmp_path: Path) -> None:
    live = said("Wilma", "hello", "m1")
    again = said("Wilma", "hello", "m1", BY_WILMA) + said("Wilma", "missed", "m2", BY_WILMA)
    first = OtherRoom(own(110) + subject(""), live, cut_after=1)
    async with beside(first, OtherRoom(own(110) + again + subject("")), home=tmp_path) as bridge:
        await bridge.bare("xmppWait", since="oldest", contains="hello", timeoutSeconds=SECONDS)
        await bridge.bare("xmppSend", message="bye")
        await bridge.eyes.see(lambda event: isinstance(event, Gap))  # the room has no archive
        bodies = [(entry["body"], entry["source"]) for entry in await messages(bridge)]
        assert bodies == [("hello", "live"), ("bye", "live"), ("missed", "history")]


@pytest.mark.parametrize("cut_after", [0, 1], ids=["stays", "cut off"])
async def test_who_waits_for_an_answer_learns_that_the_bridge_was_out_of_the_room(
    cut_after: int, tmp_path: Path
) -> None:
    first = OtherRoom(own(110) + subject(""), cut_after=cut_after)
    async with beside(first, OtherRoom(), home=tmp_path) as bridge:
        sent = await bridge.bare("xmppSend", message="!ping", awaitSeconds=2)
        assert (sent["answers"], WAS_OUT in sent["hint"]) == ([], bool(cut_after))


async def test_a_subject_in_the_name_of_the_room_may_have_a_body_beside_it(tmp_path: Path) -> None:
    with_body = said("", "Wilma has set the subject to: so", "s1", "<subject>so</subject>")
    async with beside(OtherRoom(own(110) + HISTORY + with_body), home=tmp_path) as bridge:
        await bridge.until(lambda status: status.get("subject") == "so")
        assert (await bridge.status())["lastIncoming"]["body"] == "old"
        assert [entry["body"] for entry in await messages(bridge)] == ["old"]


# Joining.


@pytest.mark.parametrize(
    "arrival",
    [
        present("Wilma") + own() + subject(""),
        present("Wilma") + own() + said("Wilma", "old", "h1", BY_WILMA) + subject(""),
        own() + present("Wilma") + subject(""),
        own() + said("Wilma", "live", "l1"),
        present("Wilma") + own(),
    ],
    ids=["then the subject", "history", "ours first", "then quiet, but for one", "then quiet"],
)
async def test_a_room_that_never_marks_our_presence_lets_us_in(
    arrival: str, tmp_path: Path
) -> None:
    async with beside(OtherRoom(arrival), home=tmp_path) as bridge:
        status = await bridge.status()
        assert told(status, "phase", "nickname", "lastError") == ["joined", NICKNAME, None]
        assert status["self"]["voice"]
        listed = (await bridge.bare("xmppOccupants"))["occupants"]
        ours = [who["nickname"] for who in listed if who.get("self")]
        assert (ours, len(listed)) == ([NICKNAME], arrival.count("<presence"))
        assert [entry["source"] for entry in await messages(bridge)] == [
            "history" if "delay" in arrival else "live"
        ] * ("<body>" in arrival)


PLAIN = f"<presence from='{ROOM}/{{}}'/>"
FOREIGN = PLAIN.replace(
    "/>", "><x xmlns='http://jabber.org/protocol/muc'><item role='x'/></x></presence>"
)
ROLELESS = PLAIN.replace(
    "/>", f"><x xmlns='{MUC_USER}'><item affiliation='member'/></x></presence>"
)


@pytest.mark.parametrize("plain", [PLAIN, FOREIGN, ROLELESS], ids=["bare", "foreign", "no role"])
async def test_a_room_that_shows_no_roles_lets_us_in_and_everybody_speak(
    plain: str, tmp_path: Path
) -> None:
    arrival = plain.format("Wilma") + plain.format("Robot") + plain.format(NICKNAME) + subject("")
    gone = f"<presence type='unavailable' from='{ROOM}/Wilma'/>"
    async with beside(OtherRoom(arrival, gone), home=tmp_path) as bridge:
        await bridge.until(lambda status: status["occupants"] == 2)
        ours = (await bridge.status())["self"]
        assert told(ours, "role", "voice") == ["unknown", True]
        listed = await bridge.bare("xmppOccupants", nickname="Robot")
        (robot,) = listed["occupants"]
        assert told(robot, "role", "voice") == ["unknown", True]
        diagnosed = await bridge.bare("xmppDiagnose", nickname="Robot", detail="full")
        (voice,) = [it for it in diagnosed["findings"] if it["name"] == "voice"]
        assert (voice["ok"], "shows no role" in voice["detail"]) == (None, True)


async def test_we_are_out_of_a_room_that_says_only_that_we_are_unavailable(tmp_path: Path) -> None:
    gone = f"<presence type='unavailable' from='{ROOM}/{NICKNAME}'/>"
    async with beside(OtherRoom(reflect=lambda text, id_: gone), home=tmp_path) as bridge:
        with pytest.raises(RpcFailedError):
            await bridge.bare("xmppSend", message="hello")
        await bridge.until(lambda status: status["lastError"] is not None)
        assert (await bridge.status())["lastError"]["condition"] == "recipient-unavailable"


async def test_others_who_are_listed_after_us_did_not_come_later(tmp_path: Path) -> None:
    room = OtherRoom(own(110) + present("Wilma") + subject(""), present("Fred"))
    async with beside(room, home=tmp_path) as bridge:
        await bridge.bare(
            "xmppWait", since="oldest", kinds=["join"], **{"from": "Fred"}, timeoutSeconds=SECONDS
        )
        listed = (await bridge.bare("xmppOccupants"))["occupants"]
        since = {who["nickname"]: "since" in who for who in listed}
        assert (since["Wilma"], since["Fred"]) == (False, True)


async def test_somebody_else_who_has_our_nickname_keeps_it(tmp_path: Path) -> None:
    taken = (
        f"<presence type='error' from='{ROOM}/{NICKNAME}'><error type='cancel'>"
        f"<conflict xmlns='{STANZA_ERRORS}'/></error></presence>"
    )

    class Taken(OtherRoom):
        async def join(self, wire: Wire) -> None:
            await self._until(wire, "presence")
            wire.send(present(NICKNAME) + taken)  # it lists who is there, and then refuses
            await self._until(wire, "presence")
            wire.send(present(NICKNAME) + present(f"{NICKNAME}-2", 110) + subject(""))

    async with beside(Taken(), home=tmp_path) as bridge:
        assert (await bridge.status())["nickname"] == f"{NICKNAME}-2"
        listed = (await bridge.bare("xmppOccupants"))["occupants"]
        assert {who["nickname"]: who.get("self", False) for who in listed} == {
            NICKNAME: False,
            f"{NICKNAME}-2": True,
        }


async def test_the_presence_that_is_marked_is_ours_also_under_another_nickname(
    tmp_path: Path,
) -> None:
    arrival = present(NICKNAME) + present("Guest-7", 110, 210) + subject("")
    async with beside(OtherRoom(arrival), home=tmp_path) as bridge:
        assert (await bridge.status())["nickname"] == "Guest-7"
        listed = (await bridge.bare("xmppOccupants"))["occupants"]
        assert sorted(who["nickname"] for who in listed) == ["Guest-7", NICKNAME]


RENAMED = present("Guest-7", 110)
FORMER_GONE = (
    present(NICKNAME, 303, 110)
    .replace("<presence", "<presence type='unavailable'")
    .replace("role='participant'", "role='none' nick='Guest-7'")
)


@pytest.mark.parametrize(
    "changed",
    [FORMER_GONE + RENAMED, RENAMED + FORMER_GONE, RENAMED],
    ids=["as in XEP-0045", "the new one first", "the new one alone"],
)
async def test_the_room_may_change_our_nickname_as_soon_as_we_are_in(
    changed: str, tmp_path: Path
) -> None:
    room = OtherRoom(later=changed, reflect=lambda text, id_: said("Guest-7", text, id_))
    async with beside(room, home=tmp_path) as bridge:
        assert (await bridge.bare("xmppSend", message="hello", timeoutSeconds=SECONDS))["sent"]
        status = await bridge.status()
        assert (status["nickname"], status["occupants"]) == ("Guest-7", 2)
        assert any("Guest-7" in warning for warning in status["warnings"])


# Reflections.


def without_id(text: str, id_: str) -> str:
    return said(NICKNAME, text, "").replace(" id=''", "")


def with_another_id(text: str, id_: str) -> str:
    return said(NICKNAME, text, f"not-{id_}")


def rewritten(text: str, id_: str) -> str:
    return said(NICKNAME, "https://paste.example/1", id_)


def rewritten_without_id(text: str, id_: str) -> str:
    return without_id("https://paste.example/1", id_)


def stamped(text: str, id_: str) -> str:
    return said(NICKNAME, text, id_, BY_ROOM)


@pytest.mark.parametrize("reflect", [without_id, with_another_id])
@pytest.mark.parametrize("arrival", [own(110), own(jid=f"{USERNAME}@{DOMAIN}/scripted")])
async def test_a_room_that_gives_no_ids_back_proves_what_we_said_by_its_text(
    reflect: Reflect, arrival: str, tmp_path: Path
) -> None:
    room = OtherRoom(arrival + subject(""), reflect=reflect)
    async with beside(room, home=tmp_path) as bridge:
        for _ in range(2):
            sent = await bridge.bare("xmppSend", message="hello", timeoutSeconds=SECONDS)
            assert told(sent, "sent", "proof", "heardAs") == [True, "text", None]
        page = await bridge.bare("xmppHistory", kinds=["message"])
        assert [(entry["heard"], entry["times"]) for entry in page["entries"]] == [(True, 2)]
        *_, last = await messages(bridge)
        assert last["reflects"] == sent["id"]
        assert (await bridge.status())["lastIncoming"] is None


async def test_two_calls_with_one_text_are_each_proved_by_a_copy_of_its_own(tmp_path: Path) -> None:
    room = OtherRoom(own(110) + subject(""), reflect=without_id)
    async with beside(room, home=tmp_path) as bridge:
        both = await asyncio.gather(
            *(bridge.bare("xmppSend", message="hello", timeoutSeconds=SECONDS) for _ in range(2))
        )
        assert len({sent["reflectedAt"] + sent["id"] for sent in both}) == 2
        assert len(await messages(bridge)) == 2


@pytest.mark.parametrize(
    ("room", "condition"),
    [
        (OtherRoom(reflect=rewritten_without_id), "unproved"),
        (OtherRoom(reflect=without_id, features=(STABLE,)), "unproved"),
        (OtherRoom(own() + subject(""), reflect=without_id), "unproved"),
        (
            OtherRoom(
                own(110)
                + present("Other").replace("<item", f"<item jid='{USERNAME}@{DOMAIN}/o'")
                + subject(""),
                reflect=without_id,
            ),
            "unproved",
        ),
        (OtherRoom(reflect=lambda text, id_: said("Wilma", text, id_)), "remote-server-timeout"),
    ],
    ids=["rewritten", "stable ids", "unmarked", "another session of ours", "somebody else"],
)
async def test_what_cannot_be_proved_was_not_sent(
    room: OtherRoom, condition: str, tmp_path: Path
) -> None:
    async with beside(room, home=tmp_path) as bridge:
        with pytest.raises(RpcFailedError) as failed:
            await bridge.bare("xmppSend", message="hello", timeoutSeconds=0.5)
        assert failed.value.data["condition"] == condition


async def test_a_text_that_was_not_given_back_is_not_said_twice_at_once(tmp_path: Path) -> None:
    room = OtherRoom(reflect=lambda text, id_: "")
    async with beside(room, home=tmp_path) as bridge:
        calls = [
            bridge.bare("xmppSend", message="hello", timeoutSeconds=seconds)
            for seconds in (1.5, 0.3)
        ]
        first, second = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(first, RpcFailedError)
        assert isinstance(second, RpcFailedError)
        assert first.data["condition"] == "remote-server-timeout"
        assert (second.data["condition"], "Not sent" in str(second)) == (
            "resource-constraint",
            True,
        )


async def test_an_error_without_an_id_answers_the_only_message_that_waits(tmp_path: Path) -> None:
    error = f"<error type='auth'><forbidden xmlns='{STANZA_ERRORS}'/></error>"
    bounce = f"<message type='error' from='{ROOM}'>{error}</message>"
    room = OtherRoom(reflect=lambda text, id_: bounce if text == "a" else "")
    async with beside(room, home=tmp_path) as bridge:
        for others, condition in (["a"], "forbidden"), (["a", "b"], "remote-server-timeout"):
            calls = [
                bridge.bare("xmppSend", message=text, timeoutSeconds=1) for text in reversed(others)
            ]
            *_, failed = await asyncio.gather(*calls, return_exceptions=True)
            assert isinstance(failed, RpcFailedError)
            assert failed.data["condition"] == condition
        errors = await bridge.bare("xmppHistory", kinds=["error"])
        traced = await bridge.bare("xmppTrace", of=errors["entries"][0]["cursor"])
        assert "forbidden" in str(traced)


async def test_what_the_room_made_of_a_message_is_in_the_result(tmp_path: Path) -> None:
    async with beside(OtherRoom(reflect=rewritten), home=tmp_path) as bridge:
        sent = await bridge.bare("xmppSend", message="deploy now")
        assert told(sent, "sent", "proof") == [True, None]
        assert (sent["message"], sent["heardAs"]) == ("deploy now", "https://paste.example/1")
        assert "notice" in sent


async def test_a_stamp_on_a_reflection_does_not_make_it_somebody_elses(tmp_path: Path) -> None:
    room = OtherRoom(own(110), reflect=stamped)  # its history may still be coming
    async with beside(room, home=tmp_path) as bridge:
        sent = await bridge.bare("xmppSend", message="hello", timeoutSeconds=SECONDS)
        assert sent["sent"]
        assert (await bridge.status())["lastIncoming"] is None


async def test_the_time_of_a_room_counts_before_everybody_elses(tmp_path: Path) -> None:
    other = f"<delay xmlns='urn:xmpp:delay' stamp='{iso(0.0)}' from='wilma@{DOMAIN}'/>"
    for stamps in (BY_ROOM + other, other + BY_ROOM):
        room = OtherRoom(own(110) + said("Wilma", "old", "h1", stamps) + subject(""))
        async with beside(room, home=tmp_path / str(len(stamps)) / stamps[-9:-8]) as bridge:
            await bridge.until(lambda status: status["lastIncoming"] is not None)
            (entry,) = await messages(bridge)
            assert told(entry, "delayedFrom", "stampedAt") == [OLD, None]


# Hidden presence.

ASKED = said("Robot", "pong", "p1")


def counting(occupants: int) -> str:
    """The form of a room that says how many are in it."""
    fields = {"FORM_TYPE": "http://jabber.org/protocol/muc#roominfo"}
    fields |= {"muc#roominfo_occupants": str(occupants)}
    listed = (f"<field var='{var}'><value>{value}</value></field>" for var, value in fields.items())
    return f"<x xmlns='jabber:x:data' type='result'>{''.join(listed)}</x>"


async def test_who_speaks_and_is_not_listed_is_not_shown_by_the_room(tmp_path: Path) -> None:
    room = OtherRoom(own(110) + subject(""), ASKED)
    async with beside(room, home=tmp_path) as bridge:
        await bridge.until(lambda status: status["lastIncoming"] is not None)
        for nickname in (None, "Robot"):
            listed = await bridge.bare(
                "xmppOccupants", **{"nickname": nickname} if nickname else {}
            )
            (robot,) = listed["notShown"]
            assert told(robot, "nickname", "why") == ["Robot", "not shown by the room"]
            assert "Robot" not in str(listed["occupants"])
        pinged = await bridge.bare("xmppPing", target="Robot")
        assert (pinged["reachable"], pinged["address"]) == (True, f"{ROOM}/Robot")
        diagnosed = await bridge.bare("xmppDiagnose", nickname="Robot", detail="full")
        present_ = next(it for it in diagnosed["findings"] if it["name"] == "present")
        assert "is not shown by the room" in present_["detail"]
        assert present_["detail"] in diagnosed["verdict"]
        assert "never in the room" not in str(diagnosed)
        assert (await bridge.status())["warnings"]


@pytest.mark.parametrize(
    ("counted", "listed", "known"),
    [
        (1, present("Wilma"), True),
        (2, present("Wilma"), False),
        (1, "", False),
        (0, "", True),
        (None, "", True),
    ],
)
async def test_who_was_never_heard_is_unknown_where_the_room_counts_more_than_it_shows(
    counted: int | None, listed: str, known: bool, tmp_path: Path
) -> None:
    room = OtherRoom(listed + own(110) + subject(""), features=("x",), others=counted)
    async with beside(room, home=tmp_path) as bridge:
        diagnosed = await bridge.bare("xmppDiagnose", nickname="Robot")
        assert ("was never in the room" in diagnosed["verdict"]) is known
        assert ("is unknown" in diagnosed["verdict"]) is not known
        if known:
            with pytest.raises(RpcFailedError, match="Robot"):
                await bridge.bare("xmppPing", target="Robot")
        else:
            pinged = await bridge.bare("xmppPing", target="Robot")
            assert pinged["address"] == f"{ROOM}/Robot"


async def test_somebody_whom_the_room_shows_later_is_an_occupant_like_any_other(
    tmp_path: Path,
) -> None:
    room = OtherRoom(own(110) + subject(""), ASKED + present("Robot"))
    async with beside(room, home=tmp_path) as bridge:
        await bridge.until(lambda status: status["occupants"] == 2)
        listed = await bridge.bare("xmppOccupants", nickname="Robot")
        assert (listed["count"], "notShown" in listed) == (1, False)


@pytest.mark.servers
async def test_an_agent_beside_ours_under_our_nickname_is_nobody_whom_the_room_hides(
    stage: Scene,
) -> None:
    async with stage.witness("Owner"), stage.participant() as beside_ours:
        await beside_ours.joined()
        async with stage.participant() as ours:
            await ours.joined()
            assert ours.status().shows_all
            await ours.membership.recount()
            assert ours.status().shows_all


@pytest.mark.servers
@pytest.mark.parametrize("first", [True, False], ids=["there before us", "there after us"])
async def test_a_real_room_that_hides_presence_is_known_to_do_so(stage: Scene, first: bool) -> None:
    async with stage.witness("Owner") as owner, AsyncExitStack() as others:
        await configure(owner, presencebroadcast="moderator")
        robot, eyes = stage.participant(direct(stage, "Robot")), stage.participant()
        come = [robot, eyes] if first else [eyes, robot]
        entered = []
        for somebody in come:
            entered.append(await others.enter_async_context(somebody))
            await entered[-1].joined()
        seen, theirs = entered[::-1] if first else entered
        assert [who.nickname for who in seen.status().others] == ["Owner"]
        await seen.membership.recount()
        assert not seen.status().shows_all
        await theirs.membership.say("pong", SECONDS)
        await seen.hears("pong")
        assert [who.nickname for who in seen.status().unlisted] == ["Robot"]
