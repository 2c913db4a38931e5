"""What a server offers on a stream: the features before the login and after it."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple
from xml.etree.ElementTree import Element

from bridge.text import quoted
from bridge.wire.names import BIND2, SASL, SASL2, SASL_CB
from bridge.xmpp.link.stanzas import whole_number

FAST = "urn:xmpp:fast:0"
LIMITS = "urn:xmpp:stream-limits:0"

MAX_NAMES = 20
"""Most names of one kind that we read; servers offer up to ten mechanisms."""

MAX_NAME_CHARACTERS = 60
"""Most characters of a name; a mechanism's name has at most 20 (RFC 4422, section 3.1)."""


class Offer(NamedTuple):
    """What the server offers. Names are as the server writes them, but cut."""

    mechanisms: tuple[str, ...] = ()
    """The SASL mechanisms (RFC 6120, section 6.4.1)."""
    channel_bindings: tuple[str, ...] = ()
    """The types of channel binding (XEP-0440)."""
    sasl2: tuple[str, ...] = ()
    """The mechanisms of SASL2 (XEP-0388), which the bridge does not use."""
    bind2: bool = False
    """Whether a session can begin within SASL2 (XEP-0386)."""
    fast: tuple[str, ...] = ()
    """The mechanisms of logins by token (XEP-0484)."""
    max_bytes: int | None = None
    """The longest stanza that the server takes from us, in bytes (XEP-0478)."""
    idle_seconds: int | None = None
    """Seconds of silence from us after which the server may end the stream (XEP-0478)."""

    @property
    def limits(self) -> str:
        """A clause on the limits of the stream; empty if the server has named none."""
        most = f"{self.max_bytes:,} bytes a stanza" if self.max_bytes else ""
        idle = f"{self.idle_seconds:,} s of silence" if self.idle_seconds else ""
        return " and ".join(filter(None, (most, idle)))

    @property
    def unused(self) -> str:
        """A clause on SASL2 and its companions; empty if the server offers no SASL2."""
        if not self.sasl2:
            return ""
        fast = f", FAST {quoted(', '.join(self.fast))}" if self.fast else ""
        return f"SASL2 {quoted(', '.join(self.sasl2))}{', Bind 2' if self.bind2 else ''}{fast}"


def offer_in(features: Element, before: Offer = Offer()) -> Offer:  # noqa: B008 - it is frozen
    """Return the offer of these features together with the offer `before` on this connection."""
    inline = f"{{{SASL2}}}authentication/{{{SASL2}}}inline"
    binding = f"{{{SASL_CB}}}channel-binding"
    types = features.iterfind(f"{{{SASL_CB}}}sasl-channel-binding/{binding}")
    limits = f"{{{LIMITS}}}limits/{{{LIMITS}}}"
    return Offer(
        _mechanisms(features, f"{{{SASL}}}mechanisms", SASL) or before.mechanisms,
        _bounded(element.get("type", "") for element in types) or before.channel_bindings,
        _mechanisms(features, f"{{{SASL2}}}authentication", SASL2) or before.sasl2,
        before.bind2 or features.find(f"{inline}/{{{BIND2}}}bind") is not None,
        _mechanisms(features, f"{inline}/{{{FAST}}}fast", FAST) or before.fast,
        whole_number(features.findtext(f"{limits}max-bytes")) or before.max_bytes,
        whole_number(features.findtext(f"{limits}idle-seconds")) or before.idle_seconds,
    )


def _mechanisms(features: Element, path: str, namespace: str) -> tuple[str, ...]:
    mechanisms = features.iterfind(f"{path}/{{{namespace}}}mechanism")
    return _bounded((element.text or "").strip() for element in mechanisms)


def _bounded(names: Iterator[str]) -> tuple[str, ...]:
    known = dict.fromkeys(name[:MAX_NAME_CHARACTERS] for name in names if name)
    return tuple(islice(known, MAX_NAMES))
