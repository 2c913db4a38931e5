"""Makes the page of a timeline: one HTML text that asks the network for nothing.

The texts of strangers are data in it: JSON in which every `<` is escaped. Its policy allows only
its own script and style, by their hashes.
"""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template
from typing import Any

_FOLDER = Path(__file__).parent


CHUNK = 1 << 20
"""Characters of the data that are escaped at a time: a page may have many millions."""


def pieces(encoded: Mapping[str, Any]) -> Iterator[str]:
    """Yield the page that shows the JSON form of a timeline, piece by piece.

    So it is never in memory as a whole.
    """
    template, style, script = (
        (_FOLDER / f"page.{suffix}").read_text("utf-8") for suffix in ("html", "css", "js")
    )
    before, after = (
        Template(part).substitute(
            style=style,
            script=script,
            policy=(
                f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
                "base-uri 'none'; form-action 'none'"
            ),
            title=escape(encoded["title"]),
            notice=escape(encoded["notice"]),
        )
        for part in template.split("${data}")
    )
    yield before
    data = json.dumps(encoded)
    for place in range(0, len(data), CHUNK):
        yield data[place : place + CHUNK].replace("<", "\\u003c")
    yield after


def _hash(text: str) -> str:
    """Return the hash of a script or style (Content Security Policy Level 3, section 2.3.1)."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
