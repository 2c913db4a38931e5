from xml.etree.ElementTree import Element, fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.xmpp.errors import UnsendableError
from bridge.xmpp.link.stanzas import groupchat_message, xml_of
from bridge.xmpp.model.message_body import MAX_BODY_BYTES, MAX_ESCAPED_BYTES, check_body


def _refusal(text: str) -> str:
    with pytest.raises(UnsendableError) as refusal:
        check_body(text)
    return str(refusal.value)


def test_the_most_bytes_pass_and_one_character_more_is_refused() -> None:
    check_body("ü" * (MAX_BODY_BYTES // 2))
    assert _refusal("ü" * (MAX_BODY_BYTES // 2) + "x") == (
        "the message has 60001 bytes of UTF-8; the most is 60000"
    )


@pytest.mark.parametrize(("character", "escaped"), [('"', 6), ("'", 6), ("&", 5), ("<", 4)])
def test_the_most_bytes_once_escaped_pass_and_one_more_do_not(character: str, escaped: int) -> None:
    most, rest = divmod(MAX_ESCAPED_BYTES, escaped)
    most = min(most, MAX_BODY_BYTES - rest)
    if most * escaped + rest == MAX_ESCAPED_BYTES:
        check_body(character * most + "x" * rest)
        assert "once escaped" in _refusal(character * (most + 1) + "x" * rest)
    else:
        check_body(character * most)  # the bytes of UTF-8 run out before


def test_each_excess_is_named() -> None:
    told = _refusal('"' * (MAX_BODY_BYTES + 1))
    assert "60001 bytes of UTF-8" in told
    assert "360006 bytes once escaped" in told


@pytest.mark.parametrize("text", ["", "   ", "\t\n\r ", "\u3000\u2028"])
def test_a_text_without_a_character_that_shows_is_refused_for_being_empty(text: str) -> None:
    assert "the message is empty" in _refusal(text)


def test_what_xml_cannot_carry_is_named_by_its_position_and_counted_if_it_is_much() -> None:
    assert _refusal("a\x00b\x1b") == ("XML cannot carry U+0000 at position 1, U+001B at position 3")
    told = _refusal("\x00" * 7)
    assert (told.count("U+0000"), "and 2 more" in told) == (5, True)


@pytest.mark.parametrize("text", ["\t\n\r ~", "\ud7ff\ue000\ufffd", "\U00010000\U0010ffff"])
def test_the_edges_of_what_xml_carries_pass(text: str) -> None:
    check_body(text)


@pytest.mark.parametrize("code", [0x8, 0xB, 0x1F, 0xD800, 0xDFFF, 0xFFFE, 0xFFFF])
def test_what_lies_just_beyond_is_refused(code: int) -> None:
    assert f"U+{code:04X} at position 1" in _refusal(f"a{chr(code)}b")


@given(st.text(st.characters(exclude_categories=()), max_size=200))
def test_what_passes_survives_xml_and_is_no_longer_than_reckoned(text: str) -> None:
    try:
        check_body(text)
    except UnsendableError:
        return
    xml = xml_of(groupchat_message("room@muc.example", text, "id"))
    empty = xml_of(groupchat_message("room@muc.example", "", "id"))
    escaped = len(xml.encode()) - len(empty.encode())
    size = len(text.encode())
    assert escaped <= size + sum(5 for each in text if each in "\"'&<>\r") + len("</body>")
    parsed: Element = fromstring(xml)  # noqa: S314 - we wrote it
    assert parsed.findtext("body") == text
