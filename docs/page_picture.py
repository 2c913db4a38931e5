"""The picture of the page in the README: an incident as a browser shows it.

python -m docs.page_picture    opens the page of tests/page/incident.json and writes docs/page.png
"""

import json
import struct
import tempfile
import zlib
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from bridge.page.chronicle import Chronicle
from bridge.page.pseudonyms import Pseudonyms
from bridge.page.recorded import RecordedPage
from bridge.page.timeline import encode
from bridge.store.database import Observer, Recorded
from tests.page.chromium import chromium, showing

PICTURE = Path(__file__).with_name("page.png")
RECORDED = Path(__file__).parent.parent / "tests" / "page" / "incident.json"
"""What `xmpp-bridge record` wrote while `tests/page/session.py` was played."""
WIDTH, HEIGHT = 1_280, 680
KEYWORD = b"iTXtDescription\0\0\0\0\0"
"""What is before the description of a picture: a chunk with a text in UTF-8 (PNG, 11.3.3.4)."""
END = struct.pack(">I4sI", 0, b"IEND", zlib.crc32(b"IEND"))
"""The last chunk of a picture."""


async def _walk(rows: list[Recorded]) -> AsyncIterator[Recorded]:
    for row in rows:
        yield row


def incident() -> dict[str, Any]:
    """Return the page of the session, as `log --report` makes it."""
    page = RecordedPage(Chronicle(Pseudonyms(on=False)), [])
    rows = [
        Recorded(0, row["at"], row["room"], row["event"], Observer(*row["observer"]), row["shared"])
        for row in json.loads(RECORDED.read_text("utf-8"))
    ]

    async def walk(*_: object, **options: Any) -> Any:
        stanzas = [row for row in rows if row.event["kind"] == "stanza"]
        return _walk(stanzas if options.get("stanzas") else [])

    reading = page.look_back(walk, None, None)
    with suppress(StopIteration):  # it waits for nothing, and a browser's loop may be running
        reading.send(None)
    happened = sorted((row for row in rows if row.event["kind"] != "stanza"), key=lambda it: it.at)
    for row in happened:
        page.take(row)
    return encode(page.timeline(happened[-1].at))


def draw(browser: Browser, folder: Path) -> bytes:
    """Return the picture of what a reader sees first, with all that is written there."""
    with showing(
        browser, folder, incident(), width=WIDTH, height=HEIGHT, timezone_id="UTC"
    ) as window:
        drawn = window.page.locator(".drawing span").all_text_contents()
        said = window.page.locator(".part, aside").all_inner_texts()
        chunk = KEYWORD + "\n".join([*drawn, *said]).encode()
        framed = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
        return window.page.screenshot().removesuffix(END) + framed + END


def description(picture: bytes) -> str:
    """Return what is written in a picture."""
    before, keyword, text = picture.partition(KEYWORD)
    length = int.from_bytes(before[-4:]) - len(keyword) + 4
    return text[:length].decode()


if __name__ == "__main__":
    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        PICTURE.write_bytes(draw(browser, Path(folder)))
