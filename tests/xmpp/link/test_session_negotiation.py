import asyncio
from xml.etree.ElementTree import Element

import pytest

from bridge.xmpp.link.session import Negotiation, UnexpectedElementError
from bridge.xmpp.link.stanzas import CLIENT, SM

ENABLED = f"{{{SM}}}enabled"
MESSAGE, PRESENCE, IQ = (f"{{{CLIENT}}}{name}" for name in ("message", "presence", "iq"))


async def wait_for(answer: "asyncio.Future[Element]") -> Element:
    return await answer


def begun() -> Negotiation:
    return Negotiation(lambda element: None, wait_for)


async def test_stanzas_before_an_answer_are_kept_in_order() -> None:
    talk = begun()
    for tag in (MESSAGE, PRESENCE, IQ, ENABLED, MESSAGE):
        talk.receive(Element(tag))
    assert (await talk.next((ENABLED,), among_stanzas=True)).tag == ENABLED
    assert [one.tag for one in talk.early] == [MESSAGE, PRESENCE, IQ]
    assert [one.tag for one in talk.end()] == [MESSAGE]


async def test_what_is_no_stanza_is_still_unexpected() -> None:
    talk = begun()
    talk.receive(Element("{urn:nobody}nonsense"))
    with pytest.raises(UnexpectedElementError, match="nonsense"):
        await talk.next((ENABLED,), among_stanzas=True)


async def test_before_a_session_is_begun_a_stanza_is_unexpected() -> None:
    talk = begun()
    talk.receive(Element(MESSAGE))
    with pytest.raises(UnexpectedElementError, match="message"):
        await talk.next((ENABLED,))
