"""Learns from a log which entries the client sent, and which it received. Pure, within bounds.

An entry's shape is the logger's own text before the XML, with times, numbers and addresses
replaced. A word in the shape names the direction. In the log of a server or a service, the words
mean the reverse: what one side alone can send shows whose view the log is. A stranger's stanzas
have no vote on that.
"""

import html
import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from xml.etree.ElementTree import Element

from bridge.capture import formats
from bridge.newest import Newest
from bridge.wire import names
from bridge.wire.names import domain_of, lower_bare

MAX_SHAPES = 1_000
"""We learn at most so many shapes, and count the entries of at most so many places. A logger has a
few dozen of them. Further shapes have no direction, and further places count as never met."""

MAX_HEAD = 512
"""The most characters of the text before the XML that we look at: of a longer text, its beginning
and its end."""

MAIN_ENTRIES = 10
"""Once so many entries stand in one place of the logger, that is its own place: stanzas elsewhere
are words that a program printed."""

CERTAIN, NAMELESS, OF_ROOMS = range(3)
"""Kinds of evidence, the strongest first, that a log is a client's or a server's: what one side
alone can send, stanzas without `from`, and stanzas that a room sends."""

MARGINS = 1, 2, 1
"""The least difference in stanzas that counts, for each kind of evidence."""

LEAST_BESIDE = 0.75
"""The least share of entries without a word of their own that have a word in the line before or
behind them. Loggers write it for each entry; a log may begin with a few others."""

MAX_ASKED = 256
"""We remember the ids of at most so many requests; an answer follows soon."""

_TAGGED = re.compile(r"<(?:!--(.*?)--|(/?[A-Za-z][^<>]*))>")
"""A comment or a tag: its brackets are no arrows."""
_QUOTES = re.compile(r"(?:\bb|<<)?['\"]+$")
_CHANGING = re.compile(
    r"""[^\s"'()<>\[\]=,|:]+@[^\s"'()<>\[\],:|]+      # an address
      | (?P<session>\(?(?:\w+\|)?<\d+\.\d+\.\d+>\)?(?:@[\w:/.]+)?
        | \b(?:c2s|s2s(?:in|out)|component|bosh|ws)[0-9a-f]+\b)
      | \b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b
      | (?P<kept>(?<=[(\[])\d(?=[)\]]))            # some loggers count the connections
      | (?<![^\W_])(?=[a-f-]*\d)[0-9a-f-]{6,}(?![^\W_])
      | \d[\d.,:]*
    """,
    re.VERBOSE,
)
_OCCUPANT = re.compile(r"""\b(?:from|to)=(['"])([^@'"/]+@[^'"/]+/[^'"]{1,1023})\1""")
"""An attribute with an address that has a resource (RFC 7622, 3.4)."""
_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+|[-=~]*[<>]+[-=~]*|[→⇒⮊←⇐⮈]")
_ARROW = re.compile(r"[-=~]*(>{2,})|[-=~]+(>)|=?(<{2,})[-=~]*|(<)[-=~]+")
_ACTOR = re.compile(r"\bserver\s+$", re.IGNORECASE)
"""Matches `server` before a word such as `sends`: the client receives what the server sends."""
_PARTIES = re.compile(r"[\w#]\s?\0\s?[\w#]")
"""Matches the names around an arrow, such as `S -> C`: it points the same way for both."""
_DENIED = re.compile(r"\W{1,4}(?:false|no)\b", re.IGNORECASE)
"""Matches behind a word that is a flag, such as `"incoming": false`."""
_REMARK = re.compile(r"\s*(?:\([^()]*\)|\[[^\[\]]*\])[^\w<>→⇒⮊←⇐⮈]*$")
_KEY = re.compile(r"""\W*[\w-]+["']?\s*[:=]\W*""")
_MEMBER = re.compile(r"""\W*[\w-]+["']?\s*[:=]\W*\w+\W*""")
"""A line with one member of an object, as YAML and consoles write it."""
_SENTENCE = re.compile(r"(?:[^\W\d_][\w,.'()/-]* ){4}[\w ,.'()\"/-]*[.?]\s*")
"""A sentence of a person: loggers write fewer words, or begin with a time or a name and a colon."""
_CONNECTION = re.compile(r"\(#?(\d{1,3})\)\W*$")
"""The number of a connection, behind the word."""


class Word(NamedTuple):
    """A word in a shape that may name the direction."""

    key: str
    """The shape without this word."""
    says_sent: bool
    is_strong: bool
    family: str
    """The shape up to this word."""


class Shape:
    """The text before some entries of a log, and what stands behind it."""

    def __init__(self, text: str) -> None:
        self.words = _words_in(text)
        self.text = text
        self.word: Word | None = None
        """The word that names the direction, once that is decided."""
        self.sent: bool | None = None
        """Whether the client sent these entries, once that is decided and so for all of them."""
        self.is_beside = "\n" in text.lstrip("\n")
        """Whether the text is of two places: the entry's own line, and the line before it or the
        text behind it."""
        self.entries = 0
        self.has_session = False
        """Whether it names its session, as the logs of servers do."""
        self.evidence = tuple(Counter[bool]() for _ in MARGINS)
        """How often stanzas of the client, and of the other side, stand here, by `CERTAIN` and so
        on."""
        self.hints = Counter[bool]()
        """What its stanzas look like by themselves."""

    def sides(self) -> dict[bool, int]:
        """Return how many of its stanzas only the client sends, and how many only the others."""
        certain_, nameless, of_rooms = self.evidence
        return {
            True: certain_[True] + nameless[True],
            False: certain_[False] + of_rooms[False],
        }


_unlearned = lru_cache(maxsize=MAX_SHAPES)(Shape)
"""Returns a shape without counts, for entries whose direction need not be learned."""


def shape_of(head: str, xml: str = "") -> tuple[str, str]:
    """Return the shape of the text before an entry, and the token of its session, if any.

    An address of the entry `xml` may stand in the text, and its resource have any word in it.
    """
    for match in _OCCUPANT.finditer(xml[1:].partition("<")[0]) if "@" in head else ():
        head = head.replace(html.unescape(match[2]), "#")
    return _shape_of(head)


@lru_cache(maxsize=MAX_SHAPES)
def _shape_of(head: str) -> tuple[str, str]:
    session = ""
    head = _TAGGED.sub(r"\1\2", head) if "<" in head else head
    if len(head) > MAX_HEAD:
        head = head[: MAX_HEAD // 2] + head[-MAX_HEAD // 2 :]

    def replaced(match: re.Match[str]) -> str:
        nonlocal session
        if match.lastgroup == "session":
            session = match[0].strip("()").partition("@")[0].rpartition("|")[2]
        return match[0] if match.lastgroup == "kept" else "#"

    shape = _CHANGING.sub(replaced, _QUOTES.sub("", head))
    if not session and ")" in head and (connection := _CONNECTION.search(head)):
        session = connection[1]
    return shape, session


def has_word(text: str) -> bool:
    """Whether a line without XML, or the members of an object, may name the direction."""
    rest = _REMARK.sub("", text)
    words = _words_in(shape_of(rest if rest.strip() else text)[0])
    if any(each.is_strong for each in words):
        return True
    return bool(words) and not any(map(str.isalnum, words[-1].key.partition("\0")[2]))


def ways_in(shape: str) -> set[bool]:
    """Return what the words of a shape may say: True that the client sent what stands behind it."""
    return {each.says_sent for each in _words_in(shape)}


def with_word(context: str, previous: str, head: str) -> str:
    """Return the text before an entry, with what stands before it if only that has the word."""
    if context and has_word(context):
        return head if has_word(head) else f"{context}\n{head}"
    is_before = previous and _begins(previous, head) and has_word(previous)
    return f"{previous}\n{head}" if is_before else head


def text_before(previous: str, text: str) -> str:
    """Return the text before the next line. An indented line is a part of a server's entry.

    What begins a block of code in Markdown is none. A sentence is a person's, and heads no entry.
    """
    if not text.strip() or text.startswith("```"):
        return previous
    if _SENTENCE.fullmatch(text):
        return ""
    goes_on = text[:1].isspace() and "\n" not in previous and shape_of(previous)[1]
    return f"{previous}\n{text}" if goes_on else text


def _begins(previous: str, head: str) -> bool:
    """Whether the line before may head an entry: no other text of the logger is in between."""
    if not head.removesuffix('<<"').strip(" \t\"'([{"):
        return True
    if has_word(head):
        return False
    if _KEY.fullmatch(head) and _MEMBER.fullmatch(previous):
        return True
    return shape_of(previous.strip())[0].startswith(shape_of(head.strip())[0])


@lru_cache(maxsize=MAX_SHAPES)
def _words_in(shape: str) -> list[Word]:
    """Return the words that may name the direction."""
    words = []
    for token in _TOKEN.finditer(shape):
        text = token[0].lower()
        arrow = _ARROW.fullmatch(text)
        sent = text in formats.SENT_WORDS or bool(arrow and (arrow[1] or arrow[2]))
        received = text in formats.RECEIVED_WORDS or (arrow is not None and not sent)
        if not sent and not received:
            continue
        behind = shape[token.end() :]
        is_last = not any(each.isalnum() for each in behind)
        before = shape[: token.start()]
        key = f"{before}\0{behind}"
        strong = text not in formats.WEAK_WORDS and (text not in formats.ALONE_WORDS or is_last)
        if not text.isalpha() and _PARTIES.search(key):
            strong = False
        if sent and _ACTOR.search(before):
            sent = False
        if _DENIED.match(behind):
            sent = not sent
        words.append(Word(re.sub(r"\d", "#", key), sent, strong, before))
    return words


_ONE_SIDED = {
    f"{{{space}}}{name}": sent
    for space, sent, written in (
        (names.SASL, True, "auth response abort"),
        (names.SASL2, True, "authenticate response abort next"),
        (names.SM, True, "enable resume"),
        (names.TLS, True, "starttls"),
        (names.COMPRESS, True, "compress"),
        (names.COMPRESS, False, "compressed failure"),
        (names.STREAMS, False, "features"),
        (names.SASL, False, "challenge success failure"),
        (names.SASL2, False, "challenge success failure continue"),
        (names.SM, False, "enabled resumed failed"),
        (names.TLS, False, "proceed failure"),
    )
    for name in written.split()
}
"""Whether the client sends an element, by the tags of elements that one side alone can send."""
_BIND = f"{{{names.BIND}}}bind"


def certain(element: Element) -> bool | None:
    """Return whether the client sent an element, if one side alone can send it; else None.

    A stanza with `from` may be a stranger's, and says nothing; nor do features without namespaces,
    which the clients of protocols like XMPP send too.
    """
    if (sent := _ONE_SIDED.get(element.tag)) is not None:
        is_other = element.tag == names.FEATURES and not any("}" in each.tag for each in element)
        return None if is_other else sent
    if element.tag == names.HEADER and element.get("id") is not None and not _is_to_server(element):
        return False
    if element.tag == "handshake":
        return bool(element.text)
    if element.tag == "iq" and element.get("from") is None and element.find(_BIND) is not None:
        return element.get("type") == "set"
    return None


def _is_to_server(header: Element) -> bool:
    """Whether a header is to a domain: a client's, though some write the id of the former stream.

    A server's header is to nothing, or to the account of the client.
    """
    to = header.get("to")
    return to is not None and "@" not in to and header.get("from") != to


def hinted(element: Element, own: str) -> bool | None:
    """Return whether the client sent a stanza, as far as the stanza tells; `own` is its address."""
    from_, to = element.get("from"), element.get("to")
    kind, tag = element.get("type", ""), element.tag
    if tag == names.STREAM_ERROR:
        return False
    if tag == names.HEADER and (to or from_):
        return _is_to_server(element)
    if tag not in {"message", "presence", "iq"}:
        return certain(element)
    is_to_resource = "/" in (to or "")
    if from_ is None:
        if tag == "iq" and to is None and element.get("id") is None:
            return None
        if (tag, kind) == ("presence", "error") or (tag, kind, to) == ("iq", "result", None):
            return False
        if kind == "error":
            return to is not None and not is_to_resource and lower_bare(to) != lower_bare(own)
        if to is None:
            return True if tag == "presence" else None
        return not own or lower_bare(to) != lower_bare(own)
    if own and to is not None and lower_bare(to) == lower_bare(own):
        return False
    if own and lower_bare(from_) == lower_bare(own):
        return True
    if tag == "iq" and to is None and kind in {"get", "set"} and "@" in from_:
        return True  # a server names the client to which it sends
    if is_to_resource and from_.lower() in {domain_of(to or "").lower(), lower_bare(to or "")}:
        return False  # the client's own server, or its account
    if kind == "error":
        return False  # clients leave `from` out
    return False if _is_of_room(element) else None


def _is_of_room(element: Element) -> bool:
    """Whether only a room sends such a stanza, if it was not forged."""
    if element.tag == "presence":
        kind = element.get("type", "")
        return kind == "error" or element.find(names.EXTENSION) is not None
    to, from_ = element.get("to", ""), element.get("from", "")
    if element.get("type") == "error":
        return "@" in from_ and "/" not in from_ and "/" in to
    return element.get("type") == "groupchat" and "/" in from_ and ("/" in to or not to)


class Directions:
    """What was learned from one log."""

    def __init__(self) -> None:
        self.own = ""
        """The client's address, as far as the log gives it."""
        self.has_undirected = False
        """Whether a stanza was read whose direction only the stanza itself tells."""
        self._shapes: dict[str, Shape] = {}
        self._words: dict[str, set[bool]] = {}
        """Which words stand in the same place, by the shape without them."""
        self._sides: dict[str, set[bool]] = {}
        """Which sides' stanzas stand behind words in the same place, by the shape up to them."""
        self._places = Counter[str]()
        self._most = 0
        """The most entries of a place."""
        self._early = frozenset[str]()
        """The places that were met before one of them had `MAIN_ENTRIES`."""
        self._asked: Newest[str, bool] = Newest(MAX_ASKED)
        """Whether the client sent the request with this id."""

    def learn(self, text: str, session: str, elements: Iterable[Element]) -> None:
        """Count what stands behind a shape, with the token of its session."""
        shape = self._shapes.get(text)
        if shape is None:
            shape = Shape(text)
            if len(self._shapes) < MAX_SHAPES:
                self._shapes[text] = shape
                for word in shape.words:
                    self._words.setdefault(word.key, set()).add(word.says_sent)
                    if word.is_strong and word.family:  # XML::Stream has `Send: (`, `Read: buff(`
                        self._words.setdefault(word.family, set()).add(word.says_sent)
        shape.entries += 1
        # On the streams to other servers, the server is the client.
        is_server = session.lstrip("0123456789") != "" and not session.startswith("s2sout")
        shape.has_session = shape.has_session or is_server
        for element in elements:
            self._learn_address(element)
            if shape.sent is not None:
                continue
            vote, hint = certain(element), hinted(element, self.own)
            if hint is not None:
                shape.hints[hint] += 1
            if vote is not None:
                shape.evidence[CERTAIN][vote] += 1
            is_of_room = _is_of_room(element)
            if hint and element.tag in {"message", "presence"} and element.get("from") is None:
                shape.evidence[NAMELESS][True] += 1
            if is_of_room or element.find(names.JOIN) is not None:
                shape.evidence[OF_ROOMS][not is_of_room] += 1
        if text in self._shapes and not shape.has_session:
            met = {side for side, count in shape.sides().items() if count}
            for word in shape.words:
                self._sides.setdefault(word.family, set()).update(met)

    def place_of(self, text: str) -> str:
        """Return the logger's place of a shape: the shape without its word and time."""
        word = self._word(self._shapes.get(text) or _unlearned(text))
        return (word.key if word else text).strip(" #")

    def is_near(self, text: str) -> bool:
        """Whether the logger wrote in this place, or something else behind the same beginning."""
        if self._places[self.place_of(text)] > 0:
            return True
        word = self._word(_unlearned(text))
        begin = word.family if word is not None and word.is_strong else text
        return begin in map(self._family, self._shapes.values())

    def is_own(self, place: str) -> bool:
        """Count an entry; return whether it stands in a place of the logger's own."""
        if place in self._places or len(self._places) < MAX_SHAPES:
            self._places[place] += 1
            self._most = max(self._most, self._places[place])
        if self._most < MAIN_ENTRIES:
            return True
        self._early = self._early or frozenset(self._places)
        return place in self._early or 2 * self._places[place] >= self._most

    def times_met(self, place: str) -> int:
        """Return how many entries stood in this place."""
        return self._places[place]

    def was_met(self, text: str) -> bool:
        """Whether entries of this shape were met, and have a word, which a program's text lacks."""
        return text in self._shapes and self._shapes[text].words != []

    def direction(self, text: str, element: Element) -> bool | None:
        """Return whether the client sent an element behind a shape; None if that is not known."""
        sent = certain(element)
        shape = self._shapes.get(text)
        if sent is None and shape is not None:
            sent = shape.sent = self._of_shape(shape) if shape.sent is None else shape.sent
        if sent is None:
            id_ = element.get("id", "")
            is_answer = element.tag == "iq" and element.get("type") in {"result", "error"}
            sent = hinted(element, self.own)
            if (sent is None or "from" not in element.attrib) and is_answer and id_ in self._asked:
                sent = not self._asked[id_]
            self.has_undirected = self.has_undirected or sent is not None
            if sent is not None and not is_answer:
                self._asked.add(id_, sent)
        return sent

    def _learn_address(self, element: Element) -> None:
        if element.tag == "iq" and element.get("from") is None:
            self.own = element.findtext(f"{_BIND}/{{{names.BIND}}}jid") or self.own
        if not self.own and _is_of_room(element):
            to = element.get("to", "")
            self.own = to if "/" in to or 110 in names.codes_of(element) else ""

    def _word(self, shape: Shape) -> Word | None:
        """Return the word of a shape that names the direction, best one whose opposite was met."""
        if shape.word is not None:
            return shape.word
        opposed = [it for it in shape.words if (not it.says_sent) in self._met(it)]
        # One word for both sides names none.
        mixed = {it for it in shape.words if len(self._sides.get(it.family, ())) > 1}
        strong = [it for it in shape.words if it.is_strong and it not in mixed]
        sides = {each.says_sent for each in shape.words}
        agreed = shape.words if len(sides) == 1 and sides == {*shape.hints} else []
        for words in ([each for each in opposed if each.is_strong], opposed, strong, agreed):
            if words:
                return words[-1]
        return None

    def _met(self, word: Word) -> set[bool]:
        """Return what the words say that were met in the place of a word."""
        return self._words.get(word.key, set()) | self._words.get(word.family, set())

    def _of_shape(self, shape: Shape) -> bool | None:
        shape.word = self._word(shape)
        if shape.is_beside and not self._beside_counts():
            return None
        if shape.word is not None:
            return shape.word.says_sent != self._reverses(shape.word.family)
        # Two shapes without a word that we know: each has one side's stanzas only.
        if len(shape.hints) != 1:
            return None
        (side,) = shape.hints
        tokens = _TOKEN.findall(shape.text)
        for other in self._shapes.values():
            if len(other.hints) == 1 and side not in other.hints:
                pairs = zip(tokens, theirs := _TOKEN.findall(other.text), strict=False)
                changed = [pair for pair in pairs if len({*pair}) > 1]
                is_swapped = len(changed) == 2 and changed[0] == changed[1][::-1]
                if len(theirs) == len(tokens) and (len(changed) == 1 or is_swapped):
                    return side
        return None

    def _beside_counts(self) -> bool:
        """Whether a word in the line before or behind an entry names the entry's direction.

        It does if most entries without a word of their own have such a word there, and no stanza
        contradicts it. Otherwise the lines are the program's own.
        """
        count, agreed, contrary = Counter[bool](), 0, 0
        for shape in self._shapes.values():
            word = self._word(shape)
            if word is None or shape.is_beside:
                count[word is not None] += shape.entries
            if word is None or not shape.is_beside:
                continue
            sides = shape.sides()
            agreed += sides[word.says_sent]
            contrary += sides[not word.says_sent]
        return not (agreed and contrary) and count[True] >= LEAST_BESIDE * count.total()

    def _reverses(self, family: str) -> bool:
        """Whether a server or a service writes the words of a family."""
        worded = [each for each in self._shapes.values() if self._word(each)]
        near = [each for each in worded if self._family(each) == family]
        agreed = contrary = 0
        for kind, margin in enumerate(MARGINS):
            if kind == OF_ROOMS and any(each.has_session for each in near):
                # The counts still are of the stanzas without an address.
                from_rooms = any(s.evidence[kind][False] and not self._says(s) for s in worded)
                return agreed <= contrary or not from_rooms
            for shapes in (near, worded):
                counted = [s for s in shapes if kind != OF_ROOMS or self._says(s)]
                agreed = sum(s.evidence[kind][self._says(s)] for s in counted)
                contrary = sum(s.evidence[kind][not self._says(s)] for s in counted)
                if abs(agreed - contrary) >= margin:
                    return contrary > agreed
        return False

    def _family(self, shape: Shape) -> str:
        word = self._word(shape)
        return word.family if word else ""

    def _says(self, shape: Shape) -> bool:
        word = self._word(shape)
        return word is not None and word.says_sent
