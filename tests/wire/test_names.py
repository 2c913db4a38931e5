"""The names in stanzas, for the room's eyes and for a client's log alike."""

from xml.etree.ElementTree import Element

import pytest

from bridge.wire import names
from bridge.xmpp.link.from_slixmpp import prepared
from tests.xmpp.conditions import SASL_CONDITIONS, STANZA_CONDITIONS, STREAM_CONDITIONS
from tests.xmpp.elements import parsed

STANZAS, STREAMS = (f"xmlns='{space}'" for space in (names.STANZA_ERRORS, names.STREAM_ERRORS))
SASL, SASL2, OTHER = (f"xmlns='{it}'" for it in (names.SASL, names.SASL2, "urn:example"))


def test_the_conditions_are_those_of_the_standard() -> None:
    standard = {*SASL_CONDITIONS, *STREAM_CONDITIONS, *STANZA_CONDITIONS}
    assert standard == names.CONDITIONS


@pytest.mark.parametrize(
    ("content", "condition", "text"),
    [
        (f"<conflict {STANZAS}/>", "conflict", None),
        (f"<text {STANZAS}>no</text><conflict {STANZAS}/>", "conflict", "no"),
        (f"<too-many {OTHER}/><conflict {STANZAS}/>", "conflict", None),
        (f"<conflict {OTHER}/><text {OTHER}>no</text>", "undefined-condition", None),
        (f"<too-many {STANZAS}/><text {STANZAS}>no</text>", "undefined-condition", "no"),
        (f"<conflict {STANZAS}/><gone {STANZAS}/>", "conflict", None),
        (f"<reset {STREAMS}/><text {STREAMS}>now</text>", "reset", "now"),
        (f"<see-other-host {STREAMS}>b:5</see-other-host>", "see-other-host", "b:5"),
        (f"<xml-not-well-formed {STREAMS}/>", "not-well-formed", None),
        (f"<not-authorized {SASL}/><text {SASL}/>", "not-authorized", None),
        ("<conflict/><text>in the error's own namespace</text>", "conflict", "in the error's own"),
        ("conflict", "conflict", None),
        ("", "undefined-condition", None),
    ],
)
def test_an_error_has_a_condition_of_the_standard_and_a_text(
    content: str, condition: str, text: str | None
) -> None:
    named, said = names.condition_of(parsed(f"<error>{content}</error>"))
    assert (named, (said or "")[: len(text or "")] or None) == (condition, text)


def test_the_error_of_whatsapp_has_its_condition_in_an_attribute() -> None:
    error = parsed('<error code="404" text="item-not-found"/>')
    assert names.condition_of(error) == ("item-not-found", None)


def test_a_text_of_sasl2_is_in_the_namespace_of_the_failure() -> None:
    failure = f"<failure {SASL2}><aborted {SASL}/><text>no</text></failure>"
    assert names.condition_of(parsed(failure)) == ("aborted", "no")


@pytest.mark.parametrize("namespace", [names.CLIENT, ""], ids=["of a room", "of a log"])
def test_the_error_of_a_stanza_is_in_its_own_namespace(namespace: str) -> None:
    error = f"<error by='b'><gone {STANZAS}>new@place</gone><text {STANZAS}>moved</text></error>"
    stanza = parsed(f"<iq xmlns='{namespace}'><error {OTHER}/>{error}</iq>")
    assert names.error_of(stanza) == names.StanzaError("gone", "moved", "new@place", "b")
    assert names.error_of(Element("iq")) == names.StanzaError("undefined-condition")


@pytest.mark.parametrize(
    ("statuses", "codes"),
    [
        ("<status code='110'/><status code='303'/>", {110, 303}),
        ("<status/><status code='11'/><status code='x10'/><status code='٣٣٣'/>", set()),
        ("", set()),
    ],
)
def test_status_codes_are_numbers_of_three_digits(statuses: str, codes: set[int]) -> None:
    user = f"xmlns='{names.MUC_USER}'"
    assert names.codes_of(parsed(f"<presence><x {user}>{statuses}</x></presence>")) == codes
    assert names.codes_of(parsed(f"<presence>{statuses}</presence>")) == set()


@pytest.mark.parametrize(
    ("jid", "bare", "lower", "domain"),
    [
        ("Room@Place/Nick", "Room@Place", "room@place", "Place"),
        ("room@place/a/b@c", "room@place", "room@place", "place"),
        ("place/a@b", "place", "place", "place"),
        ("", "", "", ""),
    ],
)
def test_an_address_has_parts(jid: str, bare: str, lower: str, domain: str) -> None:
    assert (names.bare(jid), names.lower_bare(jid), names.domain_of(jid)) == (bare, lower, domain)


def test_to_lower_a_prepared_address_may_change_it() -> None:
    room = "\u13a0@place"
    assert prepared(room) == room == names.bare(f"{room}/Bob") != names.lower_bare(room)


@pytest.mark.parametrize(
    ("tag", "parts"), [("{a}b", ("a", "b")), ("b", ("", "b")), ("{a}}b", ("a}", "b"))]
)
def test_a_tag_has_a_namespace_and_a_local_part(tag: str, parts: tuple[str, str]) -> None:
    assert (names.split(tag), names.local(tag)) == (parts, parts[1])
