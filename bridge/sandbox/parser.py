"""Bytes of a client's stream to whole stanzas, refusing what RFC 6120 section 11 forbids."""

from dataclasses import dataclass
from xml.etree.ElementTree import Element
from xml.parsers import expat

STANZA_LIMIT = 262_144
"""Bytes of one stanza, give or take the tag before or after it; Prosody's and ejabberd's too."""

DEPTH_LIMIT = 64
"""Elements inside one another; what writes them again calls itself for each."""


@dataclass(frozen=True)
class StreamOpened:
    """The client's stream header (RFC 6120 section 4.7)."""

    tag: str
    attributes: dict[str, str]


@dataclass(frozen=True)
class StreamClosed:
    """The client has said all it has to say."""


@dataclass(frozen=True)
class StreamFault:
    """The client's fault; nothing comes after it. `condition` is of RFC 6120 section 4.9.3."""

    condition: str


Parsed = StreamOpened | Element | StreamClosed | StreamFault
"""What a client's bytes can turn out to be."""


class _RefusalError(Exception):
    """Carries a condition out of expat, whose handlers can stop it only by raising."""


class StreamParser:
    """One stream, from its header to its end; a stream that restarts takes a new parser."""

    def __init__(self) -> None:
        self._expat = expat.ParserCreate("UTF-8", "}")
        # Text comes in one piece, and not line by line: putting lines together would take time
        # that grows with the square of their number.
        self._expat.buffer_text = True
        self._expat.buffer_size = STANZA_LIMIT
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._text
        self._expat.StartDoctypeDeclHandler = self._restricted
        self._expat.CommentHandler = self._restricted
        self._expat.ProcessingInstructionHandler = self._restricted
        # Newer expat waits for more before it looks again at a token that came in pieces: on a
        # stream, where the peer waits for the answer first, that is for ever.
        prompt = getattr(self._expat, "SetReparseDeferralEnabled", None)
        if prompt is not None:
            prompt(False)
        self._parsed: list[Parsed] = []
        self._open: list[Element] = []
        self._header_seen = False
        self._fed = 0
        self._boundary = 0
        """Where, in bytes, what is not yet complete begins."""

    def feed(self, data: bytes) -> list[Parsed]:
        """Take what came off the wire and give what has become complete."""
        self._parsed = []
        self._fed += len(data)
        try:
            self._expat.Parse(data, False)
            if self._fed - self._boundary > STANZA_LIMIT:
                self._parsed.append(StreamFault("policy-violation"))
        except _RefusalError as refusal:
            self._parsed.append(StreamFault(str(refusal)))
        except expat.ExpatError as error:
            undefined = error.code == expat.errors.codes[expat.errors.XML_ERROR_UNDEFINED_ENTITY]
            self._parsed.append(StreamFault("restricted-xml" if undefined else "not-well-formed"))
        return self._parsed

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = "{" + name if "}" in name else name
        named = {"{" + key if "}" in key else key: value for key, value in attributes.items()}
        if not self._header_seen:
            self._header_seen = True
            self._parsed.append(StreamOpened(tag, named))
            # The header itself is dropped: only what comes after it can grow.
            self._boundary = self._expat.CurrentByteIndex
            return
        if not self._open:
            self._boundary = self._expat.CurrentByteIndex
        elif len(self._open) >= DEPTH_LIMIT:
            raise _RefusalError("policy-violation")
        element = Element(tag, named)
        if self._open:
            self._open[-1].append(element)
        self._open.append(element)

    def _end(self, _: str) -> None:
        if not self._open:
            self._parsed.append(StreamClosed())
            return
        element = self._open.pop()
        if not self._open:
            if self._expat.CurrentByteIndex - self._boundary > STANZA_LIMIT:
                raise _RefusalError("policy-violation")
            self._boundary = self._expat.CurrentByteIndex
            self._parsed.append(element)

    def _text(self, text: str) -> None:
        if not self._open:
            # Between stanzas there is only whitespace that keeps a connection open.
            self._boundary = max(self._boundary, self._expat.CurrentByteIndex)
        elif len(self._open[-1]):
            last = self._open[-1][-1]
            last.tail = (last.tail or "") + text
        else:
            self._open[-1].text = (self._open[-1].text or "") + text

    def _restricted(self, *_: object) -> None:
        raise _RefusalError("restricted-xml")
