"""Service discovery: asks an address for its identities, features, software, uptime and rooms.

The standards are XEP-0030 with the forms of XEP-0128, XEP-0092 and XEP-0012.
"""

import asyncio
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple
from xml.etree.ElementTree import Element

from bridge.wire import names
from bridge.wire.meaning import UNREACHED
from bridge.xmpp.link import stanzas
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.model.faults import quoted_text

VERSION = "jabber:iq:version"
LAST = "jabber:iq:last"

ANSWER_SECONDS = 10.0
"""Seconds for all answers together. Our server may first have to find another server and connect to
it."""

GONE_SECONDS = 5.0
"""Seconds for the answer of a service that may be gone. We promise users to report that within 20
s."""

ROOM_INFO = "http://jabber.org/protocol/muc#roominfo"
"""The type of the form that has a room's configuration (XEP-0045, section 16.5)."""

ARCHIVE = "urn:xmpp:mam:"
"""The prefix of an archive's features, in every version (XEP-0313)."""

_QUERIES = {
    names.DISCO_INFO: "what it is and can do (XEP-0030)",
    VERSION: "its software (XEP-0092)",
    LAST: "its uptime (XEP-0012)",
    names.DISCO_ITEMS: "its rooms (XEP-0030)",
}


@dataclass(frozen=True)
class Identity:
    """An identity (XEP-0030, section 3.1)."""

    category: str
    type: str
    name: str | None = None


@dataclass(frozen=True)
class Field:
    """One field of a form that extends the answer (XEP-0128)."""

    form: str
    """The form's `FORM_TYPE`; empty if the form has none."""
    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Software:
    """The software of an address (XEP-0092)."""

    name: str | None
    version: str | None
    os: str | None


@dataclass(frozen=True)
class Item:
    """An item that an address lists (XEP-0030, section 4.1), such as a room of a room service."""

    jid: str
    """The address of the item, prepared."""
    name: str | None


class Description(NamedTuple):
    """One answer to disco#info. It has each feature once, in the order of the answer."""

    identities: tuple[Identity, ...] = ()
    features: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()

    @property
    def is_room(self) -> bool:
        """Whether this is a room or a room service: their identities have the same category."""
        return any(identity.category == "conference" for identity in self.identities)

    @property
    def is_gateway(self) -> bool:
        """Whether this leads to another network, such as IRC."""
        return any(identity.category == "gateway" for identity in self.identities)

    @property
    def has_rooms(self) -> bool:
        """Whether this is a room service, provided that its address is a domain."""
        return self.is_room and names.MUC in self.features

    @property
    def is_program(self) -> bool | None:
        """Whether this is a program rather than a person's client; None if it does not say."""
        kinds = {(it.category, it.type) for it in self.identities}
        if any(category == "client" and type_ != "bot" for category, type_ in kinds):
            return False  # libraries may add `bot` to the clients of people, too
        is_bot = any(category in {"client", "automation", "component"} for category, _ in kinds)
        return True if is_bot else None

    @property
    def is_bridge(self) -> bool:
        """Whether this declares itself a debug bridge, as we do."""
        return any(identity.name == stanzas.BRIDGE for identity in self.identities)

    def either(self, yes: str, no: str) -> bool | None:
        """Return True for the feature `yes`, False for `no`; None if there are both or neither."""
        return None if (yes in self.features) == (no in self.features) else yes in self.features


class Unanswered(NamedTuple):
    """A query that was not answered, or answered with an error."""

    question: str
    """The namespace of the query."""
    error: names.StanzaError | None
    """The error in the answer; None if no answer came in time."""

    def __str__(self) -> str:
        question = _QUERIES[self.question]
        if self.error is None:
            return f"Asked for {question}, it did not answer within {ANSWER_SECONDS:g} s."
        refusal = f"{self.error.condition}.{quoted_text(self.error.text)}"
        return f"Asked for {question}, it refused with {refusal}"


class Information(NamedTuple):
    """What an address answered to all queries."""

    description: Description
    software: Software | None
    uptime_seconds: int | None
    room: dict[str, object] | None
    """The room's configuration; None if the address is no room."""
    rooms: tuple[Item, ...]
    """The rooms that a room service lists."""
    unanswered: tuple[Unanswered, ...]

    @property
    def answered(self) -> bool:
        """Whether disco#info was answered."""
        return all(query.question != names.DISCO_INFO for query in self.unanswered)


async def discover(connection: Connection, address: str, *, is_server: bool) -> Information:
    """Query `address` (prepared) for everything, in at most `ANSWER_SECONDS`.

    A server is asked for its software and uptime in any case, other addresses only if they announce
    them. Only domains are asked for their uptime: a client would answer how long its user has been
    idle (XEP-0012). Only room services are asked for their rooms. Raises `IqError` if the address
    refuses disco#info, and `ConnectionFailedError` when the connection ends. In the result, any
    other error, and a timeout, is an `Unanswered`.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + ANSWER_SECONDS

    async def ask_all(*namespaces: str) -> dict[str, Element | Unanswered]:
        asking = (ask(connection, address, name, deadline - loop.time()) for name in namespaces)
        return dict(zip(namespaces, await asyncio.gather(*asking), strict=True))

    answers = await ask_all(names.DISCO_INFO, *((VERSION, LAST) if is_server else ()))
    first = answers[names.DISCO_INFO]
    if isinstance(first, Unanswered) and first.error is not None:
        raise stanzas.IqError(first.error)
    description = description_in(first)
    further = [names.DISCO_ITEMS] if description.has_rooms and "@" not in address else []
    if not is_server:
        offered = (VERSION,) if "@" in address else (VERSION, LAST)
        further += [name for name in offered if name in description.features]
    answers |= await ask_all(*further)
    is_room = description.is_room and "@" in address and "/" not in address
    return Information(
        description,
        software_in(answers.get(VERSION)),
        seconds_in(answers.get(LAST)),
        room_configuration(description) if is_room else None,
        items_in(answers.get(names.DISCO_ITEMS)),
        tuple(answer for answer in answers.values() if isinstance(answer, Unanswered)),
    )


async def is_gone(
    connection: Connection, service: str, error: names.StanzaError, seconds: float = GONE_SECONDS
) -> bool:
    """Whether a room's service is gone, after an error from an address of that room.

    The error's address proves nothing: Prosody, which answers in place of a service that is gone,
    copies the address. If the error's `by` names a domain, that domain made the error. Otherwise we
    ask the service what it is. If it is gone, the answer is an error, or names no conference. If no
    answer comes within `seconds`, the service counts as gone only if the error said that its server
    was not reached. Raises `ConnectionFailedError`.
    """
    if error.condition not in UNREACHED:
        return False
    service = prepared(service) or service
    maker = prepared(error.by or "") or ""
    if names.domain_of(maker) == service:
        return False
    is_about_server = error.condition != "service-unavailable"
    if maker and "@" not in maker and not is_about_server:
        return True
    answer = await ask(connection, service, names.DISCO_INFO, seconds)
    if isinstance(answer, Element):
        description = description_in(answer)
        return not (description.is_room or names.MUC in description.features)
    if answer.error is None:
        return is_about_server
    return answer.error.condition in UNREACHED | {"item-not-found", "recipient-unavailable", "gone"}


def info_query() -> Element:
    """Return the payload that asks what an address is and can do (XEP-0030, section 3.1)."""
    return Element(f"{{{names.DISCO_INFO}}}query")


def info_request(address: str) -> Element:
    """Return the request that asks an address what it is and can do."""
    return stanzas.iq_request("get", address, secrets.token_hex(8), info_query())


async def ask(
    connection: Connection, address: str, namespace: str, seconds: float
) -> Element | Unanswered:
    """Send a query to an address and wait for its answer; raises `ConnectionFailedError`."""
    try:
        async with asyncio.timeout(seconds):
            return await connection.request("get", address, Element(f"{{{namespace}}}query"))
    except TimeoutError:
        return Unanswered(namespace, None)
    except stanzas.IqError as refused:
        return Unanswered(namespace, refused.error)


def description_in(iq: Element | Unanswered) -> Description:
    """Return the description in an answer; elements that XEP-0030 does not define are ignored."""
    query = _query(iq, names.DISCO_INFO)
    features = (feature.get("var") for feature in query.iterfind(f"{{{names.DISCO_INFO}}}feature"))
    return Description(
        identities=tuple(
            Identity(item.get("category", ""), item.get("type", ""), item.get("name") or None)
            for item in query.iterfind(f"{{{names.DISCO_INFO}}}identity")
        ),
        features=tuple(dict.fromkeys(name for name in features if name)),
        fields=tuple(
            field
            for form in query.iterfind(f"{{{names.DATA_FORMS}}}x[@type='result']")
            for field in _fields(form)
        ),
    )


def software_in(iq: Element | Unanswered | None) -> Software | None:
    """Return the software in the answer to a version query; None if there is none."""
    query, parts = _query(iq, VERSION), ("name", "version", "os")
    name, version, os = (query.findtext(f"{{{VERSION}}}{part}") or None for part in parts)
    return Software(name, version, os) if name or version or os else None


def items_in(iq: Element | Unanswered | None) -> tuple[Item, ...]:
    """Return the items in an answer to disco#items, in order; leave out items without a JID."""
    return tuple(
        Item(jid, item.get("name") or None)
        for item in _query(iq, names.DISCO_ITEMS).iterfind(f"{{{names.DISCO_ITEMS}}}item")
        if (jid := prepared(item.get("jid", "")))
    )


def seconds_in(iq: Element | Unanswered | None) -> int | None:
    """Return the uptime in seconds that a server answers (XEP-0012, section 5)."""
    return stanzas.whole_number(_query(iq, LAST).get("seconds"))


def _query(iq: Element | Unanswered | None, namespace: str) -> Element:
    """Return the payload of an answer; an empty element if the answer has none."""
    query = iq.find(f"{{{namespace}}}query") if isinstance(iq, Element) else None
    return Element("query") if query is None else query


def _fields(form: Element) -> Iterator[Field]:
    fields = {
        name: tuple(value.text or "" for value in field.iterfind(f"{{{names.DATA_FORMS}}}value"))
        for field in form.iterfind(f"{{{names.DATA_FORMS}}}field")
        if (name := field.get("var"))
    }
    kind = "".join(fields.pop("FORM_TYPE", ())[:1])
    for name, values in fields.items():
        yield Field(kind, name, values)


def room_configuration(description: Description) -> dict[str, object]:
    """Return the configuration in a room's features and form (XEP-0045, section 6.4).

    A value that the room does not give is None. `archived` says whether it keeps an archive
    (XEP-0313), and `logs` is the address where its logs can be read.
    """
    either = description.either
    form = {
        field.name: field.values[0] or None
        for field in description.fields
        if field.form == ROOM_INFO and field.values
    }
    hidden = either("muc_semianonymous", "muc_nonanonymous")
    names = (
        identity.name
        for identity in description.identities
        if identity.category == "conference" and identity.name
    )
    return {
        "public": either("muc_public", "muc_hidden"),
        "moderated": either("muc_moderated", "muc_unmoderated"),
        "members_only": either("muc_membersonly", "muc_open"),
        "persistent": either("muc_persistent", "muc_temporary"),
        "password_protected": either("muc_passwordprotected", "muc_unsecured"),
        "anonymity": None if hidden is None else "semi-anonymous" if hidden else "non-anonymous",
        "archived": any(feature.startswith(ARCHIVE) for feature in description.features),
        "logs": form.get("muc#roominfo_logs"),
        "title": form.get("muc#roomconfig_roomname") or next(names, None),
        "description": form.get("muc#roominfo_description") or form.get("muc#roomconfig_roomdesc"),
        "language": form.get("muc#roominfo_lang") or form.get("muc#roomconfig_lang"),
        "occupants": stanzas.whole_number(form.get("muc#roominfo_occupants")),
    }
