from collections.abc import Sequence
from contextlib import suppress
from itertools import chain, pairwise
from xml.etree.ElementTree import Element, tostring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire import xmlstream
from bridge.wire.xmlstream import (
    MAX_DECLARED_BYTES,
    MAX_HEADER_BYTES,
    MAX_NAMESPACE_BYTES,
    MAX_TOKEN_BYTES,
    NAMELESS,
    DamagedElement,
    NotWellFormedError,
    RestrictedXmlError,
    StanzaTooLongError,
    TlsRecordError,
    XmlStream,
    XmlStreamError,
)
from tests.support.memory import traced

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
    b"<iq a='/' b='>' ><query xmlns='' c='/iq>'/><stream:a b='\"'  /></iq>",
    b"<r xmlns='urn:xmpp:sm:3'/>",
)
STREAM = HEADER + b"\n ".join(STANZAS) + b"</stream:stream>"


def stream(max_bytes: int = MAX_BYTES) -> XmlStream:
    return XmlStream(max_bytes=max_bytes, max_depth=MAX_DEPTH)


@pytest.mark.parametrize(
    ("declared", "tags"),
    [
        ("xmlns='jabber:client'", ["message", "body", "{u:x}x", f"{CLIENT}message"]),
        ("xmlns='other'", ["{other}message", "{other}body", "{u:x}x", f"{CLIENT}message"]),
        (
            "xmlns:a='jabber:client' xmlns='jabber:client'",
            ["message", "body", "{u:x}x", f"{CLIENT}message"],
        ),
    ],
)
def test_tags_are_without_a_default_namespace_that_is_to_be_unnamed(
    declared: str, tags: list[str]
) -> None:
    xml = XmlStream(max_bytes=MAX_BYTES, max_depth=MAX_DEPTH, unnamed={b"jabber:client"})
    said = "<message><body/><x xmlns='u:x'><message xmlns='jabber:client'/></x></message>"
    _, message = xml.feed(f"<stream {declared}>{said}".encode())
    assert [each.tag for each in message.iter()] == tags


def outcome(
    pieces: Sequence[bytes], max_bytes: int = MAX_BYTES
) -> tuple[list[bytes], type[XmlStreamError] | None]:
    """What was read behind the header, and what was raised at the end."""
    xml, elements = stream(max_bytes), list[bytes]()
    try:
        for piece in pieces:
            for each in xml.feed(piece):
                elements.append(tostring(each))
    except XmlStreamError as error:
        return elements[1:], type(error)
    return elements[1:], None


def torn(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def read(*pieces: bytes) -> list[bytes]:
    elements, error = outcome(pieces)
    assert error is None
    return elements


WHOLE = read(STREAM)


def test_each_stanza_is_read_from_one_piece() -> None:
    xml = stream()
    header, *stanzas = xml.feed(STREAM)
    assert header.get("from") == "chat.example"
    assert [each.tag.rpartition("}")[2] for each in stanzas] == [
        "message", "presence", "message", "iq", "r",
    ]  # fmt: skip
    assert stanzas[0].findtext(f"{CLIENT}body") == "1 < 2 & \N{GRINNING FACE} > é]]"
    assert stanzas[2].findtext(f"{CLIENT}body") == "<a>]]></a> <!-- ]>"
    assert xml.ended
    assert list(xml.feed(STANZAS[0])) == []


def test_a_stanza_torn_at_any_byte_is_there_with_its_last_byte() -> None:
    for stanza, whole in zip(STANZAS, WHOLE, strict=True):
        for at in range(1, len(stanza)):
            xml = stream()
            assert len(list(xml.feed(HEADER))) == 1
            assert list(xml.feed(stanza[:at])) == []
            assert [tostring(each) for each in xml.feed(stanza[at:])] == [whole]


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_a_stream_cut_anywhere_is_the_same_stream(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    assert read(*(STREAM[start:end] for start, end in pairwise(edges))) == WHOLE


MARKS = (
    *(b"<", b">", b"'", b'"', b"/", b"=", b"&", b"<!", b"<!--", b"-->", b"<?", b"?>", b"]]>"),
    *(
        b"<x a='",
        b"/ >",
        b"</iq>",
        b"<iq ",
        b"<![CDATA[",
        b"<a>",
        b"</a>",
        b"a",
        b" ",
        b"\0",
        b"\xff",
        b"</stream:stream>",
    ),
)


@given(pieces=st.lists(st.sampled_from(MARKS), max_size=30))
def test_no_cut_changes_what_is_made_of_rubbish(pieces: list[bytes]) -> None:
    data = b"".join([*pieces, STANZAS[4]])
    elements, _ = outcome([HEADER + data])
    # How it ends is not compared: within a comment it is not known yet that text stands before it.
    assert outcome([HEADER, *pieces, STANZAS[4]])[0] == elements
    assert outcome([HEADER, *torn(data, 1)])[0] == elements


@pytest.mark.parametrize("size", [1, 1_000])
@pytest.mark.parametrize(
    ("prolog", "error"),
    [
        (b"\x15\x03\x03\x00\x02\x02\x50", TlsRecordError),
        (b"\x16", TlsRecordError),
        (b"\x13\x03\x03", NotWellFormedError),
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]>", RestrictedXmlError),
        (b"<?xml version='1.0'?>\n <!DOCTYPE a SYSTEM 'file:///etc/passwd'>", RestrictedXmlError),
        (b"\xef\xbb\xbf<!DOCTYPE a []>", RestrictedXmlError),
        (b"<?pi a='<'?><!ENTITY b 'c'>", RestrictedXmlError),
        ("<!DOCTYPE a []>".encode("utf-16"), NotWellFormedError),
        ("<!DOCTYPE a []>".encode("utf-16-le"), NotWellFormedError),
        ("<!DOCTYPE a []>".encode("utf-16-be"), NotWellFormedError),
        (b"<?xml version='1.0' encoding='iso-8859-1'?><stream a='\xe9'>", NotWellFormedError),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", NotWellFormedError),
        (b"\x16\x03\x01\x02\x00\x01", TlsRecordError),
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
        b"<?xml version='1.0' encoding='cp037'?>",
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 1_000])
def test_a_prolog_that_xmpp_allows_is_read(prolog: bytes, size: int) -> None:
    assert read(*torn(prolog + STREAM.partition(b"?>")[2], size)) == WHOLE


@pytest.mark.parametrize("size", [1, 1_000])
@pytest.mark.parametrize(
    "broken",
    [
        b"<a></b>", b"<a><b></a></b>", b"<a b=<", b"\xff", b"</message>", b"words",
        b"&amp;", b"<message/>words<message/>", b"<message/>words</stream:stream>", b"\0",
        b"<a:b/>", b"<![CDATA[words]]>", b"</stream>",
    ],
)  # fmt: skip
def test_what_is_wrong_beyond_a_stanza_ends_the_stream_behind_it(broken: bytes, size: int) -> None:
    elements, error = outcome([HEADER, *torn(STANZAS[0] + broken, size)])
    assert error is NotWellFormedError
    assert elements[0] == WHOLE[0]
    assert len(elements) == 1 + broken.startswith(b"<message/>")


@pytest.mark.parametrize("inside", [b"%b", b"<message>%b</message>"])
@pytest.mark.parametrize("xml", [b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"<!-- a -->", b"<?a b?>"])
def test_what_xmpp_forbids_everywhere_ends_the_stream(xml: bytes, inside: bytes) -> None:
    assert outcome([HEADER + inside % xml]) == ([], RestrictedXmlError)


NO_TAGS = (
    *(b"<>", b"</>", b"<x / >", b"<1>", b"</1>", b"< x>", b"</ x>", b"<x/y>", b"<", b"<x ", b"<<>"),
    *(b"<-", b"<\0>"),
)
"""What a server may write where a tag belongs, which is none, and has no attribute."""
MALFORMED = (
    *(b"<x a='<'/>", b'<x a="b<c>\'"></x>', b"<x a='</body>'/>", b"<x a=<b>", b"<x a=/>", b"<=/>"),
    *(b"<1 a='b'>", b"<x / a='>'>", b"<x a='b' / >", b"<3 you", b"</x a='b'>"),
)
"""What else is no tag, and yet leaves no doubt where its stanza ends."""
WITHIN = b"<message from='eve' id='bad'><a>it&apos;s</a>%b<iq from='boss'><a b='>'/></iq></message>"


@pytest.mark.parametrize("size", [1, 1_000])
@pytest.mark.parametrize("odd", [*NO_TAGS, *MALFORMED])
def test_a_malformed_tag_in_a_stanza_costs_that_stanza_alone(odd: bytes, size: int) -> None:
    xml = stream()
    pieces = [HEADER, *torn(WITHIN % odd + STANZAS[0] + b"</stream:stream>", size)]
    damaged, behind = [each for piece in pieces for each in xml.feed(piece)][1:]
    assert isinstance(damaged, DamagedElement)
    assert (damaged.attrib, damaged.condition) == ({"from": "eve", "id": "bad"}, "not-well-formed")
    assert tostring(behind) == WHOLE[0]
    assert xml.ended


@pytest.mark.parametrize("size", [1, 1_000])
@pytest.mark.parametrize("odd", [*NO_TAGS, b"<message / >"])
def test_a_malformed_tag_between_two_stanzas_costs_neither(odd: bytes, size: int) -> None:
    elements, error = outcome([HEADER, *torn(STANZAS[0] + odd + STANZAS[1] * 2, size)])
    assert (elements[0], elements[-2:], error) == (WHOLE[0], [WHOLE[1]] * 2, None)
    assert elements[1:-2] == [b"<%b />" % NAMELESS.encode()]


def test_malformed_tags_in_a_row_between_two_stanzas_are_told_once() -> None:
    pieces = [HEADER, *[b"<><x / >\n"] * 1_000, STANZAS[1], b"<>" * 1_000, STANZAS[1]]
    nameless = b"<%b />" % NAMELESS.encode()
    assert read(*pieces) == [nameless, WHOLE[1]] * 2


@pytest.mark.parametrize(
    ("tag", "known"),
    [
        (b"<iq from='a<b' id='7'>", {"from": "a<b", "id": "7"}),
        (b"<iq id='7' x='<y>'>", {"id": "7"}),
        (b"<iq x='<y from=\"boss\" z' from='eve'>", {"from": "eve"}),
    ],
)
def test_of_a_stanza_with_a_raw_bracket_in_its_own_tag_the_sender_is_known(
    tag: bytes, known: dict[str, str]
) -> None:
    for data in (tag + b"<iq><a></iq></b></iq>", tag[:-1] + b"/>"):
        damaged, behind = [*stream().feed(HEADER + data + b"<presence/>")][1:]
        assert isinstance(damaged, DamagedElement)
        assert (damaged.attrib, behind.tag) == (known, f"{CLIENT}presence")


@pytest.mark.parametrize("size", [1, 1_000])
@pytest.mark.parametrize(
    "data",
    [
        # A quote that is not closed, and what a stranger wrote behind it.
        WITHIN % b"<x a='",
        WITHIN % b'<x a="',
        WITHIN % b"</x a='",
        WITHIN % b"<x a='><message b=' >'></message><iq from='boss'/>",
        WITHIN % b"<x a='<![CDATA[' ></message><iq from='boss'/>]]>",
        WITHIN % b"<x a='<!-- ' ></message><iq from='boss'/>-->",
        WITHIN % b"<x a='<![CDATB[",
        # A tag that may open or close the stanza's own name.
        WITHIN % b"<message / >",
        WITHIN % b"</message / >",
        WITHIN % b"</ message>",
        WITHIN % b"<x></message",
        WITHIN % b"<<>message from='eve'></message><iq from='boss'/>",
        # An attribute without quotes that ends with `/`: the tag may be an opening one.
        WITHIN % b"<x a=/><b/></x><iq from='boss'/>",
        # One that may be the opening tag of a stranger's stanza.
        b"< from='eve'><iq from='boss'/></>",
        b"<message from='eve' / ><iq from='boss'/></message>",
        b"<iq from\"'eve' id='7'><x from='boss' a=\"\"/></iq>",
        b"<![CDATB[",
        # A stanza that was too long to keep its tags.
        b"<message><message>%b<></message><iq from='boss'/></message>" % (b"x" * MAX_BYTES * 2),
    ],
)
def test_the_stream_ends_where_a_malformed_tag_may_hide_the_end_of_a_stanza(
    data: bytes, size: int
) -> None:
    elements, error = outcome([HEADER, *torn(data + STANZAS[0], size)])
    assert error is not None
    assert issubclass(error, NotWellFormedError)
    assert not [each for each in elements if b"boss" in each]


WORDS = st.sampled_from(["it's", "&lt;iq from='boss'/&gt;", "/ >", '="', "message", "]]&gt;", "'>"])
VALUES = WORDS.map(lambda words: '"{}"'.format(words.replace('"', "&quot;")))
VALUES |= WORDS.map(lambda words: "'{}'".format(words.replace("'", "&apos;")))
NAMES = st.sampled_from(["message", "iq", "x"])
CHILDREN = st.recursive(
    WORDS.map(lambda words: words.replace(">", "&gt;"))
    | st.just("<![CDATA[</message><iq from='boss'/>'\"]]>"),
    lambda inner: st.builds(
        lambda name, a, inside: f"<{name} from='boss' a={a}>{''.join(inside)}</{name}>",
        *(NAMES, VALUES, st.lists(inner, max_size=3)),
    ),
    max_leaves=8,
)
"""What a stranger can make a server pass on within a stanza: well-formed, whatever it says."""
OPEN = (b"<x a='", b'<x a="', b"</x a='", b"<message ", b"<3 it's", b"<iq from='<", b"<x a=/ b='")


@given(
    children=st.lists(CHILDREN, max_size=5),
    odd=st.lists(st.sampled_from([*NO_TAGS, *MALFORMED, *OPEN]), min_size=1, max_size=2),
    at=st.integers(0, 5),
    size=st.sampled_from([1, 7, 1_000]),
)
def test_nothing_within_a_stanza_becomes_a_stanza_whatever_is_malformed_beside_it(
    children: list[str], odd: list[bytes], at: int, size: int
) -> None:
    parts = [child.encode() for child in children]
    parts[at:at] = odd
    data = b"<message from='eve'>%b</message>" % b"".join(parts) + STANZAS[1] * 3
    elements, error = outcome([HEADER, *torn(data, size)])
    assert not [each for each in elements if b"boss" in each]
    assert error is not None or elements[1:] == [WHOLE[1]] * 3


LONG = b"n" * (MAX_NAMESPACE_BYTES + 1)
ODD = {
    "a namespace with expat's own separator": b"<a xmlns='}'/>",
    "a reserved namespace": b"<y xmlns='http://www.w3.org/XML/1998/namespace'/>",
    "a reserved prefix": b"<a xmlns:xml='b'/>",
    "an unbound prefix": b"<a:b/>",
    "an attribute twice": b"<a b='1' b='2'/>",
    "an entity of nobody's": b"<a>&nobody;</a>",
    "a control character": b"<a>\x1b</a>",
    "its number": b"<a b='&#1;'/>",
    "no UTF-8": b"<a>\xff</a>",
    "the end of a CDATA section": b"<a>]]></a>",
    "a tag in an attribute": b"<a b='<'/>",
    "no value": b"<a b/>",
    "a long namespace of a prefix": b'<a b="1" xmlns:c="' + LONG + b'" c:d="2"/>',
    "deep elements": b"<a>" * MAX_DEPTH + b"</a>" * MAX_DEPTH,
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_stanza_that_cannot_be_read_is_lost_alone(odd: bytes) -> None:
    xml = stream(10_000_000)
    data = HEADER + b"<message id='7'><body>a</body>%b<b xmlns='c'/></message><presence/>" % odd
    damaged, presence = list(xml.feed(data))[1:]
    assert isinstance(damaged, DamagedElement)
    assert tostring(damaged) == b'<ns0:message xmlns:ns0="jabber:client" id="7" />'
    assert damaged.reason
    assert not any(word in damaged.reason for word in ("nobody", "}", "nnn"))
    assert presence.tag == f"{CLIENT}presence"
    assert xml.raw == b"<presence/>"


@pytest.mark.parametrize(
    ("odd", "kept"),
    [
        *((odd, {"from": "a&b", "id": "7"}) for odd in ("xmlns:a='}'", "b='1' b='2'", "a:b=''")),
        (f"xmlns:a='{LONG.decode()}'", {"from": "a&b", "id": "7"}),
        ("to='&nobody;'", {}),
    ],
)
def test_of_a_stanza_that_cannot_be_read_the_common_attributes_are(
    odd: str, kept: dict[str, str]
) -> None:
    (damaged,) = list(
        stream().feed(HEADER + f"<iq from='a&amp;b' {odd} id='7' x='y'><b/></iq>".encode())
    )[1:]
    assert isinstance(damaged, DamagedElement)
    assert (damaged.tag, damaged.attrib, len(damaged)) == (f"{CLIENT}iq", kept, 0)


MANY = 1_000


@pytest.mark.parametrize(
    ("within", "beyond"),
    [
        (b"<a xmlns='%b'/>" % LONG[1:], b"<a xmlns='%b'/>" % LONG),
        (b"<b/>" * (MANY - 1), b"<b/>" * MANY),
        (b"<b c='='/>" * (MANY // 3 - 1), b"<b c='='/>" * (MANY // 3 + 1)),
        (b"<a>" * (MAX_DEPTH - 1) + b"</a>" * (MAX_DEPTH - 1), ODD["deep elements"]),
        (b"<b>" + b"=&lt;" * MANY + b"</b>", b"<b/>" * MANY),
    ],
    ids=["namespace", "elements", "attributes", "depth", "text like attributes"],
)
def test_each_limit_holds_at_its_edge(
    within: bytes, beyond: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert xmlstream.MAX_NAMES == 250_000
    monkeypatch.setattr(xmlstream, "MAX_NAMES", MANY)
    for xml, whole in ((within, True), (beyond, False)):
        (element,) = list(stream().feed(HEADER + b"<message>%b</message>" % xml))[1:]
        assert isinstance(element, DamagedElement) is not whole


def test_no_stanza_leaves_memory_behind() -> None:
    xml = stream(10_000_000)
    list(xml.feed(HEADER))

    def odd(number: int) -> bytes:
        names = b"".join(b"<n%d-%d/>" % (number, n) for n in range(200))
        return b"<message xmlns:a='%b'>%b</message>" % (b"n%d" % number, names)

    def taken(rounds: int) -> int:
        for number in range(rounds):
            for each in xml.feed(odd(number)):
                del each
        return memory()[0]

    with traced() as memory:
        before = taken(5)
        assert taken(40) - before < 50_000


def test_an_element_of_the_most_bytes_is_whole_and_a_longer_one_is_skipped() -> None:
    start, end = b"<message/><message><a/>", b"</message>"
    for length, reason in ((MAX_BYTES, ""), (MAX_BYTES + 2, "it has more than 100,000 bytes")):
        message = start[10:].ljust(length - len(end), b"x") + end
        xml = stream()
        # The last byte comes alone: all others are counted before it is there.
        pieces = [HEADER, start[:10], *torn(message[:-1], 7_777), message[-1:], b"<presence/>"]
        elements = [each for piece in pieces for each in xml.feed(piece)][2:]
        assert [getattr(each, "reason", "") for each in elements] == [reason, ""]
        assert len(tostring(elements[0])) < 100 or not reason
        assert [len(child.tail or "") for child in elements[0]] == (
            [] if reason else [length - len(b"<message><a/></message>")]
        )


@pytest.mark.parametrize("more", [b"x" * 5_000, b"<b c='d'>" * 100])
def test_a_stanza_without_end_takes_no_more_memory_than_its_limit(more: bytes) -> None:
    xml = stream()
    list(xml.feed(HEADER + b"<message><body>a</body>"))
    with traced() as memory:
        assert list(chain.from_iterable(map(xml.feed, [more] * 200))) == []
        assert memory()[1] < 8 * MAX_BYTES


def test_a_header_has_a_bound() -> None:
    for length, error in ((MAX_HEADER_BYTES, None), (MAX_HEADER_BYTES + 1, StanzaTooLongError)):
        header = (HEADER[:-1] + b" a='").ljust(length - 2, b"x") + b"'>"
        assert outcome([header, b"<message/>"])[1] is error
        assert outcome([header[:-1], b"><message/>"])[1] is error


@pytest.mark.parametrize("declared", [b" xmlns:n='%b'", b" xmlns:m='m' xmlns:n='%b'"])
def test_the_namespaces_of_a_header_have_a_bound(declared: bytes) -> None:
    others = len(b" xmlns='' xmlns:s=''" + CLIENT[1:-1].encode() + declared) - len(b"%b") + 1
    for length, error in ((MAX_DECLARED_BYTES, None), (MAX_DECLARED_BYTES + 1, StanzaTooLongError)):
        namespaces = declared % (b"n" * (length - others))
        header = b"<s:stream xmlns='jabber:client' xmlns:s='s'" + namespaces + b">"
        assert outcome([header, b"<message/>"])[1] is error


def test_a_cdata_section_that_is_not_whole_yet_has_a_bound() -> None:
    for length, error in ((MAX_TOKEN_BYTES, None), (MAX_TOKEN_BYTES + 1, StanzaTooLongError)):
        opening = b"![CDATA[".ljust(length, b"x")
        pieces = [HEADER, b"<message>some text<", opening, b"]]></message>"]
        elements, raised = outcome(pieces, 2 * MAX_TOKEN_BYTES)
        assert raised is error
        assert len(elements) == (error is None)


@pytest.mark.parametrize("length", [MAX_TOKEN_BYTES, MAX_TOKEN_BYTES + 1])
@pytest.mark.parametrize(
    ("opening", "more", "end"),
    [
        *((b"<a b='", b"x", b"'/>"), (b'<a b="', b"'>/x", b'"></a>'), (b"<a ", b"b='>' ", b"/>")),
        (b"<a", b"x", b"/>"),
    ],
)
def test_a_tag_that_is_too_long_while_it_is_not_whole_loses_its_stanza_alone(
    opening: bytes, more: bytes, end: bytes, length: int
) -> None:
    tag = (opening + more * (length // len(more) + 1))[: length + 1]
    if more.endswith(b" "):
        tag += b"'" * (tag.count(b"'") % 2)
    before, behind = b"<message from='b'><c/>", b"<d/></message><presence/>"
    xml = stream(20 * MAX_TOKEN_BYTES)
    list(xml.feed(HEADER))
    pieces = [*torn(before + tag, 65_536), end + behind]
    elements = [each for piece in pieces for each in xml.feed(piece)]
    assert [each.tag for each in elements] == [f"{CLIENT}message", f"{CLIENT}presence"]
    assert elements[0].get("from") == "b"
    if length > MAX_TOKEN_BYTES and more == b"x":
        assert isinstance(elements[0], DamagedElement)
        assert elements[0].reason == "a tag in it has more than 1,048,576 bytes"
        assert len(xml.raw) < MAX_TOKEN_BYTES


@pytest.mark.parametrize("before", [0, 30_000])
@pytest.mark.parametrize(
    "part",
    [
        b" a%d='%s'" % (0, b"x" * 100_000),
        b" a%d='%s'" % (0, b' from="eve" ' * 10_000),
        b" xmlns:ns%d='%s'" % (0, b"u" * 1_000),
        b" %sfrom='eve'" % (b"x" * 10_000),
    ],
    ids=["long values", "with another sender in them", "short values", "long names"],
)
def test_of_a_stanza_with_a_long_tag_we_know_the_sender(part: bytes, before: int) -> None:
    some = part * (before // len(part))
    tag = b"<message%s from='b' type='c'%s>" % (some, part * (2 * MAX_TOKEN_BYTES // len(part)))
    xml = stream(20 * MAX_TOKEN_BYTES)
    pieces = [HEADER, *torn(tag, 8_191), b"<body>d</body></message>"]
    (elements,) = [element for piece in pieces for element in xml.feed(piece)][1:]
    assert isinstance(elements, DamagedElement)
    assert elements.attrib == {"from": "b", "type": "c"}


@pytest.mark.parametrize("inside", [b"", b"<message>"], ids=["between stanzas", "in a stanza"])
@pytest.mark.parametrize("opening", [b"<a b='", b'<a b="', b"<a ", b"<![CDATA["])
def test_a_tag_without_end_takes_no_memory_beyond_its_limit(opening: bytes, inside: bytes) -> None:
    xml = stream()
    pieces = [HEADER + inside + opening, *[b"x" * 400_000] * 20]
    with traced() as memory:
        with suppress(StanzaTooLongError):  # which a CDATA section is, that no server writes
            list(chain.from_iterable(map(xml.feed, pieces)))
        assert memory()[1] < 5 * MAX_TOKEN_BYTES


def test_the_blanks_between_stanzas_are_not_kept() -> None:
    elements = list[Element]()
    xml = stream()
    with traced() as memory:
        for piece in (HEADER, *[b"<message/>", b" " * (MAX_BYTES // 2)] * 20):
            elements.extend(xml.feed(piece))
        assert memory()[0] < MAX_BYTES
    assert [each.tail for each in elements] == [None] * 21


@pytest.mark.parametrize(
    "xml",
    [
        "<{}/>", "<a {}/>", "<a b='{}'/>", "<a {}='b'/>", "<a>{}</a>", "<a><![CDATA[{}]]></a>",
        "<a xmlns:{}='b'/>", "</{}>",
    ],
)  # fmt: skip
@pytest.mark.parametrize("text", ["x", "b ", "b = ", '""', "]>", "/", "&amp;", "' x="])
def test_no_long_text_takes_quadratic_time(xml: str, text: str) -> None:
    data = f"<m>{xml.format(text * (400_000 // len(text)))}</m>".encode()
    # Quadratic time would be many minutes: the run gives up a test after ten.
    outcome([HEADER, *torn(data, 100_000)], 1_000_000)


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_it_knows_how_much_of_what_came_is_behind_each_element(size: int) -> None:
    data = b"<?xml version='1.0'?> <s:s xmlns:s='u:s'><a>b</a> \n<c d='e'/><f><f></f></f></s:s>rest"
    stream, came, ends = XmlStream(max_bytes=1000, max_depth=9), b"", []
    for at in range(0, len(data), size):
        came += data[at : at + size]
        ends += [came[: len(came) - stream.unread] for _ in stream.feed(data[at : at + size])]
    closings = [b"u:s'>", b"</a>", b"/>", b"</f></f>"]
    assert [came.endswith(closing) for came, closing in zip(ends, closings, strict=True)] == [
        True
    ] * 4


def test_it_knows_when_no_element_is_under_way() -> None:
    stream = XmlStream(max_bytes=1000, max_depth=9)
    told = []
    for piece in (b"<s:s xmlns:s='u:s'>", b" ", b"<a", b"/>", b"<b>", b"</b>", b"</s:s>"):
        list(stream.feed(piece))
        told.append(stream.is_between)
    assert told == [True, True, False, True, False, True, False]
