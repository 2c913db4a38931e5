"""Asking an address what it is: its identities and features, its software, its uptime.

XEP-0030 with the forms of XEP-0128, XEP-0092 and XEP-0012: the payloads, what their answers say,
and the walk that asks for all of it.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from bridge.xmpp.description import Description, Field, Identity, Software, unique, whole_number
from bridge.xmpp.stanzas import DATA_FORMS, DISCO_INFO, StanzaError

if TYPE_CHECKING:
    from bridge.xmpp.connection import Connection

VERSION = "jabber:iq:version"
LAST = "jabber:iq:last"

ANSWER_SECONDS = 10.0
"""For each answer: two one after another stay far below the minute that agents give a call."""


@dataclass(frozen=True)
class Unanswered:
    """One question that was not answered, or answered with an error."""

    question: str
    """The namespace that was asked."""
    error: StanzaError | None
    """None: nothing came."""


@dataclass(frozen=True)
class Information:
    """All that an address told of itself."""

    description: Description
    software: Software | None
    uptime_seconds: int | None
    unanswered: tuple[Unanswered, ...]


async def inform(
    connection: "Connection",
    address: str,
    *,
    is_server: bool,
    patience: float = ANSWER_SECONDS,
) -> Information:
    """Ask `address` (prepared) for all of it, each part within `patience` seconds.

    A server is asked for everything, others for what they announce; uptime is a server's alone,
    since a client's XEP-0012 tells how long its user is idle. Raises `StanzaRefusedError` where
    even disco#info is refused, `ConnectionFailedError` when the connection ends; any other
    refusal, and a silence, are told in the result.
    """
    from bridge.xmpp.inquiries import StanzaRefusedError

    async def ask(namespace: str) -> Element | Unanswered:
        try:
            async with asyncio.timeout(patience):
                return await connection.request("get", address, Element(f"{{{namespace}}}query"))
        except TimeoutError:
            return Unanswered(namespace, None)
        except StanzaRefusedError as refused:
            if namespace == DISCO_INFO:
                raise
            return Unanswered(namespace, refused.error)

    answers = {DISCO_INFO: await ask(DISCO_INFO)}
    description = description_in(answers[DISCO_INFO])
    wanted = [
        one
        for one in (VERSION, LAST)
        if (is_server or one in description.features) and (one == VERSION or "@" not in address)
    ]
    told = await asyncio.gather(*(ask(one) for one in wanted))
    answers |= dict(zip(wanted, told, strict=True))
    return Information(
        description,
        software_in(answers.get(VERSION)),
        seconds_in(answers.get(LAST)),
        tuple(one for one in answers.values() if isinstance(one, Unanswered)),
    )


def info_query() -> Element:
    """The payload that asks what an address is and can do (XEP-0030, section 3.1)."""
    return Element(f"{{{DISCO_INFO}}}query")


def features_in(iq: Element) -> frozenset[str]:
    """Return the features that the answer names."""
    return frozenset(description_in(iq).features)


def description_in(iq: Element | Unanswered) -> Description:
    """Return what the answer says; what is not of the standard in it is passed over."""
    query = iq.find(f"{{{DISCO_INFO}}}query") if isinstance(iq, Element) else None
    if query is None:
        return Description()
    return Description(
        identities=tuple(
            Identity(one.get("category", ""), one.get("type", ""), one.get("name") or None)
            for one in query.iterfind(f"{{{DISCO_INFO}}}identity")
        ),
        features=unique(one.get("var", "") for one in query.iterfind(f"{{{DISCO_INFO}}}feature")),
        fields=tuple(
            field
            for form in query.iterfind(f"{{{DATA_FORMS}}}x")
            if form.get("type") == "result"
            for field in _fields(form)
        ),
    )


def software_in(iq: Element | Unanswered | None) -> Software | None:
    """Return what the answer to a version query says; None if it says nothing."""
    if not isinstance(iq, Element):
        return None
    name, version, os = (
        iq.findtext(f"{{{VERSION}}}query/{{{VERSION}}}{part}") or None
        for part in ("name", "version", "os")
    )
    return Software(name, version, os) if name or version or os else None


def seconds_in(iq: Element | Unanswered | None) -> int | None:
    """Return the seconds that the answer of a server says it is up (XEP-0012, section 4)."""
    query = iq.find(f"{{{LAST}}}query") if isinstance(iq, Element) else None
    return None if query is None else whole_number(query.get("seconds"))


def _fields(form: Element) -> Iterator[Field]:
    fields = {
        name: tuple(value.text or "" for value in one.iterfind(f"{{{DATA_FORMS}}}value"))
        for one in form.iterfind(f"{{{DATA_FORMS}}}field")
        if (name := one.get("var"))
    }
    kind = "".join(fields.pop("FORM_TYPE", ())[:1])
    for name, values in fields.items():
        yield Field(kind, name, values)
