"""Whatever a stanza says: no result has a hidden character in it, and none is too long."""

import dataclasses
import json
import typing
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Any, get_args
from xml.etree.ElementTree import Element, SubElement

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.mcp.schema import render
from bridge.mcp.toolset import Tool
from bridge.settings.load import MAX_SHOWN, load
from bridge.settings.sources import Problem
from bridge.settings.table import VARIABLES, Configuration, Setting, Settings
from bridge.settings.values import Secret
from bridge.text import visible
from bridge.tools import prompts, resources
from bridge.tools.answers import MAX_ANSWERS
from bridge.tools.check import CurrentSettings, result_of, xmpp_check
from bridge.tools.diagnose import xmpp_diagnose
from bridge.tools.entries import fit
from bridge.tools.history import xmpp_history
from bridge.tools.link import RoomLink
from bridge.tools.occupants import xmpp_occupants
from bridge.tools.query import xmpp_info, xmpp_ping
from bridge.tools.send import RateLimiter, xmpp_send
from bridge.tools.status import xmpp_status
from bridge.tools.trace import xmpp_trace
from bridge.tools.wait import xmpp_wait
from bridge.wire.names import DATA_FORMS, DISCO_INFO, StanzaError
from bridge.xmpp.checks.diagnosis import FINDINGS
from bridge.xmpp.checks.report import CheckStage, Report
from bridge.xmpp.link.stanzas import IqError
from bridge.xmpp.model.events import (
    Connected,
    ConnectionChanged,
    Event,
    Joined,
    MessageReceived,
    MessageSent,
    Phase,
)
from bridge.xmpp.muc.archive import MAX_ID_BYTES
from bridge.xmpp.muc.participant import Participant
from tests.mcp.sample_tools import QUIET
from tests.tools.played import LOGS, OTHER_LOBBY, ROOM, Answering, Archived, Played, arguments
from tests.tools.standing import standing
from tests.xmpp.elements import append
from tests.xmpp.played_archive import Line, PlayedArchive

MOST = 9_000
"""Bytes of JSON of a result, as the contract has it."""
SIZES = (2_000, MOST, 45_000)
ANY_SIZE = st.sampled_from(SIZES) | st.integers(2_000, 45_000)
HOSTILE = st.builds(
    lambda some, each, times: some + each * times,
    st.text(st.sampled_from('a \n\t"\\\u202e\u200b\u200d\x1b\x85\u2028\U000e0041\ufe0f\u00e9👍')),
    st.sampled_from('a"\u202e\u200d\U000e0041\n\u00e9'),
    st.sampled_from([0, 1, 40, 400, 3_000, 10_000]),
)
"""What strangers may write, in any field."""


def _of(hint: Any) -> st.SearchStrategy[Any]:
    """Return values of a field of an event, or of what stands in one."""
    if hint is str:
        return HOSTILE
    if dataclasses.is_dataclass(hint):
        return _built(hint)
    if hint == frozenset[int]:
        return st.frozensets(st.integers(0, 999), max_size=5) | st.just(frozenset(range(1_000)))
    if hint == tuple[str, ...]:
        return st.lists(HOSTILE, max_size=32).map(tuple)
    return st.from_type(hint) if hint is not float else st.floats(0, 2e9)


def _built(cls: Any) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(cls)
    fields = {}
    for name in cls.__match_args__:
        hint = hints[name]
        members = [each for each in get_args(hint) if each is not type(None)]
        optional = type(None) in get_args(hint)
        fields[name] = st.none() | _of(members[0]) if optional else _of(hint)
    return st.builds(cls, **fields)


SETTINGS = Settings(
    username="bot",
    domain="example.org",
    password=Secret("secret"),
    rooms=("room@conference.example.org",),
    nickname="McpDebug",
)
EVENTS: st.SearchStrategy[list[Event]] = st.lists(
    st.one_of(*map(_built, get_args(Event))), max_size=5
)


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from _texts(each)
        case dict():
            for each in value.values():
                yield from _texts(each)


def _checked(result: object, most: int = MOST, tool: Tool | None = None) -> dict[str, Any]:
    """Return what a client sees of a result, which has nothing hidden in it and is not too long."""
    wire: Any = render(result)
    assert [each for each in _texts(wire) if visible(each) != each] == []
    assert len(json.dumps(wire)) <= most
    if tool is not None:
        Draft202012Validator(tool.output_schema).validate(wire)
    assert isinstance(wire, dict)
    return wire


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Configuration:
    folder = tmp_path_factory.mktemp("nothing")
    return load({}, cwd=folder, package_root=folder / "package")


ROOMS = pytest.mark.parametrize("rooms", [(ROOM,), (ROOM, LOGS, OTHER_LOBBY)], ids=len)


def _taking_part(events: Sequence[Event], rooms: tuple[str, ...]) -> tuple[Participant, RoomLink]:
    participant = Participant(SETTINGS._replace(rooms=rooms))
    for event, membership in zip(events, cycle(participant.memberships), strict=False):
        participant.publisher.publish(event, membership.name)
    participant.publisher.publish(ConnectionChanged(Phase.JOINED))
    return participant, RoomLink(participant)


def _number(cursor: str) -> int:
    return int(cursor.partition("-")[2])


def _shown(event: Event) -> bool:
    """Whether a brief account has it; what only joining and sending bring is in test_history."""
    return not isinstance(event, MessageSent | ConnectionChanged | Connected | Joined)


@ROOMS
@settings(max_examples=20)
@given(
    events=EVENTS,
    size=ANY_SIZE,
    limit=st.sampled_from([1, 2, 500]) | st.integers(1, 500),
    detail=st.sampled_from(["brief", "full"]),
    kinds=st.none() | st.sampled_from([["connection"], ["message", "gap"]]),
)
async def test_whatever_happened_and_is_asked_for_is_told_once_page_by_page(
    events: list[Event],
    size: int,
    limit: int,
    detail: str,
    kinds: list[str] | None,
    rooms: tuple[str, ...],
) -> None:
    participant, link = _taking_part(events, rooms)
    asked: dict[str, object] = {"maxBytes": size, "limit": limit, "detail": detail}
    asked |= {"kinds": kinds} if kinds else {}
    due = [
        participant.journal.cursor_of(each.number)
        for each in participant.journal
        if (kinds is None or each.event.kind in kinds) and (detail == "full" or _shown(each.event))
    ]
    told: list[str] = []
    page: dict[str, Any] = {"next": "oldest", "more": True}
    while page["more"]:
        given_ = arguments(xmpp_history, asked | {"since": page["next"]})
        page = _checked(await xmpp_history(link, **given_), size, xmpp_history)
        assert 0 < len(page["entries"]) <= limit or not page["more"]
        assert ("notice" in page) is bool(page["entries"])
        told += [each["cursor"] for each in page["entries"]]
    assert told == sorted(told, key=_number)
    assert {*due} <= {*told}
    assert detail == "brief" or told == due
    newest = arguments(xmpp_history, asked)
    page = _checked(await xmpp_history(link, **newest), size, xmpp_history)
    last = [each["cursor"] for each in page["entries"]]
    assert last == told[len(told) - len(last) :]
    assert page["more"] is (len(last) < len(told))


def test_a_body_that_is_cut_twice_says_how_long_it_was() -> None:
    exact: dict[str, object] = {"cursor": "epoch-1", "body": "x" * 20_000}
    once = fit(exact, 8_000)
    twice = fit(once, 1_000)
    assert once["bodyBytes"] == twice["bodyBytes"] == 20_000
    assert len(json.dumps(twice)) <= 1_000 < len(json.dumps(once)) <= 8_000
    assert twice["truncated"] is True


@ROOMS
@settings(max_examples=8)
@given(events=EVENTS)
async def test_what_is_waited_for_and_who_is_here_and_how_things_stand(
    events: list[Event], configuration: Configuration, rooms: tuple[str, ...]
) -> None:
    participant, link = _taking_part(events, rooms)
    unlike = [{"contains": "nothing like it"}, {"kinds": ["gap", "leave"]}]
    asked: list[Any] = [{}, {"kinds": ["message"]}, *unlike]
    for wanted in asked:
        given_ = {"since": participant.journal.oldest, "timeoutSeconds": 0, **wanted}
        waited = await xmpp_wait(link, QUIET, **arguments(xmpp_wait, given_))
        told = _checked(waited, tool=xmpp_wait)
        assert told["matched"] is ("entry" in told)
        assert told["matched"] or bool(told["passed"]) is (told["seen"] > 0)
    current = CurrentSettings(configuration, lambda: configuration)
    _checked(xmpp_status(link, current), tool=xmpp_status)
    _checked(xmpp_occupants(link, **arguments(xmpp_occupants, {})), tool=xmpp_occupants)
    for each in (resources.occupants, resources.messages):
        _checked(each.function(link))
    _checked(resources.status.function(link, current))
    for name in prompts.nicknames(link):
        assert visible(name) == name
    names = [each.nickname for each in participant.status().occupants]
    for name in (*names, *prompts.nicknames(link)):
        for prompt in (prompts.diagnose_room, prompts.summarise_room):
            text = prompt.function(nickname=name)
            assert visible(text) == text
            assert "\n" not in text.replace("\n\n", "", 1)
            assert len(text) < MOST


@settings(max_examples=8)
@given(st.lists(st.tuples(HOSTILE, HOSTILE), max_size=4))
async def test_stanzas_are_shown_whole_page_by_page(shapes: list[tuple[str, str]]) -> None:
    played = Played()
    for attribute, text in shapes:
        message = Element("{jabber:client}message", {"id": attribute})
        SubElement(message, "{jabber:client}body").text = text
        append(played.trace, "in", "1", message, 0.0)
    for size in SIZES:
        told: list[str] = []
        page: dict[str, Any] = {"next": "epoch-0", "more": True}
        while page["more"]:
            given_ = arguments(xmpp_trace, {"since": page["next"], "maxBytes": size})
            page = _checked(await xmpp_trace(played.link, **given_), size, xmpp_trace)
            told += [each["cursor"] for each in page["entries"]]
        assert told == [f"epoch-{number + 1}" for number in range(len(shapes))]


class _Odd(PlayedArchive):
    """An archive with ids of its own invention."""

    ids: list[str]

    def _id(self, index: int) -> str:
        return self.ids[index]

    def _index(self, id_: str) -> int:
        return self.ids.index(id_)


IDS = st.text(
    st.sampled_from('ab%/ +"\\\n\u202e\u200d\U000e0041\u00e9👍'), min_size=1, max_size=MAX_ID_BYTES
).filter(lambda it: len(it.encode()) <= MAX_ID_BYTES)


@settings(max_examples=12)
@given(
    st.lists(st.tuples(IDS, HOSTILE), min_size=1, max_size=6, unique_by=lambda it: it[0]),
    ANY_SIZE,
    st.integers(1, 7),
    st.sampled_from(["brief", "full"]),
)
async def test_an_archive_with_odd_ids_is_told_whole_page_by_page(
    lines: list[tuple[str, str]], size: int, limit: int, detail: str
) -> None:
    played = Archived()
    played.kept = _Odd(
        [Line("Wilma", f"{number} {text}") for number, (_, text) in enumerate(lines)]
    )
    played.kept.ids = [id_ for id_, _ in lines]
    asked = {"archive": True, "maxBytes": size, "limit": limit, "detail": detail}
    told: list[str] = []
    page: dict[str, Any] = {"more": True}
    wanted: dict[str, object] = {"after": "1970-01-01T00:00:00Z"}
    while page["more"]:
        result = await xmpp_history(played.link, **arguments(xmpp_history, asked | wanted))
        page = _checked(result, size, xmpp_history)
        assert len(page["entries"]) <= limit
        told += [each["body"].split()[0] for each in page["entries"]]
        wanted = {"since": page["next"]}
    assert told == [str(number) for number in range(len(lines))]
    result = await xmpp_history(played.link, **arguments(xmpp_history, asked))
    page = _checked(result, size, xmpp_history)
    assert page["next"] == page["entries"][-1]["cursor"]


@settings(max_examples=10)
@given(HOSTILE, HOSTILE, HOSTILE)
async def test_what_an_address_says_of_itself(name: str, value: str, more: str) -> None:
    def answer(_: str, namespace: str) -> Element | Exception:
        iq = Element("iq", {"type": "result"})
        if namespace == "jabber:iq:last":
            return IqError(StanzaError("forbidden", more))
        query = SubElement(iq, f"{{{namespace}}}query")
        if namespace != DISCO_INFO:
            for each in ("name", "version", "os"):
                SubElement(query, f"{{{namespace}}}{each}").text = more
            return iq
        for number in range(60):
            named = {"category": "conference", "type": f"{number}{value}", "name": name}
            SubElement(query, f"{{{DISCO_INFO}}}identity", named)
            SubElement(query, f"{{{DISCO_INFO}}}feature", {"var": f"{number}{name}"})
        for form in ("http://jabber.org/protocol/muc#roominfo", value):
            fields = SubElement(query, f"{{{DATA_FORMS}}}x", {"type": "result"})
            for var, said in (
                ("FORM_TYPE", form),
                ("muc#roominfo_description", value),
                ("muc#roominfo_lang", more),
                (name, value),
            ):
                field = SubElement(fields, f"{{{DATA_FORMS}}}field", {"var": var})
                SubElement(field, f"{{{DATA_FORMS}}}value").text = said
        return iq

    link, _ = standing(answer)
    for target in ("room", "server"):
        wanted = arguments(xmpp_info, {"target": target, "features": True})
        info = _checked(await xmpp_info(link, **wanted), tool=xmpp_info)
        assert any("Not shown of" in note for note in info["notes"])
        assert info["identities"]
    refusing, _ = standing(lambda *_: IqError(StanzaError("forbidden", more)))
    for target in ("room", "server", "self"):
        pong = await xmpp_ping(refusing, **arguments(xmpp_ping, {"target": target}))
        _checked(pong, tool=xmpp_ping)


@settings(max_examples=20)
@given(HOSTILE, st.sampled_from(["a\u202e", "\U000e0041", "x"]), st.integers(1, 10_000))
async def test_what_was_sent(stanza_id: str, character: str, length: int) -> None:
    room = Answering()
    room.stanza_id = stanza_id
    sent = await xmpp_send(room.link, RateLimiter(60), QUIET, message=character * length)
    message = sent["message"]
    assert isinstance(message, str)
    assert (character * length).startswith(message)
    assert len(json.dumps(render(sent))) <= MOST
    # What we said ourselves comes back as it is.
    told = _checked(sent | {"message": ""}, tool=xmpp_send)
    assert message == character * length or told["truncated"] is True


@settings(max_examples=10)
@given(EVENTS, st.integers(0, 4_000))
async def test_what_was_answered(events: list[Event], length: int) -> None:
    room = Answering()
    room.answers = events + [MessageReceived(f"{ROOM}/Wilma", "Wilma", "x" * length)] * MAX_ANSWERS
    sent = await xmpp_send(room.link, RateLimiter(60), QUIET, message="x", await_seconds=40)
    told = _checked(sent, tool=xmpp_send)
    assert told["answers"]


@ROOMS
@settings(max_examples=10)
@given(EVENTS, HOSTILE.filter(bool))
async def test_what_is_the_matter_with_somebody(
    rooms: tuple[str, ...], events: list[Event], text: str
) -> None:
    said = MessageSent(f"{ROOM}/McpDebug", "McpDebug", text, "m1")
    heard = MessageReceived(f"{ROOM}/McpDebug", "McpDebug", text, id="m1", own=True)
    _, link = _taking_part([said, *[heard] * len(rooms), *events], rooms)
    names = {getattr(each, "sender", None) for each in events}
    for name in {"Robot", text, *names} - {"", None}:
        for room in rooms:
            told = await xmpp_diagnose(link, nickname=name, room=room, detail="full")
            result = _checked(told, tool=xmpp_diagnose)
            assert result["verdict"]
            assert len(result["findings"]) == len(FINDINGS)
    assert _checked(await xmpp_diagnose(link), tool=xmpp_diagnose)["verdict"]


@settings(max_examples=5)
@given(text=HOSTILE)
async def test_what_is_wrong_with_the_settings(text: str, configuration: Configuration) -> None:
    problems = (Problem("MUC_ROOM", text),) * 40
    wrong = dataclasses.replace(configuration, problems=problems, warnings=(text,) * 40)
    current = CurrentSettings(wrong, lambda: wrong)
    link = Played(room_jid="").link
    told = _checked(xmpp_status(link, current), tool=xmpp_status)
    assert told["problems"]
    _checked(await xmpp_check(link, current, QUIET), tool=xmpp_check)
    stage = CheckStage("sasl", False, 1.0, text, text)
    set_ = [Setting(name, text[:MAX_SHOWN], text) for name in VARIABLES]
    report = Report(False, [stage] * 11, text, text, (), 1.0, None, (text,) * 3)
    _checked(result_of(report, set_, text, changed=False), tool=xmpp_check)
