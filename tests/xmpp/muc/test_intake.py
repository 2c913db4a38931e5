import pytest

from bridge.xmpp.model.events import MessageReceived, Source
from bridge.xmpp.muc.intake import Intake
from bridge.xmpp.queries.disco import Description
from tests.xmpp.elements import parsed

LATER = (Source.HISTORY, Source.ARCHIVE)


SAID = MessageReceived("r@muc/Wilma", "Wilma", "hello", id="1")


@pytest.fixture
def intake() -> Intake:
    return Intake("r@muc")


def test_the_rooms_id_counts_before_everything_else(intake: Intake) -> None:
    archived = SAID._replace(source=Source.ARCHIVE)
    assert intake.deduplicate(archived._replace(stanza_id="a"))
    assert intake.deduplicate(archived._replace(stanza_id="b"))
    assert intake.deduplicate(archived._replace(stanza_id="a", id="2", body="edited")) is None


def test_without_the_rooms_id_sender_id_and_body_tell_messages_apart(intake: Intake) -> None:
    first = SAID._replace(source=Source.HISTORY)
    assert intake.deduplicate(first)
    assert intake.deduplicate(first) is None
    assert intake.deduplicate(first._replace(body="other"))
    assert intake.deduplicate(first._replace(id="2"))
    assert intake.deduplicate(first._replace(from_="r@muc/Fred"))


def test_live_messages_are_never_held_back_and_not_told_again_later() -> None:
    same = SAID._replace(id=None)
    for source in LATER:
        intake = Intake("r@muc")
        assert [intake.deduplicate(same), intake.deduplicate(same)] == [same, same]
        assert intake.deduplicate(same._replace(source=source)) is None


def test_an_archive_may_name_the_id_that_a_message_came_without(intake: Intake) -> None:
    nameless = SAID._replace(id=None, body="hi")
    for came in (SAID, nameless):
        assert intake.deduplicate(came)
    archived = SAID._replace(source=Source.ARCHIVE, stanza_id="a")
    assert intake.deduplicate(archived) is None
    # Without an id of its sender's, the same words may have been said again.
    assert intake.deduplicate(nameless._replace(source=Source.ARCHIVE, stanza_id="b"))
    assert intake.deduplicate(archived._replace(id="2"))


def test_the_oldest_is_forgotten_at_the_capacity() -> None:
    intake = Intake("r@muc", 2)
    said = [SAID._replace(stanza_id=name, source=Source.ARCHIVE) for name in "abc"]
    assert [intake.deduplicate(each) for each in said] == said
    assert [intake.deduplicate(said[it]) for it in (1, 2, 0)] == [None, None, said[0]]


@pytest.mark.parametrize("source", [*Source])
def test_a_moderation_names_the_author_of_a_message_that_was_seen(source: Source) -> None:
    intake = Intake("r@muc")
    assert intake.deduplicate(SAID._replace(stanza_id="a", source=source)) is not None
    moderation = MessageReceived("r@muc", "", id="2", moderated_by="Mod")
    for id_, author in (("a", "Wilma"), ("b", None), ("1", None)):
        met = intake.deduplicate(moderation._replace(retracts=id_))
        assert met == moderation._replace(retracts=id_, author=author)
    # An occupant can only take back their own messages.
    met = intake.deduplicate(SAID._replace(from_="r@muc/Fred", sender="Fred", retracts="a"))
    assert met is not None
    assert met.author is None


@pytest.mark.parametrize("source", LATER)
def test_messages_without_words_differ_in_what_they_concern(source: Source, intake: Intake) -> None:
    silent = SAID._replace(body="", id=None, source=source)
    others = [
        silent._replace(reacts_to="1", reactions=("x",)),
        silent._replace(reacts_to="1", reactions=()),
        silent._replace(reacts_to="2", reactions=("x",)),
        silent._replace(retracts="1"),
        silent._replace(payload=("composing (x)",)),
        silent._replace(payload=("paused (x)",)),
        silent._replace(encrypted="OMEMO"),
    ]
    for each in others:
        assert intake.deduplicate(each) == each
        assert intake.deduplicate(each) is None


@pytest.mark.parametrize(
    ("sender", "features", "believed", "moderated"),
    [
        ("r@muc", ["urn:xmpp:sid:0", "muc_moderated"], "a", True),
        ("r@muc", ["muc_unmoderated"], None, False),
        ("r@muc", ["muc_open"], None, None),
        ("r@muc/Mallory", ["urn:xmpp:sid:0", "muc_moderated"], None, None),
    ],
)
def test_only_the_room_says_what_it_is(
    sender: str, features: list[str], believed: str | None, moderated: bool | None, intake: Intake
) -> None:
    listed = "".join(f"<feature var='{feature}'/>" for feature in features)
    info = f"<query xmlns='http://jabber.org/protocol/disco#info'>{listed}</query>"
    assert not list(intake.read(parsed(f"<iq type='result' from='{sender}'>{info}</iq>"), own=OWN))
    said = "<body>hi</body><stanza-id xmlns='urn:xmpp:sid:0' by='r@muc' id='a'/>"
    message = parsed(f"<message type='groupchat' from='r@muc/Wilma'>{said}</message>")
    (event,) = intake.read(message, own=OWN)
    assert isinstance(event, MessageReceived)
    assert (event.stanza_id, intake.description.either("muc_moderated", "muc_unmoderated")) == (
        believed,
        moderated,
    )


OWN = "r@muc/Me"
OURS = ("bot@example", "r@muc/Asked")
ID = "<occupant-id xmlns='urn:xmpp:occupant-id:0' id='{}'/>"
OFROM = (
    "<addresses xmlns='http://jabber.org/protocol/address'>"
    "<address type='{}' jid='{}'/></addresses>"
)


def _entered(intake: Intake, id_: str) -> None:
    intake.ours = frozenset(OURS)
    intake.description = Description(features=("urn:xmpp:occupant-id:0",))
    presence = parsed(
        f"<presence from='{OWN}'>{ID.format(id_.strip()) * bool(id_)}"
        "<x xmlns='http://jabber.org/protocol/muc#user'><status code='110'/>"
        "<item role='participant' affiliation='none'/></x></presence>"
    )
    assert list(intake.read(presence, own=OWN))
    intake.history.open(0.0)


def _read(intake: Intake, inner: str, nickname: str, *, delayed: bool = True) -> MessageReceived:
    stamp = "<delay xmlns='urn:xmpp:delay' stamp='2020-01-01T00:00:00Z' from='r@muc'/>"
    message = parsed(
        f"<message from='r@muc/{nickname}' type='groupchat' id='1'><body>x</body>"
        f"{stamp * delayed}{inner}</message>"
    )
    (event,) = intake.read(message, own=OWN)
    assert isinstance(event, MessageReceived)
    return event


@pytest.mark.parametrize(
    ("nickname", "inner", "own_id", "ours"),
    [
        ("Wilma", "", "me", False),
        ("Me", "", "", True),
        ("Asked", "", "", True),
        ("Me-2", "", "me", False),
        ("Wilma", ID.format("me"), "me", True),
        ("Wilma", ID.format("her"), "me", False),
        ("Wilma", "<occupant-id xmlns='urn:xmpp:occupant-id:0'/>", "", False),
        ("Wilma", ID.format(""), " ", False),
        ("Wilma", OFROM.format("ofrom", "bot@example/r"), "", True),
        ("Wilma", OFROM.format("ofrom", "BOT@example"), "", True),
        ("Wilma", OFROM.format("ofrom", "wilma@example/r"), "", False),
        ("Wilma", OFROM.format("to", "bot@example"), "", False),
        ("Wilma", OFROM.format("ofrom", "@@"), "", False),
    ],
)
def test_of_the_history_what_bears_our_nickname_or_account_is_taken_for_ours(
    nickname: str, inner: str, own_id: str, ours: bool, intake: Intake
) -> None:
    _entered(intake, own_id)
    told = _read(intake, inner, nickname)
    assert (told.source, told.as_ours) == (Source.HISTORY, ours)
    assert not _read(intake, inner, nickname, delayed=False).as_ours


@pytest.mark.parametrize(
    ("features", "type_", "counts"),
    [
        (("urn:xmpp:occupant-id:0",), "groupchat", True),
        (("urn:xmpp:occupant-id:0",), "chat", False),
        ((), "groupchat", False),
    ],
)
def test_an_occupant_id_counts_where_the_room_gives_such_ids(
    features: tuple[str, ...], type_: str, counts: bool, intake: Intake
) -> None:
    intake.description = Description(features=features)
    message = parsed(
        f"<message from='r@muc/Eve' type='{type_}'><body>x</body>{ID.format('forged')}</message>"
    )
    (event,) = intake.read(message, own=OWN)
    assert isinstance(event, MessageReceived)
    assert event.occupant_id == ("forged" if counts else None)
