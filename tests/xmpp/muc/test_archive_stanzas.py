"""The stanzas of a room's archive: what is asked, and what a result tells of the room."""

import pytest

from bridge.xmpp.link import stanzas
from bridge.xmpp.model.events import MessageReceived, SubjectChanged
from bridge.xmpp.muc import archive
from tests.xmpp.elements import parsed
from tests.xmpp.played_archive import Line, result_of

ROOM = "lobby@conference.example"
OWN = f"{ROOM}/Me"


def _read(
    xml: str, *, sender: str = f"{ROOM}/Wilma", id_: str = "7"
) -> archive.ArchiveResult | None:
    result = parsed(
        f"<result xmlns='urn:xmpp:mam:2' queryid='q' id='{id_}'>"
        "<forwarded xmlns='urn:xmpp:forward:0'>"
        "<delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/>"
        f"<message xmlns='jabber:client' type='groupchat' from='{sender}'>{xml}</message>"
        "</forwarded></result>"
    )
    return archive.read_result(result, room=ROOM, own=OWN)


def test_a_subject_that_was_set_is_told_with_who_set_it_and_when() -> None:
    found = _read("<subject>Ships</subject>")
    assert found == archive.ArchiveResult(
        "7", "2026-01-01T00:00:00Z", (SubjectChanged("Ships", "Wilma"),)
    )


@pytest.mark.parametrize(
    "nothing",
    [
        "",
        "<store xmlns='urn:xmpp:hints'/>",
    ],
)
def test_what_is_no_message_to_read_still_counts_for_paging(nothing: str) -> None:
    found = _read(nothing)
    assert found is not None
    assert (found.id, found.events) == ("7", ())


def test_nobody_outside_the_room_has_said_anything_in_it() -> None:
    for sender in ("wilma@example", "other@conference.example/Wilma", "@"):
        found = _read("<body>I am here</body>", sender=sender)
        assert found is not None
        assert (found.id, found.events) == ("7", ())


def test_the_real_jid_is_told_where_the_archive_adds_it_and_only_it() -> None:
    def added(jid: str) -> str:
        return f"<x xmlns='{stanzas.MUC_USER}'><item jid='{jid}'/></x>"

    for xml, jid in (
        (added("Wilma@EXAMPLE/Home"), "wilma@example/Home"),
        (f"<x xmlns='{stanzas.MUC_USER}'><item role='none'/></x>", None),
        (added("@"), None),
        (added("boss@example") + added("wilma@example"), None),
        ("", None),
    ):
        found = _read(f"<body>x</body>{xml}")
        assert found is not None
        (event,) = found.events
        assert isinstance(event, MessageReceived)
        assert event.jid == jid


def test_ids_that_cannot_be_paged_from_are_none() -> None:
    assert _read("<body>x</body>", id_="i" * archive.MAX_ID_BYTES) is not None
    assert _read("<body>x</body>", id_="i" * (archive.MAX_ID_BYTES + 1)) is None
    assert _read("<body>x</body>", id_="\u00e9" * (archive.MAX_ID_BYTES // 2)) is not None
    assert _read("<body>x</body>", id_="\u00e9" * (archive.MAX_ID_BYTES // 2 + 1)) is None
    assert _read("<body>x</body>", id_="") is None


def test_a_result_names_its_archive_and_its_query() -> None:
    message = parsed(f"<message from='{ROOM}'/>")
    message.append(result_of("q", "1", Line("Wilma", "yes")))
    for sender in (ROOM, f"{ROOM}/Wilma", "wilma@example"):
        message.set("from", sender)
        found = stanzas.archive_result(message)
        assert found is not None
        assert found[:2] == (sender, "q")
    message.set("from", "@")
    assert stanzas.archive_result(message) is None
    assert (
        stanzas.archive_result(parsed(f"<message from='{ROOM}'><body>x</body></message>")) is None
    )
