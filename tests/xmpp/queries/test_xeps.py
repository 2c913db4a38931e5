import re
from importlib.resources import files

import pytest

from bridge.xmpp.queries.xeps import standard_of, standards

ANNOUNCED = """
    http://jabber.org/protocol/commands http://jabber.org/protocol/disco#info
    http://jabber.org/protocol/disco#items http://jabber.org/protocol/muc
    http://jabber.org/protocol/muc#request http://jabber.org/protocol/muc#self-ping-optimization
    http://jabber.org/protocol/muc#stable_id http://jabber.org/protocol/muc#unique
    http://jabber.org/protocol/rsm jabber:iq:last jabber:iq:privacy jabber:iq:private
    jabber:iq:register jabber:iq:roster jabber:iq:time jabber:iq:version msgoffline muc_hidden
    muc_membersonly muc_moderated muc_nonanonymous muc_open muc_passwordprotected muc_persistent
    muc_public muc_semianonymous muc_temporary muc_unmoderated muc_unsecured urn:xmpp:blocking
    urn:xmpp:carbons:2 urn:xmpp:carbons:rules:0 urn:xmpp:mam:0 urn:xmpp:mam:1 urn:xmpp:mam:2
    urn:xmpp:mam:2#extended urn:xmpp:mam:tmp urn:xmpp:occupant-id:0 urn:xmpp:ping urn:xmpp:sid:0
    urn:xmpp:time vcard-temp http://jabber.org/protocol/bytestreams
    http://jabber.org/protocol/pubsub#publish jabber:iq:auth urn:xmpp:extdisco:2
    urn:xmpp:http:upload:0 urn:xmpp:bookmarks:1#compat urn:xmpp:pep-vcard-conversion:0
    urn:xmpp:push:0 urn:xmpp:vcard4
"""
"""What Prosody 0.12.3 and ejabberd 23.01 announce in the tests, and more of their modules."""


def test_what_the_real_servers_announce_is_known() -> None:
    assert [feature for feature in ANNOUNCED.split() if standard_of(feature) is None] == []


@pytest.mark.parametrize(
    ("features", "number", "name"),
    [
        (
            "urn:xmpp:mam:2 urn:xmpp:mam:2#extended urn:xmpp:mam:tmp urn:xmpp:mam:999",
            "XEP-0313",
            "Message Archive Management",
        ),
        ("urn:xmpp:carbons:rules:0", "XEP-0280", "Message Carbons"),
        ("urn:xmpp:ping", "XEP-0199", "XMPP Ping"),
        ("http://jabber.org/protocol/muc#admin", "XEP-0045", "Multi-User Chat"),
        ("http://jabber.org/protocol/nick+notify", "XEP-0172", "User Nickname"),
        ("urn:xmpp:bookmarks:1+notify", "XEP-0402", "PEP Native Bookmarks"),
        ("urn:xmpp:omemo:2:devices+notify", "XEP-0384", "OMEMO Encryption"),
        (
            "urn:xmpp:jingle:apps:rtp:1 urn:xmpp:jingle:apps:rtp:audio",
            "XEP-0167",
            "Jingle RTP Sessions",
        ),
        ("urn:xmpp:jingle:1", "XEP-0166", "Jingle"),
        ("jabber:iq:roster", "RFC 6121", "XMPP: Instant Messaging and Presence"),
    ],
)
def test_a_feature_of_any_version_has_its_standard(features: str, number: str, name: str) -> None:
    assert {standard_of(feature) for feature in features.split()} == {(number, name)}


NONE = """
    # :2 +notify urn:xmpp:mucsub:0 urn:xmpp:mamba:2 urn:xmpp:mam:2:evil urn:xmpp:mam:99999 iq
    urn:xmpp:jingle:apps:unheard-of:0 URN:XMPP:PING evil#urn:xmpp:ping
"""


def test_what_is_in_no_list_has_no_standard() -> None:
    for feature in (*NONE.split(), "", "urn:xmpp:ping\n"):
        assert standard_of(feature) is None


def test_no_feature_is_claimed_by_two_standards_and_the_table_is_in_order() -> None:
    lines = files("bridge.xmpp.queries").joinpath("xeps.tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    features = [feature for _, _, listed in rows for feature in listed.split(" ")]
    assert len(features) == len(set(features)) == len(standards()) > 150
    numbers = [number for number, _, _ in rows]
    assert numbers == sorted(set(numbers), key=lambda number: (number[:3] != "XEP", number))
    for number, name, _ in rows:
        assert re.fullmatch("(XEP-|RFC )[0-9]{4}", number)
        assert re.fullmatch("[A-Z0-9v].+[^:]", name)
