import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import pairwise
from xml.etree.ElementTree import Element, tostring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire.xmlstream import (
    MAX_TOKEN_BYTES,
    NotWellFormedError,
    RestrictedXmlError,
    StanzaTooLongError,
    XmlStream,
    XmlStreamError,
)

MAX_BYTES = 100_000
MAX_DEPTH = 20
CLIENT = "{jabber:client}"
HEADER = (
    b"<?xml version='1.0'?><stream:stream xmlns='jabber:client' version='1.0'"
    b" xmlns:stream='http://etherx.jabber.org/streams' from='chat.example'>"
)
STANZAS = (
    b"<message id='a>b' to=\"it's>\"><body>1 &lt; 2 &amp; &#x1F600; > \xc3\xa9]]</body></message>",
    b"<presence\n\tfrom = 'r@c.example/\xe2\x82\xac' ><show/></presence >",
    b"<message><body><![CDATA[<a>]]]]><![CDATA[></a> <!-- ]>]]></body></message>",
    b"<iq><!-- a > b ' \" <!- --><?pi a='>' ?><query xmlns=''/></iq>",
    b"<r xmlns='urn:xmpp:sm:3'/>",
)
STREAM = HEADER + b"\n ".join(STANZAS) + b"</stream:stream>"


def stream(max_bytes: int = MAX_BYTES) -> XmlStream:
    return XmlStream(max_bytes=max_bytes, max_depth=MAX_DEPTH)


def outcome(
    pieces: Sequence[bytes], max_bytes: int = MAX_BYTES
) -> tuple[list[bytes], type[XmlStreamError] | None]:
    """What was read behind the header, and what was raised at the end."""
    xml, found = stream(max_bytes), list[bytes]()
    try:
        for piece in pieces:
            for one in xml.feed(piece):
                found.append(tostring(one))
    except XmlStreamError as error:
        return found[1:], type(error)
    return found[1:], None


def torn(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def read(*pieces: bytes) -> list[bytes]:
    found, error = outcome(pieces)
    assert error is None
    return found


WHOLE = read(STREAM)


def test_the_header_comes_first_with_its_attributes() -> None:
    assert next(stream().feed(STREAM)).get("from") == "chat.example"


def test_each_stanza_is_read_from_one_piece() -> None:
    xml = stream()
    stanzas = list(xml.feed(STREAM))[1:]
    assert [one.tag.rpartition("}")[2] for one in stanzas] == [
        "message", "presence", "message", "iq", "r",
    ]  # fmt: skip
    assert stanzas[0].findtext(f"{CLIENT}body") == "1 < 2 & \N{GRINNING FACE} > é]]"
    assert stanzas[2].findtext(f"{CLIENT}body") == "<a>]]></a> <!-- ]>"
    assert xml.ended


@pytest.mark.parametrize("before", [1, 2, 7, 1_000])
@pytest.mark.parametrize("number", range(len(STANZAS)))
def test_a_stanza_torn_at_any_byte_is_there_with_its_last_byte(number: int, before: int) -> None:
    stanza = STANZAS[number]
    for at in range(1, len(stanza)):
        xml = stream()
        assert len([one for piece in torn(HEADER, before) for one in xml.feed(piece)]) == 1
        assert list(xml.feed(stanza[:at])) == []
        assert [tostring(one) for one in xml.feed(stanza[at:])] == [WHOLE[number]]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 11])
def test_a_stream_in_pieces_of_one_size_is_the_same_stream(size: int) -> None:
    assert read(*torn(STREAM, size)) == WHOLE


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_a_stream_cut_anywhere_is_the_same_stream(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    assert read(*(STREAM[start:end] for start, end in pairwise(edges))) == WHOLE


MARKS = (
    *(b"<", b">", b"'", b'"', b"/", b"=", b"&", b"<!", b"<!--", b"-->", b"<?", b"?>", b"]]>"),
    *(b"<![CDATA[", b"<a>", b"</a>", b"a", b" ", b"\0", b"\xff", b"</stream:stream>"),
)


@given(pieces=st.lists(st.sampled_from(MARKS), max_size=30))
def test_no_cut_changes_what_is_made_of_rubbish(pieces: list[bytes]) -> None:
    data = b"".join([*pieces, STANZAS[4]])
    found, _ = outcome([HEADER + data])
    # How it ends is not compared: within a comment it is not known yet that text stands before it.
    assert outcome([HEADER, *pieces, STANZAS[4]])[0] == found
    assert outcome([HEADER, *torn(data, 1)])[0] == found


@pytest.mark.parametrize("size", [1, 2, 5, 1_000])
@pytest.mark.parametrize(
    ("prolog", "error"),
    [
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]>", RestrictedXmlError),
        (b"<?xml version='1.0'?>\n <!DOCTYPE a SYSTEM 'file:///etc/passwd'>", RestrictedXmlError),
        (b"\xef\xbb\xbf<!DOCTYPE a []>", RestrictedXmlError),
        (b"<?pi a='<'?><!ENTITY b 'c'>", RestrictedXmlError),
        ("<!DOCTYPE a []>".encode("utf-16"), NotWellFormedError),
        ("<!DOCTYPE a []>".encode("utf-16-le"), NotWellFormedError),
        ("<!DOCTYPE a []>".encode("utf-16-be"), NotWellFormedError),
        (b"<?xml version='1.0' encoding='cp037'?>", NotWellFormedError),
        (b"<?xml version='1.0'\tencoding = \"utf-7\" ?>", NotWellFormedError),
        (b"<?xml version='1.0' encoding='iso-8859-1'?>", NotWellFormedError),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", NotWellFormedError),
        (b"\x16\x03\x01\x02\x00\x01", NotWellFormedError),
    ],
)
def test_a_declaration_and_what_is_not_xml_in_utf_8_are_refused_however_torn(
    prolog: bytes, error: type[XmlStreamError], size: int
) -> None:
    assert outcome(torn(prolog, size)) == ([], error)


@pytest.mark.parametrize(
    "prolog",
    [
        b"", b" \r\n\t", b" " * 5_000,
        b"\xef\xbb\xbf", b"\xef\xbb\xbf<?xml version='1.0' encoding='UTF-8'?>\n",
        b"<?xml version=\"1.0\" encoding=\"utf-8\" standalone='yes'?>",
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 1_000])
def test_a_prolog_that_xmpp_allows_is_read(prolog: bytes, size: int) -> None:
    assert read(*torn(prolog + STREAM.partition(b"?>")[2], size)) == WHOLE


def test_a_cdata_section_in_the_same_piece_as_the_header_is_no_declaration() -> None:
    assert read(HEADER + STANZAS[2]) == [WHOLE[2]]


@pytest.mark.parametrize("size", [1, 1_000])
@pytest.mark.parametrize(
    "broken",
    [
        b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"<message>&nobody;</message>", b"<a></b>", b"<<",
        b"<a b='1' b='2'/>", b"<a b=<", b"<a b='<'>", b"\xff", b"<message>\x1b</message>",
        b"<?xml version='1.0'?>", b"<message>]]></message>", b"</message>", b"words", b"&amp;",
        b"<message/>words<message/>", b"<message/>words</stream:stream>", b"\0", b"<a:b/>",
    ],
)  # fmt: skip
def test_what_is_not_well_formed_is_refused_behind_what_is(broken: bytes, size: int) -> None:
    found, error = outcome([HEADER, *torn(STANZAS[0] + broken, size)])
    assert error is NotWellFormedError
    assert found[0] == WHOLE[0]
    assert len(found) == 1 + broken.startswith(b"<message/>")


@pytest.mark.parametrize("size", [1_000, 7_777])
def test_an_element_of_the_most_bytes_is_taken_and_a_longer_one_refused(size: int) -> None:
    start, end = b"<message/><message>", b"</message>"
    for length, error in ((MAX_BYTES, None), (MAX_BYTES + 2, StanzaTooLongError)):
        message = start[10:].ljust(length - len(end), b"x") + end
        # The last byte comes alone: all others are counted before it is there.
        pieces = [HEADER, start[:10], *torn(message[:-1], size), message[-1:]]
        found, raised = outcome(pieces)
        assert raised is error
        assert len(found) == 1 + (error is None)


@pytest.mark.parametrize(
    ("opening", "end"),
    [(b"a b='", b"'/>"), (b"!--", b"-->"), (b"![CDATA[", b"]]>"), (b"?a ", b"?>")],
)
def test_what_is_not_whole_yet_has_a_bound(opening: bytes, end: bytes) -> None:
    for length, error in ((MAX_TOKEN_BYTES, None), (MAX_TOKEN_BYTES + 1, StanzaTooLongError)):
        pieces = [HEADER, b"<message>some text<", opening.ljust(length, b"x"), end + b"</message>"]
        found, raised = outcome(pieces, 2 * MAX_TOKEN_BYTES)
        assert raised is error
        assert len(found) == (error is None)


@pytest.mark.parametrize("inside", [b"", b"<message>"], ids=["between stanzas", "in a stanza"])
@pytest.mark.parametrize(
    "opening", [b" ", b"<a b='", b'<a b="', b"<a ", b"<!-- ", b"<![CDATA[", b"<?pi "]
)
def test_nothing_goes_on_without_end(opening: bytes, inside: bytes) -> None:
    more = b" " if opening == b" " else b"x"
    pieces = [HEADER + inside + opening, *torn(more * MAX_BYTES, 1_000)]
    assert outcome(pieces) == ([], StanzaTooLongError)


@pytest.mark.parametrize(
    ("depth", "error"), [(MAX_DEPTH, None), (MAX_DEPTH + 1, StanzaTooLongError)]
)
def test_elements_stand_in_one_another_up_to_the_limit(
    depth: int, error: type[XmlStreamError] | None
) -> None:
    assert outcome([HEADER + b"<a>" * depth + b"</a>" * depth])[1] is error


def test_the_blanks_between_stanzas_are_not_kept() -> None:
    def pieces() -> Iterator[bytes]:
        yield HEADER
        for _ in range(20):
            yield b"<message/>"
            yield b" " * (MAX_BYTES // 2)

    found = list[Element]()
    xml = stream()
    tracemalloc.start()
    try:
        for piece in pieces():
            found.extend(xml.feed(piece))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) == 21
    assert kept < MAX_BYTES
    assert [one.tail for one in found] == [None] * 21


def test_nothing_is_read_behind_the_end() -> None:
    xml = stream()
    list(xml.feed(STREAM + STANZAS[0]))
    assert list(xml.feed(STANZAS[0])) == []
