"""Replaces names of people and machines one for one, and what people say by its length. Pure.

Names are learned from the fields of events and the attributes of stanzas. They are then replaced
there and wherever else they occur: in subjects, reasons, sentences and titles. A stanza is
rebuilt element by element, so that a nickname such as `message` does not change its structure.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any
from unicodedata import category, normalize
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from bridge.text import HIDDEN_LETTERS, VARIATION_SELECTORS, visible
from bridge.wire.names import local, lower_bare
from bridge.xmpp.link.trace import REDACTED

MAX_NAMES = 50_000
"""Most names that are known. With more, texts are replaced by their length."""

NAMESPACES = (
    "jabber:",
    "urn:ietf:",
    "urn:xmpp:",
    "http://jabber.org/",
    "http://etherx.jabber.org/",
)
"""The beginnings of the standards' namespaces. Elements of other namespaces are left out, since
even the name of such an element may be private."""

_STANDARD = tuple(f"({namespace}" for namespace in NAMESPACES)
_FIELDS = (*NAMESPACES, "FORM_TYPE", "muc#", "pubsub#")
"""The beginnings of the names of fields and features that the standards define."""

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

NUMBERS = frozenset(
    (  # noqa: SIM905 - as WORDS
        "code count end h index length max maxchars maxstanzas priority seconds since size "
        "stamp start version"
    ).split()
)
"""The attributes and elements in which a number or a time stays; elsewhere it may be a name."""

IDS = frozenset(
    (  # noqa: SIM905 - as WORDS
        "after before first id last occupantId parent previd reactsTo reflects replaces "
        "replyTo retracts stanzaId thread"
    ).split()
)
"""The fields, attributes and elements that hold an id."""

ATTRIBUTES = NUMBERS | frozenset(
    (  # noqa: SIM905 - as WORDS
        "affiliation by category from hash id jid label lang mechanism name nick node parent "
        "previd role sid subscription to type uri var ver"
    ).split()
)
"""The names of attributes that the standards define. Others are left out."""

_PLAIN = re.compile(r"[-+]?[0-9.]{1,10}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z?")
"""Matches a number or a time."""
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
_UNIT = re.compile(
    r"""\\u\{[0-9a-f]{1,6}\}()                  # an escape, which draws nothing
    | [\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]  # scripts without blanks between words
    | [\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]
    | [^\W_]+
    | [^\x00-\x7f\w]                          # such as an emoji
    """,
    re.VERBOSE,
)
"""Matches a word of a text as `_folded` returns it, of which names consist."""

MAX_UNITS = 40
"""Most words that are compared with a name: nearly all names have fewer letters, and so fit even
where they are spelt out."""

HEAD = 4
"""Letters at the beginning of a name, by which most words are ruled out without comparing them."""

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
TEXTS = frozenset({"node", "subject", "status", "reason"})
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
        """What replaces each name, and whether the name is an address. The keys are the name as it
        is spelt, and its letters alone."""
        self._learned = set[str]()
        self._heads = set[str]()
        """The first letters of all names: one, two, and so on up to `HEAD`."""
        self._longest = 0

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

        A sentence of `ours` always quotes nicknames and names of accounts. So a word that is not
        quoted stays, even if it equals such a name.
        """
        if not self.on:
            return text
        if len(self._learned) >= MAX_NAMES:
            return self.body(text)
        if "%" in text:  # as in an address of the scheme `xmpp`
            text = visible(unquote(text))
        pieces, end = [], 0
        for match in _QUOTED.finditer(text):
            pieces += [self._replaced(text[end : match.start()], ours), f'"{self._quoted(match)}"']
            end = match.end()
        return "".join([*pieces, self._replaced(text[end:], ours)])

    def event(self, exact: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the exact form of an event without names and bodies."""
        if not self.on:
            return exact
        kept = {"gap": {"from", "to"}, "connection": {"text"}}.get(exact["kind"], set())
        if "condition" in exact:
            kept = set()
        is_error = exact["kind"] == "error"  # a server or a stranger wrote its text
        return {
            name: value
            if name in kept
            else self._field("body" if is_error and name == "text" else name, value)
            for name, value in exact.items()
        }

    def stanza(self, element: Element) -> Element:
        """Return a stanza without names and bodies."""
        namespace, name = element.tag[1:].rpartition("}")[0], local(element.tag)
        if namespace and not namespace.startswith(NAMESPACES):
            return Element("left-out")
        made = Element(element.tag)
        for key, value in element.items():
            if local(key) in ATTRIBUTES:
                made.set(key, self._value(local(key), value, self.body))
        if text := (element.text or "").strip():
            made.text = self._value(name, text, self.body)
        made.extend(self.stanza(child) for child in element)
        return made

    def _field(self, name: str, value: Any) -> Any:
        """Return what replaces the value of a field of an event."""
        if isinstance(value, list):
            return [self._field(name, item) for item in value]
        if not isinstance(value, str) or name in STRUCTURE:
            return value
        if name in {"payload", "formerPayload"}:  # names of elements, each with its namespace
            return value if f"({value.rpartition('(')[2]}".startswith(_STANDARD) else "left-out"
        return self._value(name, value, self.text)

    def _value(self, name: str, value: str, otherwise: Callable[[str], str]) -> str:
        """Return what replaces a value that has this name, in an event or in a stanza.

        `otherwise` replaces it if neither the name nor the value is known.
        """
        if name in NICKNAMES:
            return self.nickname(value)
        if name in JIDS:
            return self.jid(value)
        if name in IDS:
            return self._of("id", value)
        if name == "var":
            return value if value.startswith(_FIELDS) else self._of("field", value)
        if name in TEXTS:
            return self.text(value)
        if name in {"body", "reactions"}:
            return self.body(value)
        is_plain = name in NUMBERS and _PLAIN.fullmatch(value)
        if value in WORDS or is_plain or _MECHANISMS.fullmatch(value):
            return value
        return otherwise(value)

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
        if not name or name in self._learned or len(self._learned) >= MAX_NAMES:
            return
        self._learned.add(name)
        for spelling in (name, unquote(name)):
            if key := _key(spelling):
                self._known.setdefault(key, (replace, is_address))
                self._heads.update(key[:length] for length in range(1, HEAD + 1))
                self._longest = max(self._longest, len(key))
        self._known[name] = replace, is_address

    def _quoted(self, match: re.Match[str]) -> str:
        """Return what replaces quoted words: the pseudonym if they are a name, else the length."""
        try:
            words = json.loads(match[0].replace("…", ""), strict=False)
        except ValueError:
            words = match[1]
        if known := self._known.get(words) or self._known.get(_key(words)):
            return known[0]()
        if known_id := self._given.get(("id", words)):
            return known_id
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
        folded, places = _folded(text)
        units, index, end = [*_units(folded)], 0, 0
        while index < len(units):
            begin, key, following = places[units[index].start()], "", 0
            for place, unit in enumerate(units[index : index + MAX_UNITS], index + 1):
                key += unit[0]
                if len(key) > self._longest or key[:HEAD] not in self._heads:
                    break
                name = text[begin : places[unit.end()]]
                known = self._known.get(name) or self._known.get(key)
                if known and (_is_dotted(name) if known[1] and "." in known[0]() else not ours):
                    following, best, after, replace = place, name, places[unit.end()], known[0]
            if following:
                yield text[end:begin]
                yield marked(best, replace())
                end = after
            index = following or index + 1
        yield text[end:]


@cache
def _letters(character: str) -> str:
    """Return a letter without case, width and marks; an empty text if it is not drawn."""
    decomposed = normalize("NFKD", normalize("NFKD", character).casefold())
    return "".join(
        it
        for it in decomposed
        if it.isspace()
        or not (category(it)[0] in "MC" or it in HIDDEN_LETTERS or it in VARIATION_SELECTORS)
    )


def _folded(text: str) -> tuple[str, Sequence[int]]:
    """Return the letters of a text, and the place in the text of each, and of the end."""
    if text.isascii() and text.isprintable():
        return text.lower(), range(len(text) + 1)
    letters, places = list[str](), list[int]()
    for place, character in enumerate(text):
        letters.append(_letters(character))
        places += [place] * len(letters[-1])
    return "".join(letters), [*places, len(text)]


def _units(folded: str) -> Iterator[re.Match[str]]:
    """Yield the words of a folded text; punctuation only separates them."""
    for unit in _UNIT.finditer(folded):
        if unit[1] is None and category(unit[0][0])[0] != "P":
            yield unit


def _key(name: str) -> str:
    """Return what all spellings of a name have in common: its letters, without signs and case."""
    return "".join(unit[0] for unit in _units(_folded(name)[0]))


def _is_dotted(name: str) -> bool:
    return any(sign in normalize("NFKC", name) for sign in ".@")


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
