"""The picture of the page in the README: an incident as a browser shows it.

python -m docs.page_picture    opens the page of tests/page/incident.json and writes docs/page.png
"""

import json
import struct
import tempfile
import zlib
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from bridge.page.chronicle import Chronicle, Course
from bridge.page.pseudonyms import Pseudonyms
from bridge.page.timeline import encode
from bridge.text import seconds_of
from tests.page.chromium import chromium, showing

PICTURE = Path(__file__).with_name("page.png")
RECORDED = Path(__file__).parent.parent / "tests" / "page" / "incident.json"
"""What a recorder noted in one room: events in their exact form, with the stanzas behind them."""
ROOM = "ops@conference.example.org"
WIDTH, HEIGHT = 1_280, 600
KEYWORD = b"iTXtDescription\0\0\0\0\0"
"""What is before the description of a picture: a chunk with a text in UTF-8 (PNG, 11.3.3.4)."""
END = struct.pack(">I4sI", 0, b"IEND", zlib.crc32(b"IEND"))
"""The last chunk of a picture."""


def incident() -> dict[str, Any]:
    """Return the page of the incident, as `log --report` makes it."""
    chronicle, room = Chronicle(Pseudonyms(on=False)), Course("room", ROOM)
    for row in json.loads(RECORDED.read_text("utf-8")):
        seconds = seconds_of(row["at"])
        assert seconds is not None
        stanzas = [row["stanza"]] if "stanza" in row else []
        chronicle.take(room, seconds, row["event"], observer="bridge", room=ROOM, stanzas=stanzas)
    return encode(chronicle.timeline("log", [room], room.end / 1_000))


def draw(browser: Browser, folder: Path) -> bytes:
    """Return the picture of what a reader sees first, with all that is written there."""
    with showing(
        browser, folder, incident(), width=WIDTH, height=HEIGHT, timezone_id="UTC"
    ) as window:
        drawn = window.page.locator("svg text").all_text_contents()
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
