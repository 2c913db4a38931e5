"""The names in stanzas: namespaces, tags, addresses, conditions of errors, status codes. Pure.

Tags are written as ElementTree writes them: `{namespace}local`. In the stanzas of a log
(`bridge.capture`) the namespace of clients is left out of the tags.
"""

import re
from dataclasses import dataclass
from xml.etree.ElementTree import Element

XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"
"""The namespace of `xml:lang`; its prefix is always declared (Namespaces in XML 1.0, section 3)."""

CLIENT = "jabber:client"
COMPONENT = "jabber:component:accept"
SERVER = "jabber:server"
STREAMS = "http://etherx.jabber.org/streams"
STREAM_ERRORS = "urn:ietf:params:xml:ns:xmpp-streams"
STANZA_ERRORS = "urn:ietf:params:xml:ns:xmpp-stanzas"
TLS = "urn:ietf:params:xml:ns:xmpp-tls"
COMPRESS = "http://jabber.org/protocol/compress"
SASL = "urn:ietf:params:xml:ns:xmpp-sasl"
SASL2 = "urn:xmpp:sasl:2"
SASL_CB = "urn:xmpp:sasl-cb:0"
BIND = "urn:ietf:params:xml:ns:xmpp-bind"
BIND2 = "urn:xmpp:bind:0"
SM = "urn:xmpp:sm:3"
MUC = "http://jabber.org/protocol/muc"
MUC_USER = "http://jabber.org/protocol/muc#user"
MUC_OWNER = "http://jabber.org/protocol/muc#owner"
MUC_ADMIN = "http://jabber.org/protocol/muc#admin"
DATA_FORMS = "jabber:x:data"
ROSTER = "jabber:iq:roster"
DELAY = "urn:xmpp:delay"
FORMER_DELAY = "jabber:x:delay"
STANZA_ID = "urn:xmpp:sid:0"
PING = "urn:xmpp:ping"
MAM = "urn:xmpp:mam:2"
DISCO_INFO = "http://jabber.org/protocol/disco#info"
DISCO_ITEMS = "http://jabber.org/protocol/disco#items"
REACTIONS = "urn:xmpp:reactions:0"
RETRACT = "urn:xmpp:message-retract:1"
FASTEN = "urn:xmpp:fasten:0"

MESSAGE, PRESENCE, IQ = (f"{{{CLIENT}}}{name}" for name in ("message", "presence", "iq"))
"""The tags of stanzas."""

STANZAS = frozenset((MESSAGE, PRESENCE, IQ))
"""The stanzas that stream management counts (XEP-0198, section 4)."""

BODY, SUBJECT, THREAD = (f"{{{CLIENT}}}{name}" for name in ("body", "subject", "thread"))
"""The tags of a message's texts."""

HEADER, FEATURES, STREAM_ERROR = (
    f"{{{STREAMS}}}{name}" for name in ("stream", "features", "error")
)
"""The tags of a stream's header, of the server's offer, and of the error that ends a stream."""

ACK_REQUEST, ACK = f"{{{SM}}}r", f"{{{SM}}}a"
"""The tags of a request for acknowledgement, and of an acknowledgement (XEP-0198, section 4)."""

PINGED = f"{{{PING}}}ping"
"""The tag of a ping (XEP-0199)."""

LANGUAGE = f"{{{XML_NAMESPACE}}}lang"
"""The attribute `xml:lang`."""

JOIN = f"{{{MUC}}}x"
"""The tag of the element by which a client asks a room to let it in (XEP-0045, section 7.2)."""

EXTENSION = f"{{{MUC_USER}}}x"
"""The tag of the element that a room adds to a stanza (XEP-0045, section 16.5.2)."""

ITEM = f"{{{MUC_USER}}}item"
"""The tag of the element in a room's extension that describes an occupant."""

STAMP, FORMER_STAMP = f"{{{DELAY}}}delay", f"{{{FORMER_DELAY}}}x"
"""The tags of a delay, and of a delay by XEP-0091, whose stamps are in UTC without a zone."""

CAPTCHA = "{urn:xmpp:captcha}captcha"
REPLACE = "{urn:xmpp:message-correct:0}replace"
"""The tags of a CAPTCHA (XEP-0158), and of the mark of a message that corrects a former message
(XEP-0308)."""

MAX_JID_CHARACTERS = 3_071
"""The longest JID (RFC 7622, section 3.1)."""

CONDITIONS = frozenset(
    (  # noqa: SIM905 - as a list it would take fifty lines
        "aborted account-disabled bad-format bad-namespace-prefix bad-request conflict "
        "connection-timeout credentials-expired encryption-required feature-not-implemented "
        "forbidden gone host-gone host-unknown improper-addressing incorrect-encoding "
        "internal-server-error invalid-authzid invalid-from invalid-mechanism invalid-namespace "
        "invalid-xml item-not-found jid-malformed malformed-request mechanism-too-weak "
        "not-acceptable not-allowed not-authorized not-well-formed policy-violation "
        "recipient-unavailable redirect registration-required remote-connection-failed "
        "remote-server-not-found remote-server-timeout reset resource-constraint restricted-xml "
        "see-other-host service-unavailable subscription-required system-shutdown "
        "temporary-auth-failure undefined-condition unexpected-request unsupported-encoding "
        "unsupported-feature unsupported-stanza-type unsupported-version"
    ).split()
)
"""The conditions of RFC 6120, sections 4.9.3, 6.5 and 8.3.3. Any other name is made up, and counts
as `undefined-condition`."""

_OF_CONDITIONS = re.compile("urn:ietf:params:xml:ns:xmpp-(?:streams|sasl|stanzas)")
"""The namespaces of the conditions. A server may also write a condition in the namespace of the
error itself."""

_OF_CODES = {
    "302": "redirect",
    "400": "bad-request",
    "401": "not-authorized",
    "403": "forbidden",
    "404": "item-not-found",
    "405": "not-allowed",
    "406": "not-acceptable",
    "407": "registration-required",
    "408": "remote-server-timeout",
    "409": "conflict",
    "500": "internal-server-error",
    "501": "feature-not-implemented",
    "502": "service-unavailable",
    "503": "service-unavailable",
    "504": "remote-server-timeout",
}
"""The conditions that the codes of former servers stand for (XEP-0086, section 3)."""

_STATUS_CODE = re.compile("[0-9]{3}")
"""A status code as XEP-0045, section 16.6, writes it."""


@dataclass(frozen=True)
class StanzaError:
    """What an `<error/>` says (RFC 6120, section 8.3)."""

    condition: str
    text: str | None = None
    venue: str | None = None
    """The new address, with the condition `gone`."""
    by: str | None = None
    """The entity that made the error, if the error names it (RFC 6120, section 8.3.1)."""


def split(tag: str) -> tuple[str, str]:
    """Return the namespace of a tag, or of an attribute's name, and its local part."""
    namespace, _, name = tag.rpartition("}")
    return namespace[1:], name


def local(tag: str) -> str:
    """Return the name of an element without its namespace."""
    return tag.rpartition("}")[2]


def bare(jid: str) -> str:
    """Return a JID without its resource; the rest stays as it is written."""
    return jid.partition("/")[0]


def lower_bare(jid: str) -> str:
    """Return a JID without its resource, in lower case, to compare addresses in a log.

    The addresses in a log are as a client wrote them. slixmpp prepares the bridge's addresses, but
    we read logs without slixmpp. So this differs from `bare`: a prepared JID has capitals in
    scripts such as Cherokee, and in lower case it would be another address.
    """
    return jid.partition("/")[0].lower()


def domain_of(jid: str) -> str:
    """Return the domain of a JID."""
    return bare(jid).rpartition("@")[2]


def codes_of(stanza: Element) -> frozenset[int]:
    """Return the status codes that a room put into a stanza (XEP-0045, section 16.6)."""
    extension = stanza.find(EXTENSION)
    return frozenset(
        int(code)
        for status in (() if extension is None else extension.iterfind(f"{{{MUC_USER}}}status"))
        if _STATUS_CODE.fullmatch(code := status.get("code", ""))
    )


def is_stamped(stanza: Element) -> bool:
    """Whether a message has a delay (XEP-0203), from any entity."""
    return stanza.find(STAMP) is not None or stanza.find(FORMER_STAMP) is not None


def error_of(stanza: Element) -> StanzaError:
    """Return the `<error/>` in `stanza`; `undefined-condition` if the stanza has none.

    Some gateways put it into what they repeat of the request.
    """
    error = stanza.find(stanza.tag.removesuffix(local(stanza.tag)) + "error")
    error = error if error is not None else stanza.find(".//{*}error")
    if error is None:
        return StanzaError("undefined-condition")
    condition, text = condition_of(error)
    venue = error.findtext(f"{{{STANZA_ERRORS}}}gone") if condition == "gone" else None
    by = error.get("by", "")[:MAX_JID_CHARACTERS]
    return StanzaError(condition, text, venue or None, by or None)


def condition_of(error: Element) -> tuple[str, str | None]:
    """Return the condition and the text of an error of a stanza, a stream or SASL.

    The text may be the host to go to. RFC 3920 wrote `xml-not-well-formed` for `not-well-formed`,
    and the servers before it put their text into the error itself; WhatsApp's has the condition as
    the attribute `text`. Some loggers leave namespaces out. Without a condition, a code tells it,
    or the text is the name of what the error has instead.
    """
    own, condition, text, host, other = split(error.tag)[0], "", None, None, None
    for child in error:
        namespace, name = split(child.tag)
        name = name.removeprefix("xml-")
        if namespace not in {own, ""} and not _OF_CONDITIONS.fullmatch(namespace):
            continue
        if name == "text":
            text = text or (child.text or "").strip()
        elif name in CONDITIONS and not condition:
            condition = name
            host = child.text if name == "see-other-host" else None
        else:
            other = other or name
    alone = error.get("text", "") or ("" if len(error) else (error.text or "").strip())
    if not condition and alone in CONDITIONS:
        condition, alone = alone, ""
    condition = condition or _OF_CODES.get(error.get("code", ""), "")
    text = text or host or alone or (None if condition else other)
    return condition or "undefined-condition", text or None
