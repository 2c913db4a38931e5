from xml.etree.ElementTree import Element, fromstring, tostring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire.xmlwriter import written

CLIENT = "jabber:client"


def read(xml: str) -> Element:
    return fromstring(f"<s xmlns='{CLIENT}'>{xml}</s>")[0]  # noqa: S314 - it was written here


def same(first: Element, other: Element) -> bool:
    return (
        (first.tag, first.attrib, first.text or "", first.tail or "", len(first))
        == (other.tag, other.attrib, other.text or "", other.tail or "", len(other))
    ) and all(map(same, first, other))


_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff"))
_text = _text.filter(lambda it: not any(ord(each) < 32 and each not in "\t\n\r" for each in it))
_namespaces = st.sampled_from(["", CLIENT, "urn:a", "u'/><evil/><x a='", 'u"/><evil/>', "a&b<c>\t"])
_local = st.sampled_from(["a", "b", "message", "xml", "ns0", "\u00e9"])


@st.composite
def _names(draw: st.DrawFn) -> str:
    namespace = draw(_namespaces)
    return f"{{{namespace}}}{draw(_local)}" if namespace else draw(_local)


_xml_names = st.just("{http://www.w3.org/XML/1998/namespace}lang")


@st.composite
def _elements(draw: st.DrawFn, depth: int = 3) -> Element:
    attributes = draw(st.dictionaries(_names() | _xml_names, _text, max_size=3))
    element = Element(draw(_names() | _xml_names), attributes)
    element.text = draw(_text)
    if depth:
        for child in draw(st.lists(_elements(depth - 1), max_size=2)):
            child.tail = draw(_text)
            element.append(child)
    return element


@given(_elements())
def test_a_parser_reads_what_was_written(element: Element) -> None:
    assert same(read(written(element, CLIENT)), element)


@pytest.mark.parametrize(
    "xml",
    [
        "<message><body>a</body></message>",
        "<message><x xmlns='u&quot;/&gt;&lt;message from=&quot;admin&quot;/&gt;'/></message>",
        "<message xmlns:a='u' a:from='admin' from='eve'/>",
        "<message xml:lang='en'><xml:body/><body xmlns=''/></message>",
        "<message a='&#13;&#10;&#9;'>&#13;</message>",
    ],
)
def test_what_came_is_shown_as_what_it_was(xml: str) -> None:
    element = read(xml)
    shown = written(element, CLIENT)
    assert tostring(read(shown)) == tostring(element)
    assert shown.count("<message") == 1


def test_a_stanza_is_written_as_short_as_it_can_be() -> None:
    assert written(read("<s><a/>beside</s>")[0], CLIENT) == "<a/>"
    assert written(read("<a b='\"'><c>it's \"</c><d xmlns='e'/></a>"), CLIENT) == (
        '<a b="&quot;"><c>it\'s "</c><d xmlns="e"/></a>'
    )
