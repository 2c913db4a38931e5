"""What tap keeps of what passed, for whom, and what finds it again."""

import json
import stat
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import pytest

from bridge.capture.capture import Capture
from bridge.capture.elements import elements_of
from bridge.capture.finding import Finding, Severity
from bridge.capture.verdict import verdict
from bridge.commands.explain import read_log
from bridge.recording.tapped import (
    MAX_BYTES,
    file_of,
    files_about,
    files_for,
    folder_of,
    is_written,
)
from bridge.tap.record import CaptureFile, recorded
from bridge.tap.witness import Witness
from bridge.text import iso
from bridge.tools.botlog import tapped
from bridge.wire.names import BIND
from bridge.wire.xmlwriter import written
from bridge.xmpp.link.stream import STREAM_FOOTER
from tests.support.disk import no_file_beyond
from tests.tap.tapping import STREAM
from tests.xmpp.checks.watching import evidence

ROOM = "room@conference.localhost"
NOW = 1_000_000_000.0


def element(xml: str) -> Element:
    (parsed,), _ = elements_of(xml)
    return parsed


def entries(record: CaptureFile) -> list[dict[str, Any]]:
    assert record.path is not None
    return [json.loads(line) for line in record.path.read_text("utf-8").splitlines()]


def seen(witness: Witness, *stanzas: str) -> None:
    """Take what a client got, or what it sent if it begins with `>`."""
    session = witness.begin()
    for text in stanzas:
        sent, xml = text.startswith(">"), text.removeprefix(">")
        witness.take(session, sent, element(xml), xml.encode())
    witness.flush()


def witness_of(record: CaptureFile, *rooms: str) -> Witness:
    return Witness(record, rooms, lambda finding: None, clock=lambda: NOW)


def test_the_file_is_for_its_owner_alone_and_has_the_accounts_name(tmp_path: Path) -> None:
    record = CaptureFile(tmp_path / "tap", "bot@localhost")
    witness = witness_of(record, ROOM)
    seen(witness, f"<message from='{ROOM}/Ann'><body>hi</body></message>")
    witness.close("localhost")
    assert record.path == tmp_path / "tap" / "bot@localhost.jsonl"
    assert stat.S_IMODE(record.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(record.path.parent.stat().st_mode) == 0o700
    first, last = entries(record)
    assert first == {
        "at": iso(NOW),
        "direction": "in",
        "connection": "1",
        "xml": f"<message from='{ROOM}/Ann'><body>hi</body></message>",
    }
    assert (last["at"], last["connection"]) == (iso(NOW), "1")


@pytest.mark.parametrize("sent", [True, False])
def test_what_comes_once_a_side_has_gone_begins_no_stream(sent: bool, tmp_path: Path) -> None:
    record = CaptureFile(tmp_path / "tap", "bot@localhost")
    witness = witness_of(record, ROOM)
    session = witness.begin()
    witness.take(session, True, element("<presence/>"), b"<presence/>")
    witness.end(session, sent)
    witness.take(session, not sent, element("<presence/>"), b"<presence/>")
    witness.end(session, not sent)
    witness.close("localhost")
    assert len(witness.capture.streams) == 1
    end = STREAM_FOOTER if sent else '<cut xmlns="urn:xmpp-bridge:tap"/>'
    assert [entry["xml"] for entry in entries(record)] == ["<presence/>", end]


@pytest.mark.parametrize("sent", [True, False])
def test_who_reads_the_file_finds_what_tap_found_of_a_connection_that_broke(
    sent: bool, tmp_path: Path
) -> None:
    record, shown = CaptureFile(tmp_path, "bot@localhost"), list[Finding]()
    witness = Witness(record, [ROOM], shown.append, clock=lambda: NOW)
    session = witness.begin()
    for is_own in (True, False):
        witness.take(session, is_own, element(STREAM), STREAM.encode())
    witness.end(session, sent)
    witness.close("localhost")
    capture, path = Capture(), record.path
    assert path is not None
    with path.open("rb") as file:
        read_log(file, "tap.jsonl", capture)
    capture.finish()
    (stream,) = capture.streams
    assert [each.cause for each in stream.findings()] == [each.cause for each in shown]
    assert shown or sent


@pytest.mark.parametrize(
    ("account", "name"),
    [("Bot@Localhost/r", "bot@localhost"), ("../../etc/x@h", "_.._etc_x@h"), ("", "unknown")],
)
def test_no_account_leads_out_of_the_folder(account: str, name: str, tmp_path: Path) -> None:
    assert file_of(tmp_path, account.replace("/etc", "_etc") if ".." in account else account) in {
        tmp_path / f"{name}.jsonl",
        tmp_path / "_.._etc_x@h.jsonl",
        tmp_path / ".jsonl",
        tmp_path / "unknown.jsonl",
    }
    assert file_of(tmp_path, account).parent == tmp_path


def test_the_folder_is_that_of_the_users_state(tmp_path: Path) -> None:
    assert folder_of({"HOME": str(tmp_path)}) == tmp_path / ".local/state/xmpp-bridge/tap"


def test_a_page_shows_what_the_file_keeps(tmp_path: Path) -> None:
    record, drawn = CaptureFile(tmp_path, "bot@localhost"), list[str]()
    witness = Witness(
        record,
        [ROOM],
        lambda finding: None,
        draw=lambda examined, stanza: drawn.append(written(stanza.element)),
    )
    said = "<message from='%s' type='chat'><body>%s</body></message>"
    seen(witness, said % (f"{ROOM}/Ann", "of the room"), said % ("ann@else.where/r", "private"))
    assert [[word in xml for word in ("of the room", "private")] for xml in drawn] == [
        [word in entry["xml"] for word in ("of the room", "private")] for entry in entries(record)
    ]
    assert "of the room" in "".join(drawn)


def test_an_unknown_account_is_that_of_the_bind_result(tmp_path: Path) -> None:
    record = CaptureFile(tmp_path, "")
    witness = witness_of(record)
    bind = "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>%s</bind>"
    asked = f"><iq type='set' id='b'>{bind % ''}</iq>"
    bound = f"<iq type='result' id='b'>{bind % '<jid>bot@localhost/r</jid>'}</iq>"
    seen(witness, f">{STREAM}", asked, bound)
    assert record.path == tmp_path / "bot@localhost.jsonl"
    assert len(entries(record)) == 3


def test_a_client_that_came_back_in_vain_is_no_other_client(tmp_path: Path) -> None:
    witness = witness_of(CaptureFile(tmp_path, ""))
    ended = "<error xmlns='http://etherx.jabber.org/streams'>%s</error>"
    shutdown = "<system-shutdown xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>"
    bound = "<jid>bot@localhost/r</jid>"
    bound = f"<iq type='result' id='b'><bind xmlns='{BIND}'>{bound}</bind></iq>"
    seen(
        witness,
        f">{STREAM}",
        f"><iq type='set' id='b'><bind xmlns='{BIND}'/></iq>",
        bound,
        ended % shutdown,
    )
    witness.add(witness.begin(), "unreachable", message="Nothing listens there.", hint="")
    witness.close("localhost")
    findings = [each for stream in witness.capture.streams for each in stream.findings()]
    assert sum(each.severity is Severity.ERROR for each in findings) == 2
    assert "Other clients" not in verdict(findings)


def test_a_second_tap_of_an_account_has_a_file_of_its_own(tmp_path: Path) -> None:
    records = [CaptureFile(tmp_path, "bot@localhost") for _ in range(2)]
    for record in records:
        record.add(iso(NOW), True, "1", "<a/>")
        record.flush()
    names = [record.path.name for record in records if record.path]
    assert names == ["bot@localhost.jsonl", "bot@localhost-2.jsonl"]
    for record in records:
        record.close()
    third = CaptureFile(tmp_path, "bot@localhost")
    third.add(iso(NOW), True, "1", "<b/>")
    third.close()
    assert third.path == records[0].path
    assert [entry["xml"] for entry in entries(third)] == ["<b/>"]
    assert (tmp_path / "bot@localhost.jsonl.1").read_text("utf-8").count("<a/>") == 1


def test_a_reader_is_told_whether_a_tap_writes_the_file(tmp_path: Path) -> None:
    path = file_of(tmp_path, "bot@localhost")
    assert not is_written(path)
    record = CaptureFile(tmp_path, "bot@localhost")
    record.add(iso(NOW), True, "1", "<a/>")
    record.flush()
    assert (record.path, is_written(path)) == (path, True)
    record.close()
    assert not is_written(path)


def test_the_file_has_at_most_16_mib_and_one_former(tmp_path: Path) -> None:
    record = CaptureFile(tmp_path, "bot@localhost")
    for _ in range(36):
        record.add(iso(NOW), True, "1", "x" * 1024 * 1024)
        record.flush()
    record.close()
    sizes = {path.name: path.stat().st_size for path in tmp_path.glob("*.jsonl*")}
    assert set(sizes) == {"bot@localhost.jsonl", "bot@localhost.jsonl.1"}
    assert max(sizes.values()) <= MAX_BYTES == 16 * 1024 * 1024


@pytest.mark.parametrize("is_folder", [False, True], ids=["no folder", "a link"])
def test_a_file_that_cannot_be_opened_is_told_once_and_not_tried_again(
    is_folder: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "tap"
    path = file_of(folder, "bot@localhost")
    if is_folder:
        folder.mkdir()
        path.symlink_to(tmp_path / "elsewhere")
    else:
        folder.write_text("", "ascii")
    record = CaptureFile(folder, "bot@localhost")
    for _ in range(3):
        record.add(iso(NOW), True, "1", "<a/>")
        record.flush()
    assert (record.path, is_written(path)) == (None, False)
    record.close()
    assert [
        str(path) in told.getMessage() or str(folder) in told.getMessage()
        for told in caplog.records
    ] == [True]
    assert not (tmp_path / "elsewhere").exists()


def test_a_disk_that_is_full_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    record = CaptureFile(tmp_path, "bot@localhost")
    with no_file_beyond(100):
        for _ in range(5):
            record.add(iso(NOW), True, "1", "<a/>")
            record.flush()
    record.close()
    assert [each.getMessage().partition(" is not kept")[0] for each in caplog.records] == [
        "Some of what passes"
    ]


SECRET = "hunter2"
HEADER = f"<header name='Authorization'>{SECRET}</header>"


@pytest.mark.parametrize(
    "xml",
    [
        f"<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{SECRET}</auth>",
        f"<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>{SECRET}</success>",
        f"<presence to='{ROOM}/n'><x xmlns='u:muc'><password>{SECRET}</password></x></presence>",
        f"<handshake xmlns='jabber:component:accept'>{SECRET}</handshake>",
        f"<iq from='{ROOM}'><slot xmlns='u:s'><put url='{SECRET}'>{HEADER}</put></slot></iq>",
        f"<enabled xmlns='urn:xmpp:sm:3' id='{SECRET}'/>",
    ],
)
@pytest.mark.parametrize("sent", [True, False])
def test_no_secret_is_kept(xml: str, sent: bool) -> None:
    kept, text, _ = recorded(sent, element(xml), xml.encode(), [ROOM])
    assert SECRET not in written(kept) + text


WORDS = "a private matter"
STANZAS = "urn:ietf:params:xml:ns:xmpp-stanzas"
BINDS = "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>"
ERROR = (
    f"<error type='wait'><policy-violation xmlns='{STANZAS}'/><text xmlns='{STANZAS}'>{WORDS}"
    "</text></error>"
)


@pytest.mark.parametrize(
    ("xml", "kept"),
    [
        (f"<message from='{ROOM}/Ann' type='chat'><body>{WORDS}</body></message>", True),
        (f"<message from='ann@else.where/r' type='chat'><body>{WORDS}</body></message>", False),
        (
            f"<message from='bot@localhost'><forwarded xmlns='f'>{WORDS}</forwarded></message>",
            False,
        ),
        (f"<message><body>{WORDS}</body></message>", False),
        (f"<iq type='result' id='1'><query xmlns='jabber:iq:roster'>{WORDS}</query></iq>", False),
        (f"<presence from='ann@else.where'><status>{WORDS}</status></presence>", False),
        (f"<message from='ann@else.where' type='error'><body/>{ERROR}</message>", False),
        (f"<message from='ann@else.where'><body>{WORDS}</body>{BINDS}</message>", False),
        (f"<iq type='set' from='ann@else.where/r' id='1'>{BINDS}<a>{WORDS}</a></iq>", False),
    ],
)
def test_words_are_kept_of_rooms_alone(xml: str, kept: bool) -> None:
    drawn, text, size = recorded(False, element(xml), xml.encode(), [ROOM])
    assert (WORDS in text) is (size == 0) is kept
    assert (WORDS in written(drawn)) is kept
    assert kept or "ann@" not in text
    assert element(text).get("type") == element(xml).get("type")
    assert ("policy-violation" in text) is ("policy-violation" in xml)


@pytest.mark.parametrize(
    ("to", "type_", "kept"),
    [
        ("ann@else.where/r", "chat", "*@else.where"),
        ("else.where", "chat", "else.where"),
        ("Lobby@conference.localhost/Ann", "groupchat", "lobby@conference.localhost"),
        ("ann%irc@conference.localhost", "chat", "*@conference.localhost"),
        ("ann@localhost", "chat", "*@localhost"),
        ("ann@localhost", "groupchat", "*@localhost"),
    ],
)
def test_of_an_address_only_a_room_of_the_same_service_is_kept(
    to: str, type_: str, kept: str, tmp_path: Path
) -> None:
    record = CaptureFile(tmp_path, "bot@localhost")
    said = f"><message to='{to}' type='{type_}'><body>{WORDS}</body></message>"
    seen(witness_of(record, ROOM), said)
    (entry,) = entries(record)
    assert (element(entry["xml"]).get("to"), WORDS in entry["xml"]) == (kept, False)


@pytest.mark.parametrize("shown", ["", "<show>away</show>"])
def test_a_presence_for_a_person_makes_no_room_of_the_person(shown: str, tmp_path: Path) -> None:
    record = CaptureFile(tmp_path, "bot@localhost")
    seen(
        witness_of(record, ROOM),
        f"><presence to='ann@localhost/phone'>{shown}</presence>",
        "<presence from='ann@localhost/phone'/>",
        f"<message from='ann@localhost/phone' type='chat'><body>{WORDS}</body></message>",
        f"><message to='bob@localhost' type='groupchat'><body>{WORDS}</body></message>",
    )
    kept = "".join(entry["xml"] for entry in entries(record))
    assert not any(each in kept for each in (WORDS, "ann@", "bob@"))


def test_the_beginning_of_a_stream_has_the_rooms_of_the_settings(tmp_path: Path) -> None:
    record = CaptureFile(tmp_path, "bot@localhost")
    seen(witness_of(record, ROOM), f">{STREAM.replace('>', '/>')}", STREAM.replace(">", "/>"))
    begun, answered = entries(record)
    assert (begun["rooms"], "rooms" in answered) == ([ROOM], False)
    assert [*files_for(tmp_path, ROOM.upper())] == [record.path]
    assert [*files_for(tmp_path, f"x{ROOM}")] == []
    # A file that goes while the folder is read hides no other.
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    assert [*files_for(tmp_path, ROOM)] == [record.path]


def test_a_stanza_that_is_not_finished_is_told_and_kept_as_a_hole(tmp_path: Path) -> None:
    record, shown, now = CaptureFile(tmp_path, "bot@localhost"), list[str](), [NOW]
    witness = Witness(record, [ROOM], lambda it: shown.append(it.message), clock=lambda: now[0])
    session = witness.begin()
    witness.hold(session, 40)
    now[0] += 1
    witness.take(session, True, element("<presence/>"), b"<presence/>")
    for size, seconds in ((50, 1.9), (0, 0.1), (60, 1.9), (61, 0.1)):
        witness.hold(session, size)
        now[0] += seconds
        witness.pause()
    (told,) = shown
    assert "has not finished it for 2 s (61 bytes)" in told
    last = entries(record)[-1]
    assert (last["xml"], last["direction"], last["bytes"]) == ("<", "out", 61)


def test_a_room_that_the_client_joins_is_known_from_then_on(tmp_path: Path) -> None:
    record = CaptureFile(tmp_path, "bot@localhost")
    witness = witness_of(record)
    message = f"<message from='{ROOM}/Ann' type='groupchat'><body>{WORDS}</body></message>"
    join = (
        f">{'<presence'} to='{ROOM}/Robot'><x xmlns='http://jabber.org/protocol/muc'/></presence>"
    )
    service = f"<iq from='conference.localhost' type='get' id='d'><q xmlns='u:q'>{WORDS}</q></iq>"
    seen(witness, message, service, join, message, service)
    witness.close("localhost")
    assert [WORDS in entry["xml"] for entry in entries(record)][:5] == [False] * 3 + [True] * 2
    assert "bytes" in entries(record)[0]


def test_a_bot_is_found_again_by_its_room_and_nickname(tmp_path: Path) -> None:
    for account, nickname in (("bot@localhost", "Robot"), ("other@localhost", "Other")):
        record = CaptureFile(tmp_path, account)
        witness = witness_of(record, ROOM)
        join = f"to='{ROOM}/{nickname}'><x xmlns='http://jabber.org/protocol/muc'/></presence>"
        item = "<item affiliation='none' role='participant'/><status code='110'/>"
        extension = f"<x xmlns='http://jabber.org/protocol/muc#user'>{item}</x>"
        seen(
            witness,
            f"><presence {join}",
            f"<presence from='{ROOM}/{nickname}' to='{account}/r'>{extension}</presence>",
            f"<message from='{ROOM}/Ann' type='groupchat'><body>{nickname}: ping</body></message>",
        )
        witness._clock = lambda: NOW + 11  # noqa: SLF001 - time passes
        witness.close("localhost")
    (kept,) = files_about(tmp_path, ROOM, "Robot")
    assert kept.name == "bot@localhost.jsonl"
    robot = evidence([])._replace(room=ROOM)
    path, finding = tapped(tmp_path, robot) or (None, None)
    assert path == kept
    assert finding is not None
    assert "silent: " in finding.detail
    assert tapped(tmp_path, robot._replace(nickname="Nobody")) is None
    assert tapped(tmp_path / "nowhere", robot) is None
    # A name that a file may have in another spelling is looked for in all files about the room.
    assert len([*files_about(tmp_path, ROOM.upper(), "Röbot & co")]) == 2
