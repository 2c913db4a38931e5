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
    "token": ("token",),  # logs in without a password (XEP-0484)
}

PASSWORD = "password"  # noqa: S105 - the name of one
"""The attribute that is a secret wherever it stands: invitations (XEP-0249), bookmarks
(XEP-0048), services such as TURN (XEP-0215)."""

SECRET_FIELDS = ("secret", PASSWORD)
"""What the name of a form's field has in it if its value is one (XEP-0045, section 10.2)."""

SUSPECTS = SECRETS | SECRET_ATTRIBUTES.keys() | {"field"}
"""Names of elements that are looked at more closely."""

OPEN_FIELDS = frozenset({"muc#roomconfig_passwordprotectedroom"})
"""Fields so named that say yes or no."""

REDACTED = "[redacted]"


def redacted(element: Element) -> Element:
    """Return `element` without its secrets; itself if it has none."""
    if not any(_is_secret(one) for one in element.iter()):
        return element
    clean = deepcopy(element)
    for one in clean.iter():
        _redact(one)
    return clean


def _is_secret(element: Element) -> bool:
    name = _name(element)
    return bool(element.get(PASSWORD)) or (
        name in SUSPECTS
        and (
            (name in SECRETS and _has_text(element))
            or (name == "field" and _is_secret_field(element))
            or any(element.get(one) for one in SECRET_ATTRIBUTES.get(name, ()))
        )
    )


def _redact(element: Element) -> None:
    name = _name(element)
    for attribute in (PASSWORD, *SECRET_ATTRIBUTES.get(name, ())):
        if element.get(attribute):
            element.set(attribute, REDACTED)
    if name in SECRETS and _has_text(element):
        element.text = REDACTED
        for child in element:
            child.tail = None
    if name == "field" and _is_secret_field(element):
        for one in element.iter():
            if _name(one) == "value" and one.text:
                one.text = REDACTED


def _has_text(element: Element) -> bool:
    return bool(element.text or any(child.tail for child in element))


def _is_secret_field(field: Element) -> bool:
    var = field.get("var", "")
    if var in OPEN_FIELDS:
        return False
    # `text-private` is not to be shown even while it is typed (XEP-0004, section 3.3).
    return field.get("type") == "text-private" or any(mark in var for mark in SECRET_FIELDS)


def _name(element: Element) -> str:
    return element.tag.rpartition("}")[2]
