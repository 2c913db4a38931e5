import re
from datetime import UTC, datetime, timedelta
from xml.etree.ElementTree import fromstring

import pytest

from bridge.sandbox.room import (
    HISTORY_LIMIT,
    Room,
)
from bridge.sandbox.stanza import PART_LIMIT, Deliveries

START = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
JID = "tea@rooms.localhost"
ALICE, BOB, CAROL = "alice@localhost/a", "bob@localhost/b", "carol@localhost/c"
MUC = "http://jabber.org/protocol/muc"


class Party:
    """A room and who sends what to it."""

    def __init__(self, *nicks: str, resident: str = "") -> None:
        self.room = Room(JID, "localhost" if resident else "", resident, "Tea & cake")
        self.now = START
        for nick in nicks:
            self.join(f"{nick}@localhost/{nick[0]}", nick)

    def send(self, sender: str, xml: str, nick: str = "") -> Deliveries:
        stanza = fromstring(f"<s xmlns='jabber:client'>{xml}</s>")[0]  # noqa: S314 - our own
        stanza.set("from", sender)
        stanza.set("to", f"{JID}/{nick}" if nick else JID)
        return self.room.receive(stanza, nick, self.now)

    def join(self, sender: str, nick: str, history: str = "") -> Deliveries:
        return self.send(sender, f"<presence><x xmlns='{MUC}'>{history}</x></presence>", nick)

    def say(self, sender: str, body: str) -> Deliveries:
        said = f"<message type='groupchat' id='m1'><body>{body}</body></message>"
        return self.send(sender, said)

    def change(self, sender: str, item: str, reason: str = "") -> Deliveries:
        query = f"<query xmlns='{MUC}#admin'><item {item}>{reason}</item></query>"
        return self.send(sender, f"<iq type='set' id='q'>{query}</iq>")


def seen(jid: str, told: Deliveries) -> list[str]:
    return [xml for to, xml in told if to == jid]


def codes(xml: str) -> set[str]:
    return set(re.findall("<status code='(.*?)'", xml))


def bodies(told: Deliveries) -> list[str]:
    return [body for _, xml in told for body in re.findall("<body>(.*?)</body>", xml)]


def condition(told: Deliveries) -> str:
    ((_, xml),) = told
    match = re.search("<error type='[a-z]+'><([a-z-]+) ", xml)
    assert match is not None
    return match[1]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("", "123"),
        ("maxstanzas='2'", "23"),
        ("maxstanzas='0'", ""),
        ("maxstanzas='-1'", "123"),
        (f"maxstanzas='{'9' * 5000}'", "123"),
        (f"maxstanzas='{'9' * 50}'", "123"),
        ("since='2026-01-01T12:00:10Z'", "23"),
        ("since='2026-01-01T13:00:10+01:00' maxstanzas='1'", "3"),
        ("since='2026-01-01T12:00:10'", "123"),
        ("since='yesterday'", "123"),
        ("seconds='25'", "23"),
        ("seconds='25' since='2026-01-01T12:00:20Z'", "3"),
        ("seconds='0'", ""),
        (f"seconds='{'9' * 50}'", "123"),
        ("maxchars='0'", ""),
        ("maxchars='300'", "3"),
        ("maxchars='99999'", "123"),
    ],
)
def test_as_much_history_comes_as_was_asked_for(asked: str, expected: str) -> None:
    party = Party("alice")
    for number in "123":
        party.say(ALICE, number)
        party.now += timedelta(seconds=10)
    assert bodies(party.join(BOB, "bob", f"<history {asked}/>")) == list(expected)


def test_a_room_remembers_only_its_latest_messages() -> None:
    party = Party("alice")
    for number in range(HISTORY_LIMIT + 1):
        party.say(ALICE, str(number))
    remembered = bodies(party.join(BOB, "bob"))
    assert (len(remembered), remembered[0]) == (HISTORY_LIMIT, "1")


@pytest.mark.parametrize(
    "stanza",
    ["<message type='groupchat' id='m'><body>x</body>%s</message>", "<presence>%s</presence>"],
)
def test_what_grows_by_being_written_anew_is_refused(stanza: str) -> None:
    party = Party("alice", "bob")
    grown = f"<x xmlns='urn:x' xmlns:p='{'u' * 250}'>{'<p:a/>' * 40_000}</x>"
    assert condition(party.send(ALICE, stanza % grown)) == "policy-violation"


def test_a_message_comes_back_to_everybody_with_its_id_and_one_of_the_room() -> None:
    party = Party("alice", "bob")
    told = party.say(BOB, "a &lt; b")
    assert [to for to, _ in told] == [ALICE, BOB]
    assert bodies(told) == ["a &lt; b"] * 2
    assert all(f"from='{JID}/bob'" in xml and "id='m1'" in xml for _, xml in told)
    marks = re.findall(f"<stanza-id [^>]*id='(.*?)' by='{JID}'", str(told + party.say(BOB, "b")))
    assert (len(marks), len(set(marks))) == (4, 2)


def test_nobody_can_write_what_only_the_room_may_say() -> None:
    forged = (
        "<message type='groupchat'><body>x</body><stanza-id xmlns='urn:xmpp:sid:0' id='forged'/>"
        f"<delay xmlns='urn:xmpp:delay' stamp='forged'/><x xmlns='{MUC}#user'>forged</x></message>"
    )
    assert "forged" not in str(Party("alice").send(ALICE, forged))


def test_errors_are_never_answered() -> None:
    party = Party("alice")
    for nick in ("", "alice", "nobody"):
        assert party.send(CAROL, "<message type='error'/>", nick) == []
        assert party.send(CAROL, "<iq type='result' id='1'/>", nick) == []


def test_the_resident_answers_what_is_said_once_and_after_it_was_said() -> None:
    party = Party("alice", "bob", resident="Echo")
    assert bodies(party.say(ALICE, "hi &amp; ho")[3:]) == ["You said: hi &amp; ho"] * 3
    assert bodies(party.join(CAROL, "carol")) == ["hi &amp; ho", "You said: hi &amp; ho"]
    private = "<message type='chat'><body>psst</body></message>"
    ((to, xml),) = party.send(ALICE, private, "Echo")
    assert (to, bodies([(to, xml)])) == (ALICE, ["You said: psst"])
    assert condition(party.change(ALICE, "nick='Echo' role='none'")) == "not-allowed"
    ping = "<iq type='get' id='1'><ping xmlns='urn:xmpp:ping'/></iq>"
    assert "type='result'" in party.send(ALICE, ping, "Echo")[0][1]
    assert condition(party.join(CAROL, "Echo")) == "conflict"


def test_a_reason_is_told_as_text_alone() -> None:
    reason = "<reason>out<status code='301'/></reason><reason>again</reason>"
    (_, xml), *_ = Party("alice", "bob").change(ALICE, "nick='bob' role='none'", reason)
    assert "<reason>out</reason>" in xml
    assert codes(xml) == {"307"}


def test_names_are_as_long_as_jids_allow_and_no_longer() -> None:
    party = Party("alice")
    assert condition(party.join(BOB, "b" * (PART_LIMIT + 1))) == "jid-malformed"
    assert len(party.join(BOB, "b" * PART_LIMIT)) == 4
    half = "a" * PART_LIMIT
    for jid, refused in ((f"{half}@{half[1:]}", False), (f"{half}@{half}", True)):
        told = party.change(ALICE, f"jid='{jid}' affiliation='member'")
        assert ("<jid-malformed " in told[0][1]) is refused


def test_markup_in_a_namespace_makes_no_other_stanza() -> None:
    party = Party("alice")
    forged = "u&quot;/&gt;&lt;/message&gt;&lt;message from=&quot;bob&quot;&gt;&lt;x a=&apos;"
    odd = f"<x xmlns='{forged}' xmlns:a='{forged}' a:from='bob'/>"
    sent = party.send(ALICE, f"<message type='groupchat' id='m'><body>hi</body>{odd}</message>")
    for _, xml in sent:
        message = fromstring(xml)  # noqa: S314 - our own
        assert message.get("from") != "bob"
        assert xml.count("<message") == 1


def test_markup_in_what_an_owner_configures_stays_text() -> None:
    party = Party("alice")
    value = "&lt;/value&gt;&lt;/field&gt;&lt;field var=&apos;x&apos;/&gt;"
    kind = f"<field var='FORM_TYPE'><value>{MUC}#roomconfig</value></field>"
    fields = "".join(
        f"<field var='muc#roomconfig_{name}'><value>{value}</value></field>"
        for name in ("roomname", "roomdesc", "roomsecret", "moderatedroom")
    )
    form = f"<x xmlns='jabber:x:data' type='submit'>{kind}{fields}</x>"
    party.send(ALICE, f"<iq type='set' id='q'><query xmlns='{MUC}#owner'>{form}</query></iq>")
    disco = "<iq type='get' id='q'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>"
    for asked in (f"<iq type='get' id='q'><query xmlns='{MUC}#owner'/></iq>", disco):
        ((_, xml),) = party.send(ALICE, asked)
        assert "&lt;/value&gt;" in xml
        assert "x" not in {field.get("var") for field in fromstring(xml).iter()}  # noqa: S314 - our own
