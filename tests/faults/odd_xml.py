"""Makes odd XML that honest servers may pass on: names, namespaces, prefixes, depth, entities."""

from collections.abc import Iterator
from random import Random
from xml.sax.saxutils import quoteattr

NAMESPACES = (
    "}",
    "{",
    "a}b}c",
    "urn:example:odd",
    "",
    " ",
    "jabber:client",
    "jabber:server",
    "http://etherx.jabber.org/streams",
    "http://jabber.org/protocol/muc#user",
    "u\"/><message type='groupchat'><body>forged</body></message><x a=\"",
    "é€\U0001f600",
    "n" * 300,
)
NAMES = ("a", "body", "message", "x", "stream", "é", "_", "a.b-c", "n" * 500, "xmlns", "item")
TEXTS = ("", "text", "&#10;&#9;", "&#x1F600;&#65533;", "&lt;/body&gt;", "]]&gt;", "'\"", "&#13;")
CLASSICS = (
    "<x xmlns='}'/>",
    "<xml:y/>",
    "<a><b><c><x xmlns='}'/></c></b></a>",
    "<x a:b='1' xmlns:a='}'/>",
    "<x xml:lang='}' xml:space='preserve' xml:other='1'/>",
    "<a>" * 300 + "</a>" * 300,
    f"<x xmlns='{'n' * 2_000}'>" + "".join(f"<a{n}/>" for n in range(500)) + "</x>",
    f"<a:x xmlns:a='{'n' * 200}' " + " ".join(f"a:a{n}=''" for n in range(2_000)) + "/>",
    "<x>" + "<a/>" * 5_000 + "</x>",
    "<x xmlns='jabber:client'><message><body>in</body></message></x>",
    "<a:a xmlns:a='b'><a:a xmlns:a='}'/></a:a>",
)
"""What attacks found."""


def odd_children(seed: int, count: int) -> Iterator[str]:
    """Yield the classics, and then as many made by chance as are wanted."""
    yield from CLASSICS
    chance = Random(seed)  # noqa: S311 - no secret
    for _ in range(count - len(CLASSICS)):
        yield _element(chance, chance.choice((0, 1, 2, 4)))


def _element(chance: Random, depth: int) -> str:
    prefix = chance.choice(("", "", "p:", "xml:"))
    name = prefix + chance.choice(NAMES)
    declared = [f"xmlns:p={quoteattr(chance.choice(NAMESPACES) or 'urn:p')}"]
    if chance.random() < 0.5:
        declared.append(f"xmlns={quoteattr(chance.choice(NAMESPACES))}")
    given = {chance.choice(("", "p:", "xml:")) + chance.choice(NAMES) for _ in range(3)}
    given.discard("xmlns")
    attributes = [f"{each}='{chance.choice(TEXTS[:5])}'" for each in sorted(given)]
    parts = [*declared, *attributes]
    chance.shuffle(parts)
    children = (_element(chance, depth - 1) for _ in range(chance.randrange(3) if depth else 0))
    content = "".join(child + chance.choice(TEXTS) for child in children) + chance.choice(TEXTS)
    if chance.random() < 0.2:
        content += "<![CDATA[<a> & ]]>"
    return f"<{name} {' '.join(parts)}>{content}</{name}>"
