from collections.abc import Iterator
from copy import deepcopy
from time import process_time
from xml.etree.ElementTree import Element, SubElement, fromstring, tostring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire import names
from bridge.xmpp.link.trace import (
    OPEN_FIELDS,
    PASSWORD,
    REDACTED,
    SECRET_ATTRIBUTES,
    SECRETS,
    redacted,
)

SASL = "xmlns='urn:ietf:params:xml:ns:xmpp-sasl'"
SASL2 = "xmlns='urn:xmpp:sasl:2'"
SM = "xmlns='urn:xmpp:sm:3'"
USER = "xmlns='http://jabber.org/protocol/muc#user'"
FORM = "xmlns='jabber:x:data'"
S = "S3CRET"


def _written(element: Element) -> str:
    return tostring(element, "unicode")


def _read(xml: str) -> Element:
    return fromstring(xml)  # noqa: S314 - it is written below


@pytest.mark.parametrize(
    "xml",
    [
        f"<auth {SASL} mechanism='PLAIN'>{S}</auth>",
        f"<challenge {SASL}>{S}</challenge>",
        f"<response {SASL}>{S}</response>",
        f"<success {SASL}>{S}</success>",
        f"<authenticate {SASL2}><initial-response>{S}</initial-response></authenticate>",
        f"<challenge {SASL2}>{S}</challenge>",
        f"<response {SASL2}>{S}</response>",
        f"<success {SASL2}><additional-data>{S}</additional-data></success>",
        f"<success {SASL2}>\n<authorization-identifier/>{S}</success>",
        f"<success {SASL2}><enabled {SM} id='{S}'/><token xmlns='f' token='{S}'/></success>",
        f"<presence><x xmlns='{names.MUC}'><history/><password>{S}</password></x></presence>",
        f"<presence type='error'><x xmlns='{names.MUC}'><password>{S}</password></x></presence>",
        f"<message><x {USER}><invite from='a@b'/><password>{S}</password></x></message>",
        f"<message><x xmlns='jabber:x:conference' jid='r@s' password='{S}'/></message>",
        f"<query xmlns='jabber:iq:register'><password>{S}</password><key>{S}</key></query>",
        f"<iq><query xmlns='jabber:iq:auth'><digest>{S}</digest></query></iq>",
        f"<enabled {SM} id='{S}' resume='true'/>",
        f"<resume {SM} previd='{S}' h='1'/>",
        f"<resumed {SM} previd='{S}' h='1'/>",
        f"<iq><x {FORM}><field var='muc#roomconfig_roomsecret'><value>{S}</value></field></x></iq>",
        f"<x {FORM}><field var='password'><value>{S}</value><value>{S}</value></field></x>",
        f"<iq><x {FORM}><field var='pin' type='text-private'><value>{S}</value></field></x></iq>",
        f"<x {FORM}><field var='secret'><option><value>{S}</value></option></field></x>",
        f"<iq><services><service xmlns='urn:xmpp:extdisco:2' password='{S}'/></services></iq>",
        f"<iq><storage><conference><password>{S}</password></conference></storage></iq>",
        f"<password>a<b/>{S}</password>",
        f"<message><result><forwarded><password>{S}</password></forwarded></result></message>",
    ],
)
def test_a_secret_is_taken_out_wherever_a_standard_puts_it(xml: str) -> None:
    element = _read(xml)
    before = deepcopy(element)
    clean = redacted(element)
    assert S not in _written(clean)
    assert REDACTED in _written(clean)
    assert _written(element) == _written(before)
    assert [each.tag for each in clean.iter()] == [each.tag for each in element.iter()]


@pytest.mark.parametrize(
    "xml",
    [
        f"<auth {SASL} mechanism='EXTERNAL'/>",
        f"<response {SASL}/>",
        f"<success {SASL}/>",
        f"<failure {SASL}><not-authorized/><text>no</text></failure>",
        f"<enable {SM} resume='true' max='600'/>",
        f"<enabled {SM}/>",
        f"<a {SM} h='1'/>",
        "<message id='1'><body>the password is hunter2, said the secret auth</body></message>",
        "<presence><x xmlns='jabber:x:conference' jid='r@s'/></presence>",
        f"<x {FORM}><field var='muc#roomconfig_roomname'><value>open</value></field></x>",
        f"<x {FORM}><field var='muc#roomconfig_passwordprotectedroom'><value>1</value></field></x>",
        f"<x {FORM}><field><value>1</value></field></x>",
        "<iq><query xmlns='jabber:iq:register'><password/></query></iq>",
        *(f"<field var='{var}'><value>1</value></field>" for var in OPEN_FIELDS),
    ],
)
def test_what_has_no_secret_stays_the_same(xml: str) -> None:
    element = _read(xml)
    assert _same(redacted(element), element)


def test_nothing_but_the_secret_is_replaced() -> None:
    xml = (
        '<x type="form"><title>the secret</title>'
        '<field var="muc#roomconfig_roomsecret" label="password" type="text-private">'
        f"<desc>your secret</desc><required /><value>{S}</value></field>"
        f'<field var="name" password="{S}"><value>Wilma</value></field></x>'
    )
    assert _written(redacted(_read(xml))) == xml.replace(S, REDACTED)


_words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)
_open_names = st.sampled_from(["message", "body", "x", "iq", "query", "value", "field", "reason"])
_secret = st.integers(0, 99).map(lambda number: f"{S}-{number}-{S}")


@st.composite
def _trees(draw: st.DrawFn, depth: int = 4) -> Element:
    """Any element, with secrets where secrets go and nowhere else."""
    kind = draw(st.sampled_from(["open", "open", "open", "text", "attribute", "field"]))
    element = Element(draw(_open_names), {"var": draw(_words)})
    element.text = draw(_words)
    if kind == "text":
        element = Element(f"{{{draw(_words)}}}{draw(st.sampled_from(sorted(SECRETS)))}")
        element.text = draw(_secret)
    elif kind == "attribute":
        name = draw(st.sampled_from([*SECRET_ATTRIBUTES, "x", "any"]))
        attribute = draw(st.sampled_from([SECRET_ATTRIBUTES.get(name, PASSWORD), PASSWORD]))
        element = Element(name, {attribute: draw(_secret), "other": draw(_words)})
        element.text = draw(_secret) if attribute == PASSWORD else None
    elif kind == "field":
        element = Element("field", {"var": draw(_words) + "secret"})
        for secret in draw(st.lists(_secret, max_size=3)):
            SubElement(element, "value").text = secret
        return element
    for child in draw(st.lists(_trees(depth - 1), max_size=3)) if depth else ():
        child.tail = draw(_secret if kind == "text" or PASSWORD in element.attrib else _words)
        element.append(child)
    return element


@given(_trees())
def test_no_tree_gives_its_secrets_away_nor_changes_elsewhere(tree: Element) -> None:
    before = deepcopy(tree)
    clean = redacted(tree)
    assert _same(tree, before)
    assert S not in _written(clean)
    for was, is_ in zip(tree.iter(), clean.iter(), strict=True):
        assert was.tag == is_.tag
        assert was.keys() == is_.keys()
        for old, new in zip(_texts(was), _texts(is_), strict=True):
            assert old == new or (S in (old or "") and new in {REDACTED, None})


def _texts(element: Element) -> Iterator[str | None]:
    yield element.text
    yield element.tail
    yield from element.attrib.values()


def _same(first: Element, other: Element) -> bool:
    return [(it.tag, *_texts(it)) for it in first.iter()] == [
        (it.tag, *_texts(it)) for it in other.iter()
    ]


def test_secrets_in_fields_within_fields_cost_no_more_than_side_by_side() -> None:
    def cost(xml: str) -> float:
        element = _read(xml)
        began = process_time()
        assert S not in _written(redacted(element))
        return process_time() - began

    opening, value, levels = "<field var='secret'>", f"<value>{S}</value>", 120
    flat = f"<x>{(opening + '</field>') * levels}{opening}{value * 5_000}</field></x>"
    nested = f"<x>{opening * levels}{value * 5_000}{'</field>' * levels}</x>"
    assert min(cost(nested) for _ in range(3)) < 5 * min(cost(flat) for _ in range(3))
