r"""Writes texts, names and times as users see them. Pure.

Room text is written by strangers, and both a log line and a model's context can be forged with
characters that show nothing: line breaks, bidirectional overrides, zero-width spaces, tags.
They become `\u{202E}` and the like. Times are ISO 8601, UTC, with milliseconds and `Z`.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import accumulate
from sys import getsizeof
from typing import TypeVar

Item = TypeVar("Item")

HIDDEN_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2065\u3164\uffa0")
"""Characters that draw nothing though their category says otherwise: fillers, inherent vowels,
the grapheme joiner, and U+2065, which is reserved for such use."""

JOINERS = frozenset("\u200c\u200d")
"""Zero-width (non-)joiners: they spell words and emoji, but only between visible characters."""

LAYOUT = frozenset("\t\n")
"""Control characters that a body of several lines may keep."""

MAX_QUOTED_CHARACTERS = 200
"""The most characters of a stranger's words in a sentence of ours, escapes counted: enough to know
what they mean, too few to bury the sentence."""

NAME_CHARACTERS = 60
"""The most characters of a name that a stranger chose in a sentence of ours, escapes counted."""

NAMES_SHARE = 0.5
"""The names of hidden characters behind a stranger's words have at most half as many characters as
the words may have. That is enough for three names behind a message, for one behind a nickname."""

VARIATION_SELECTORS = frozenset(
    map(chr, [*range(0x180B, 0x180E), 0x180F, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)])
)
"""Characters that choose the shape of the character before them. Behind a character that has no
such shape they show nothing: a row of letters could carry a hidden message."""

EMOJI_SELECTOR = "\ufe0f"
"""Chooses the shape of an emoji. People write it often, and everybody sees it."""

MAX_SELECTORS = 4
"""The most other variation selectors that a text shows: people write hardly any. There are 240 for
an ideograph, so that each could mean a letter. After so many, no further selector is shown."""

_SHAPED = (
    "[©®‼⁉™ℹ↔-↙↩↪⌚⌛⌨⏏⏩-⏳⏸-⏺Ⓜ▪▫▶◀◻-◾☀-➿⤴⤵⬅-⬇⬛⬜⭐⭕〰〽㊗㊙🀄🃏🅰-🆏🈂🈚🈯🈷🌀-🫿][\ufe0e\ufe0f]"  # noqa: RUF001
    r"|[0-9#*][\ufe0e\ufe0f](?:\u20e3|\Z)"
    "|[\u1820-\u18aa][\u180b-\u180d\u180f]"
    "|[\u2200-\u22ff]\ufe00"
    "|[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff][\ufe00-\ufe02\U000e0100-\U000e01ef]"
)
"""Matches a character and a selector that may choose its shape: emoji, keys such as `1`, Mongolian
letters, mathematical signs and ideographs. A key ends with U+20E3 if it is not cut off."""
_ESCAPE = re.compile(r"\\u\{(10[0-9A-F]{4}|[0-9A-F]{1,5})\}")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_DRAWS_NOTHING = HIDDEN_LETTERS | VARIATION_SELECTORS
"""Characters that are hidden although `str.isprintable` may be true of them."""
_as_json = json.JSONEncoder(ensure_ascii=False).encode


def memory_of(text: str) -> int:
    """Return how many bytes of memory `text` takes, beyond what an empty text takes.

    Python stores every character in as many bytes as the widest one needs: four beside an emoji.
    Once it has written the text in UTF-8, it may keep that too.
    """
    if text.isascii():
        return len(text)
    return getsizeof(text) - getsizeof("") + len(text.encode("utf-8", "surrogatepass"))


def visible(text: str) -> str:
    """Return `text` with hidden characters as escapes; tab and newline stay."""
    return text if _shows_all(text) else "".join(_escape(text, LAYOUT))


def visible_within(value: object) -> object:
    """Return JSON with hidden characters as escapes in its texts, names of members included.

    Do this before the value is encoded: JSON has another escape for the same characters.
    """
    match value:
        case str():
            return visible(value)
        case list():
            return [visible_within(item) for item in value]
        case dict():
            return {visible(str(name)): visible_within(item) for name, item in value.items()}
    return value


def one_line(text: str, limit: int | None = None) -> str:
    """Return `text` fit for one line of a log; if it exceeds `limit` characters, cut and marked."""
    if limit is not None and len(text) > limit:
        return f"{one_line(text[:limit])}... ({len(text)} characters)"
    return text if _shows_all(text) else "".join(_escape(text, frozenset()))


def quoted(text: str, limit: int = MAX_QUOTED_CHARACTERS) -> str:
    r"""Return a stranger's words in quotation marks, for a sentence of ours.

    They are one line, with the escapes of JSON, and `\u{200B}` for a hidden character. They have at
    most `limit` characters between the marks, escapes counted, and end with `…` if they were cut.
    The rest of `text` is not even looked at. The names of hidden characters follow in brackets.
    """
    words, names = "", dict[str, None]()
    for piece in _escape(text[: limit + 1], LAYOUT):
        hidden = len(piece) > 1
        escaped = piece if hidden else _as_json(piece)[1:-1]
        if len(words) + len(escaped) > limit:
            words += "…"
            break
        words += escaped
        if hidden:
            names[named(chr(int(piece[3:-1], 16)))] = None
    sizes = accumulate(len(name) + len(", ") for name in names)
    most = min(limit, MAX_QUOTED_CHARACTERS) * NAMES_SHARE + len(", ")
    fitting = [name for name, size in zip(names, sizes, strict=True) if size <= most]
    listed = ", ".join(fitting if len(fitting) == len(names) else [*fitting, "..."])
    return f'"{words}" ({listed})' if names else f'"{words}"'


def name_of(name: str) -> str:
    """Return a name that a stranger chose, for a sentence of ours."""
    return quoted(name, NAME_CHARACTERS)


def listed(items: Sequence[Item], most: int, show: Callable[[Item], str]) -> str:
    """Return the first `most` items for a sentence of ours; any others are only counted."""
    more = len(items) - most
    first = ", ".join(map(show, items[:most]))
    return f"{first} and {more} more" if more > 0 else first


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, such as `1 message` or `3 messages`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the end of an error: the known word most similar to `word`, or nothing."""
    similar = get_close_matches(word.partition("=")[0], known, 1)
    return f": {similar[0]}?" if similar else ""


def named(character: str) -> str:
    """Return the code point of a character, and its name if it has one."""
    return f"U+{ord(character):04X} {unicodedata.name(character, '')}".rstrip()


def rooms_named(name: str, rooms: Iterable[str]) -> list[str]:
    """Return the `rooms`, as bare JIDs, that `name` means; case does not matter.

    A name is the whole JID, or the part before its `@`, which several rooms may have.
    """
    wanted = name.casefold()
    return [
        room for room in rooms if wanted in {room.casefold(), room.casefold().partition("@")[0]}
    ]


def searchable(text: str) -> str:
    """Return `text` without case and without what a reader cannot see, joiners included.

    Each character is judged alone. So if one text contains another, its result contains the
    other's.
    """
    if not _shows_all(text):
        unseen = {ord(character) for character in set(text) - LAYOUT if _is_hidden(character)}
        text = text.translate(dict.fromkeys(unseen))
    return text.casefold()


def unescaped(text: str) -> str:
    r"""Return `text` with hidden characters in place of the escapes that `visible` writes."""
    return _ESCAPE.sub(_meant, text)


def _meant(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return character if _is_hidden(character) else escape[0]


def _shows_all(text: str) -> bool:
    """Whether surely nothing has to be escaped; quick, since it looks up no category."""
    return text.isprintable() and (text.isascii() or _DRAWS_NOTHING.isdisjoint(text))


def _is_hidden(character: str) -> bool:
    return (
        unicodedata.category(character) in _HIDDEN_CATEGORIES
        or character in _DRAWS_NOTHING
        # Unassigned, and never to be drawn (Unicode, `Default_Ignorable_Code_Point`).
        or "\ufff0" <= character <= "\ufff8"
        or "\U000e0000" <= character <= "\U000e0fff"
    )


def _escape(text: str, kept: frozenset[str]) -> list[str]:
    pieces: list[str] = []
    base_is_visible = False
    selectors = 0
    for position, character in enumerate(text):
        following = text[position + 1 : position + 2]
        stays = character in kept or not _is_hidden(character)
        if stays:
            base_is_visible = not character.isspace()
        elif (
            base_is_visible
            and selectors < MAX_SELECTORS
            and re.match(_SHAPED, text[position - 1 : position + 2])
        ):
            stays = True
            selectors += character != EMOJI_SELECTOR
            # A character keeps one selector; a second would carry a message, and not choose a
            # shape. A joiner may follow the first, as in most emoji of people.
            base_is_visible = following in JOINERS
        else:
            joins = base_is_visible and character in JOINERS and following
            stays = bool(joins) and not (following.isspace() or _is_hidden(following))
            base_is_visible = False
        pieces.append(character if stays else f"\\u{{{ord(character):X}}}")
    return pieces


def wire_name(name: str) -> str:
    """Return the JSON spelling of a Python name: `timeout_seconds` is `timeoutSeconds`."""
    head, *tail = name.rstrip("_").split("_")
    return head + "".join(part.capitalize() for part in tail)


def iso(at: float) -> str:
    """Return a time as users see it; `at` is in seconds since the epoch."""
    return _written(datetime.fromtimestamp(at, UTC))


def milliseconds(at: float) -> int:
    """Return a time in milliseconds since the epoch, the one that `iso` shows."""
    return round(at * 1_000_000) // 1_000


def iso_of(text: str) -> str | None:
    """Return a time that others wrote as users see times; None if it is none, or has no zone."""
    try:
        moment = datetime.fromisoformat(text)
        return None if moment.tzinfo is None else _written(moment.astimezone(UTC))
    except (ValueError, OverflowError):
        return None


def seconds_of(text: str | None) -> float | None:
    """Return a time that others wrote in seconds since the epoch; None as for `iso_of`."""
    written = text and iso_of(text)
    return datetime.fromisoformat(written).timestamp() if written else None


def stamp_of(text: str | None) -> str | None:
    """Return a stamp (XEP-0203) as users see times; if it is no time, unchanged."""
    return text and (iso_of(text) or text)


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
