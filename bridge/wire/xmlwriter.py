"""Writes elements as XML, with their namespaces declared, and with texts escaped. Pure.

This also writes received stanzas, to show them to users. A namespace may contain markup. If it were
not escaped, users would see stanzas that were never sent.
"""

from xml.etree.ElementTree import Element

from bridge.wire.names import XML_NAMESPACE, split

_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
"""Escapes for text, in which a parser reads a bare CR as a line feed (XML 1.0, section 2.11)."""

_VALUE = _TEXT | str.maketrans({'"': "&quot;", "'": "&apos;", "\t": "&#9;", "\n": "&#10;"})
"""Escapes for attributes, in which a parser reads bare white space as blanks (section 3.3.3)."""


def escaped(value: str) -> str:
    """Return a text escaped for content and for attributes in quotes."""
    return value.translate(_VALUE)


def written(element: Element, inherited: str = "") -> str:
    """Return an element as XML, without its tail; `inherited` is the default namespace."""
    namespace, name = split(element.tag)
    opening = name
    if namespace == XML_NAMESPACE:
        namespace, opening = inherited, f"xml:{name}"
    start = f"<{opening}"
    if namespace != inherited:
        start += f' xmlns="{escaped(namespace)}"'
    for number, (key, value) in enumerate(element.items()):
        scope, key = split(key)
        if scope == XML_NAMESPACE:
            key = f"xml:{key}"
        elif scope:
            start += f' xmlns:ns{number}="{escaped(scope)}"'
            key = f"ns{number}:{key}"
        start += f' {key}="{escaped(value)}"'
    if not len(element) and not element.text:
        return f"{start}/>"
    content = [(element.text or "").translate(_TEXT)]
    for child in element:
        content += written(child, namespace), (child.tail or "").translate(_TEXT)
    return f"{start}>{''.join(content)}</{opening}>"
