"""What the owner of a room can configure (XEP-0045 sections 10.2 and 16.5)."""

from xml.etree.ElementTree import Element

from bridge.sandbox.stanza import refuse, tag
from bridge.wire.names import DATA_FORMS, MUC
from bridge.wire.xmlwriter import escaped

PREFIX = "muc#roomconfig_"

FIELDS = {
    "roomname": ("text-single", "", ""),
    "roomdesc": ("text-single", "", ""),
    "roomsecret": ("text-private", "muc_unsecured", "muc_passwordprotected"),
    "persistentroom": ("boolean", "muc_temporary", "muc_persistent"),
    "publicroom": ("boolean", "muc_hidden", "muc_public"),
    "moderatedroom": ("boolean", "muc_unmoderated", "muc_moderated"),
    "membersonly": ("boolean", "muc_open", "muc_membersonly"),
    "changesubject": ("boolean", "", ""),
}
"""The type of each field, the feature of a room if the field is off or empty, and its feature if
not."""

NEW = dict.fromkeys(FIELDS, "") | {"publicroom": "1"}
"""The configuration of a new room; a field that is off is empty."""


def configured(values: dict[str, str], form: Element) -> dict[str, str]:
    """Return `values` with the changes of a submitted form; fields that are unknown are ignored.

    Raises `RefusedError` for a form of another kind.
    """
    given = {field.get("var", ""): field.findtext(f"{{{DATA_FORMS}}}value", "") for field in form}
    kind, is_ours = form.get("type"), given.get("FORM_TYPE") == f"{MUC}#roomconfig"
    refuse(bad_request=kind not in ("submit", "cancel") or (given and not is_ours))
    changed = dict(values)
    for name, (type_, _, _) in FIELDS.items() if kind == "submit" else ():
        value = given.get(PREFIX + name, changed[name])
        is_off = type_ == "boolean" and value not in ("1", "true")
        changed[name] = "" if is_off else value
    return changed


def features(values: dict[str, str]) -> tuple[str, ...]:
    """Return the features in which service discovery shows the configuration."""
    features = (on if values[name] else off for name, (_, off, on) in FIELDS.items())
    return tuple(filter(None, features))


def configuration_form(values: dict[str, str]) -> str:
    """Return the form in which the configuration is changed, as XML."""
    fields = [(FIELDS[name][0], PREFIX + name, value) for name, value in values.items()]
    return _form("form", "roomconfig", *fields)


def information_form(values: dict[str, str], occupants: int) -> str:
    """Return the form in which service discovery describes the room, as XML."""
    described = "text-single", "muc#roominfo_description", values["roomdesc"]
    return _form(
        "result", "roominfo", described, ("text-single", "muc#roominfo_occupants", str(occupants))
    )


def _form(kind: str, name: str, *fields: tuple[str, str, str]) -> str:
    """Return a form (XEP-0004); each of `fields` is a type, a name and a value."""
    content = ""
    for type_, var, value in (("hidden", "FORM_TYPE", f"{MUC}#{name}"), *fields):
        text = value or ("0" if type_ == "boolean" else "")
        content += tag("field", tag("value", escaped(text)), var=var, type=type_)
    return tag("x", content, xmlns=DATA_FORMS, type=kind)
