"""Names the standard that defines a feature.

The table `xeps.tsv` is in the order of the numbers. Each line has a number, a title, and the
features that the standard defines, without version. Names and numbers come from the XSF's own list
(https://xmpp.org/extensions/).
"""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Standard(NamedTuple):
    """A document that defines features."""

    number: str
    """`XEP-0313`, or `RFC 6121`."""
    name: str


_VERSION = re.compile(":(?:[0-9]{1,4}|tmp)$")
"""The version at the end of a namespace (XEP-0053, section 4); `tmp` comes before the first one."""


@cache
def standards() -> dict[str, Standard]:
    """Return the standard of each feature in the table, which is read at the first call."""
    table = Path(__file__).with_name("xeps.tsv").read_text("utf-8")
    rows = (line.split("\t") for line in table.splitlines())
    return {feature: Standard(*row) for *row, features in rows for feature in features.split()}


def standard_of(feature: str) -> Standard | None:
    """Return the standard that defines `feature`; None if it is not in the table.

    `urn:xmpp:mam:2#extended` belongs to the standard of `urn:xmpp:mam`. A feature that ends in
    `+notify` asks for notifications (XEP-0163, section 4), and belongs to the standard of the
    feature without that ending.
    """
    name = feature.removesuffix("+notify")
    base, _, fragment = name.partition("#")
    bare = _VERSION.sub("", base)
    candidates = (name, _VERSION.sub("", name), f"{bare}#{fragment}", base, bare)
    known = standards()
    return next((known[candidate] for candidate in candidates if candidate in known), None)
