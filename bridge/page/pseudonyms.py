"""Replaces names of people and machines one for one, and what people say by its length. Pure.

Names are learned from the fields of events and the attributes of stanzas. They are then replaced
there and wherever else they occur: in subjects, reasons, sentences and titles. A stanza is
rebuilt element by element, so that a nickname such as `message` does not change its structure.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from bridge.text import one_line, searchable, unescaped, visible
from bridge.wire.names import local, lower_bare
from bridge.xmpp.link.trace import REDACTED

MAX_SPELLINGS = 200_000
"""Most spellings of names that are known. With more, texts are replaced by their length."""

NAMESPACES = (
    "jabber:",
    "urn:ietf:",
    "urn:xmpp:",
    "http://jabber.org/",
    "http://etherx.jabber.org/",
)
"""The beginnings of the standards' namespaces. Elements of other namespaces are left out, since
even the name of such an element may be private."""

WORDS = frozenset(
    (  # noqa: SIM905 - as a list it would take fifty lines
        "admin archive auth available away cancel chat config connection continue dnd error get "
        "groupchat headline history in join leave live member message moderator modify nick none "
        "normal out outcast owner participant probe result role set subject subscribe subscribed "
        "unavailable unknown unsubscribe unsubscribed visitor wait xa"
    ).split()
) | {REDACTED}
"""Values of attributes and fields that the standards define. They stay, except where a nickname
stands: a nickname may equal one."""

_PLAIN = re.compile(r"[-+]?[0-9]{1,10}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z?")
"""Matches a number or a time; both stay."""
_PRIORITY = re.compile("[-+]?[0-9]{1,3}")
"""Matches a short number. Between quotation marks it stays; a longer one may be a message."""
_MECHANISMS = re.compile(r"(?:(?:SCRAM-SHA-[0-9]+(?:-PLUS)?|PLAIN|EXTERNAL|ANONYMOUS)(?:, )?)+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.){0,1000})"')
"""Matches a stranger's words in a sentence of ours, as `bridge.text.quoted` writes them; they are
shorter than the bound. Without it, a text of nothing but quotation marks would take a minute."""
_ADDRESS = re.compile(
    r"""(?P<standard>https?://(?:etherx\.)?jabber\.org/\S*)
    | (?<![^\s"'<>&/@:;,])[^\s"'<>&/@:;,]+@[^\s"'<>&/@:;,]+(?:/[^\s"'<>]*[\w\ue001])?
    | (?<![\w.-])(?:[\w-]+\.)+(?:[^\W\d_]{2,}|xn--[\w-]+)(?![\w-])
    | (?<![\w.-])(?:[\w-]+\.)*\ue000[0-9]+\ue001(?:\.[\w-]+)*
    | (?<![\w.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![\w.])
    | (?<![\w:])(?:(?:[0-9A-Fa-f]{1,4}:){3,7}[0-9A-Fa-f]{0,4}|[0-9A-Fa-f:]*::[0-9A-Fa-f:]*)
    """,
    re.VERBOSE,
)
"""Matches what looks like a JID, a host name or an IP address, known or not. It may contain names
that were replaced before."""
_SCHEME = re.compile("(?:xmpps?|wss?|https?)://")
_PORT = re.compile(":[0-9]+$")
_WORD = re.compile(r"[^\W_]+")
_UNIT = re.compile(r"[^\W_]+|[^\w\s]|_")
_MARKS = "\ue000\ue001"
"""Characters for private use. A name that was replaced becomes a number between these two."""
_MARKED = re.compile(f"{_MARKS[0]}([0-9]+){_MARKS[1]}")

JIDS = frozenset({"from", "to", "jid", "by", "venue", "room", "service"})
"""The fields and attributes that hold a JID."""
NICKNAMES = frozenset({"sender", "newNickname", "actor", "nick", "moderatedBy", "author"})
"""The fields and attributes that hold a nickname; the actor or the moderator may be a JID."""
STRUCTURE = frozenset(
    {"kind", "direction", "phase", "condition", "tls", "sasl", "at", "delayedFrom", "meaning"}
)
"""The fields that hold our own words, or times."""
TEXTS = frozenset({"id", "node", "var", "subject", "status", "reason", "text"})
"""The attributes and elements whose text stays, with names replaced. Other texts are replaced by
their length."""


class Pseudonyms:
    """The pseudonyms of one page. If they are not `on`, its methods change nothing."""

    def __init__(self, *, on: bool) -> None:
        self.on = on
        self._given: dict[tuple[str, str], str] = {}
        """The pseudonym of each name. The key is the name's kind (`Nick`, `host`) and the name."""
        self._count = Counter[str]()
        self._rooms: set[str] = set()
        self._known: dict[str, tuple[Callable[[], str], bool]] = {}
        """How each spelling of a name is replaced, and whether it is an address."""
        self._shapes: dict[str, set[tuple[int, int]]] = {}
        """The spellings that have a word as their first, by that word in lower case. A spelling is
        a pair: the place of the word in it, and its length."""

    def learn(self, exact: Mapping[str, Any], room: str = "") -> None:
        """Know the names in the fields of an event, or in the attributes of an element."""
        if not self.on:
            return
        if room:
            self._rooms.add(lower_bare(room))
            self._learn_jid(room)
        for name, value in exact.items():
            if name in NICKNAMES and value and "@" not in value:
                self._know(value, partial(self.nickname, value))
            elif name in NICKNAMES or (name in JIDS and exact.get("kind") != "gap"):
                self._learn_jid(value)

    def learn_stanza(self, stanza: Element) -> None:
        """Know the names in the attributes of a stanza and of all that is in it."""
        if self.on:
            for element in stanza.iter():
                self.learn(element.attrib)
                if local(element.tag) == "jid" and element.text:
                    self._learn_jid(element.text)

    def learn_file(self, name: str) -> None:
        """Know the name of a file."""
        if self.on:
            self._know(name, partial(self.file, name), is_address=True)

    def nickname(self, name: str) -> str:
        """Return the pseudonym of a nickname, or of the JID that stands in its place."""
        if not self.on or not name:
            return name
        return self.jid(name) if "@" in name else self._of("Nick", name)

    def jid(self, jid: str) -> str:
        """Return a JID with the pseudonyms of its parts."""
        if not self.on or not jid:
            return jid
        scheme, address, slash, resource = _parts(jid)
        account, at, host = address.rpartition("@")
        port = _PORT.search(host) if host.count(":") == 1 else None
        made = scheme
        in_room = lower_bare(address) in self._rooms
        if at:
            made += f"{self._of('room' if in_room else 'user', account.casefold())}@"
        made += self._host(host[: port.start()]) + port[0] if port else self._host(host)
        made += slash
        if resource:
            made += self._of("Nick" if in_room or resource in self._known else "device", resource)
        return made

    def body(self, body: str) -> str:
        """Return what replaces the text of a message: its length."""
        return f"[{len(body)} characters]" if self.on and body else body

    def file(self, name: str) -> str:
        """Return the pseudonym of a file's name."""
        return self._of("file", name) if self.on and name else name

    def text(self, text: str, *, ours: bool = False) -> str:
        """Return a text in which names are replaced, and other quoted words by their length.

        A sentence of `ours` always quotes nicknames and names of accounts. So a word that equals
        one stays if it is not quoted.
        """
        if not self.on:
            return text
        if len(self._known) >= MAX_SPELLINGS:
            return self.body(text)
        text = normalize("NFC", text)
        if "%" in text:  # as in an address of the scheme `xmpp`
            text = visible(unquote(text))
        pieces, end = [], 0
        for match in _QUOTED.finditer(text):
            pieces += [self._replaced(text[end : match.start()], ours), f'"{self._quoted(match)}"']
            end = match.end()
        made = "".join([*pieces, self._replaced(text[end:], ours)])
        return self.body(text) if self._hides_name(made, ours) else made

    def _hides_name(self, text: str, ours: bool) -> bool:
        """Whether a reader sees a name in the text because some characters draw nothing."""
        seen = searchable(unescaped(text))
        without = self._known_marked(seen, lambda _name, _pseudonym: "", ours)
        return seen != text.casefold() and "".join(without) != seen

    def event(self, exact: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the exact form of an event without names and bodies."""
        if not self.on:
            return exact
        kept = {"gap": {"from", "to"}, "connection": {"text"}}.get(exact["kind"], set())
        if "condition" in exact:
            kept = set()
        return {
            name: value if name in kept else self._field(name, value)
            for name, value in exact.items()
        }

    def stanza(self, element: Element) -> Element:
        """Return a stanza without names and bodies."""
        if not self.on:
            return element
        namespace, name = element.tag[1:].rpartition("}")[0], local(element.tag)
        if namespace and not namespace.startswith(NAMESPACES):
            return Element("left-out")
        made = Element(element.tag)
        for key, value in element.items():
            made.set(key, self._value(local(key), value))
        if text := (element.text or "").strip():
            made.text = self._value(name, text)
        made.extend(self.stanza(child) for child in element)
        return made

    def _field(self, name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [self._field(name, item) for item in value]
        if not isinstance(value, str) or name in STRUCTURE:
            return value
        if name in NICKNAMES or name in JIDS:
            return self._value(name, value)
        if name in {"body", "reactions"}:
            return self.body(value)
        return value if value in WORDS and name not in TEXTS else self.text(value)

    def _value(self, name: str, value: str) -> str:
        """Return what replaces the value of the attribute, or the text of the element, `name`."""
        if name in NICKNAMES:
            return self.nickname(value)
        if name in JIDS:
            return self.jid(value)
        if name in TEXTS:
            return self.text(value)
        if name == "body":
            return self.body(value)
        if value in WORDS or _PLAIN.fullmatch(value) or _MECHANISMS.fullmatch(value):
            return value
        return self.body(value)

    def _host(self, host: str) -> str:
        return f"{self._of('host', _ascii(host))}.example"

    def _of(self, what: str, name: str) -> str:
        """Return the pseudonym of a name; the first name of its kind has the number 1."""
        if (what, name) not in self._given:
            self._count[what] += 1
            self._given[what, name] = f"{what}{self._count[what]}"
        return self._given[what, name]

    def _learn_jid(self, jid: str) -> None:
        _, address, _, resource = _parts(jid)
        account, _, host = address.rpartition("@")
        self._know(address, lambda: self.jid(address), is_address=True)
        self._know(jid, lambda: self.jid(jid), is_address=True)
        if account:
            kind = "room" if lower_bare(address) in self._rooms else "user"
            self._know(account, lambda: self._of(kind, account.casefold()))
        if resource and lower_bare(address) in self._rooms:
            self._know(resource, lambda: self.nickname(resource))
        for spelling in (host, _ascii(host), _unicode(host)):
            self._know(spelling, lambda: self._host(host), is_address=True)

    def _know(self, name: str, replace: Callable[[], str], *, is_address: bool = False) -> None:
        if not name or name in self._known or len(self._known) >= MAX_SPELLINGS:
            return
        self._known[name] = replace, is_address
        plain, decoded = visible(name), visible(unquote(name))
        as_json = json.dumps(plain, ensure_ascii=False)[1:-1]
        cases = {name, name.upper(), name.casefold()}
        for spelling in cases | {plain, decoded, one_line(name), as_json, normalize("NFC", name)}:
            self._known.setdefault(spelling, (replace, is_address))
            # A nickname may be a full stop. But a full stop in a sentence is no nickname.
            unit = _WORD.search(spelling) or (not spelling.isascii() and _UNIT.search(spelling))
            if unit:
                shape = unit.start(), len(spelling)
                self._shapes.setdefault(unit[0].casefold(), set()).add(shape)

    def _quoted(self, match: re.Match[str]) -> str:
        """Return what replaces quoted words: the pseudonym if they are a name, else the length."""
        try:
            words = json.loads(match[0].replace("…", ""), strict=False)
        except ValueError:
            words = match[1]
        if words in self._known:
            return self._known[words][0]()
        if _PRIORITY.fullmatch(words) or _MECHANISMS.fullmatch(words):
            return str(words)
        address = _ADDRESS.fullmatch(words)
        return self.jid(words) if address and not address["standard"] else self.body(words)

    def _replaced(self, text: str, ours: bool) -> str:
        made: list[tuple[str, str]] = []

        def marked(name: str, pseudonym: str) -> str:
            made.append((name, pseudonym))
            return f"{_MARKS[0]}{len(made) - 1}{_MARKS[1]}"

        def address(match: re.Match[str]) -> str:
            if match["standard"] or _MARKED.fullmatch(match[0]):
                return match[0]
            whole = _MARKED.sub(lambda number: made[int(number[1])][0], match[0])
            return marked(whole, self.jid(whole))

        text = text.translate({ord(mark): "?" for mark in _MARKS})
        text = "".join(self._known_marked(text, marked, ours))
        text = _ADDRESS.sub(address, text)
        return _MARKED.sub(lambda number: made[int(number[1])][1], text)

    def _known_marked(
        self, text: str, marked: Callable[[str, str], str], ours: bool
    ) -> Iterator[str]:
        """Yield the pieces of a text, with the longest known names in it replaced."""
        end = 0
        for unit in _UNIT.finditer(text):
            best: tuple[int, int, Callable[[], str]] | None = None
            for offset, length in self._shapes.get(unit[0].casefold(), ()):
                begin = unit.start() - offset
                after = begin + length
                spelling = text[max(begin, 0) : after]
                known = self._known.get(spelling) or self._known.get(spelling.casefold())
                ends_within = spelling[-1:].isalnum() and _UNIT.match(text, after)
                if (
                    known is not None
                    and begin >= end
                    and (known[1] or not ours)
                    and not (ends_within and ends_within[0][0].isalnum())
                    and (best is None or length > best[1] - best[0])
                ):
                    best = begin, after, known[0]
            if best is not None:
                yield text[end : best[0]]
                yield marked(text[best[0] : best[1]], best[2]())
                end = best[1]
        yield text[end:]


def _parts(jid: str) -> tuple[str, str, str, str]:
    """Return the scheme, the bare address, and the resource with the slash before it."""
    scheme = _SCHEME.match(jid)
    return scheme[0] if scheme else "", *jid[scheme.end() if scheme else 0 :].partition("/")


def _ascii(host: str) -> str:
    """Return a host name in ASCII (RFC 3490) and lower case; if it is none, in lower case only."""
    try:
        return host.encode("idna").decode().casefold()
    except UnicodeError:
        return host.casefold()


def _unicode(host: str) -> str:
    try:
        return host.encode().decode("idna")
    except UnicodeError:
        return host
