"""Taking secrets out of stanzas before anything keeps them. Pure."""

from copy import deepcopy
from xml.etree.ElementTree import Element

SECRETS = frozenset(
    {
        # SASL (RFC 6120, section 6.4) and SASL2 (XEP-0388): PLAIN has the password itself, SCRAM
        # enough to try passwords against.
        "auth",
        "challenge",
        "response",
        "success",
        "initial-response",
        "additional-data",
        # Room passwords (XEP-0045, sections 7.2.5 and 7.8.2), registration (XEP-0077).
        "password",
        "digest",
        "key",
    }
)
"""Names of elements whose text is, or betrays, a secret, in whatever namespace."""

SECRET_ATTRIBUTES = {
    "resume": ("previd",),  # who has the id can take up the session (XEP-0198, section 5)
    "resumed": ("previd",),
    "enabled": ("id",),
    "x": ("password",),  # a direct invitation (XEP-0249)
}

SECRET_FIELDS = ("secret", "password")
"""What the name of a form's field has in it if its value is one (XEP-0045, section 10.2)."""

REDACTED = "[redacted]"


def redacted(element: Element) -> Element:
    """Return `element` without its secrets; itself if it has none."""
    if not any(_is_secret(one) for one in element.iter()):
        return element
    clean = deepcopy(element)
    for one in clean.iter():
        if _is_secret(one):
            _redact(one)
    return clean


def _is_secret(element: Element) -> bool:
    name = element.tag.rpartition("}")[2]
    if name in SECRETS:
        return bool(element.text)
    if name == "field":
        return any(mark in element.get("var", "") for mark in SECRET_FIELDS)
    return any(element.get(one) for one in SECRET_ATTRIBUTES.get(name, ()))


def _redact(element: Element) -> None:
    name = element.tag.rpartition("}")[2]
    for attribute in SECRET_ATTRIBUTES.get(name, ()):
        if element.get(attribute):
            element.set(attribute, REDACTED)
    if name in SECRETS:
        element.text = REDACTED
    elif name == "field":
        for value in element:
            value.text = REDACTED
