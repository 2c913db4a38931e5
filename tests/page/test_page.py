"""The page as a text: what a browser may run in it, and where the texts of strangers are."""

import json
import re
from base64 import b64encode
from dataclasses import fields, replace
from hashlib import sha256
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import bridge
from bridge.page.attendance import MAX_LANES
from bridge.page.chronicle import MAX_BODY_CHARACTERS, MAX_WEIGHT
from bridge.page.timeline import (
    MAX_EVENTS,
    Bar,
    Event,
    Finding,
    Hole,
    Lane,
    Part,
    Presence,
    Timeline,
    encode,
)
from tests.page.samples import HOSTILE, as_html, crowd, filled, incident

DATA = re.compile(r'<script type="application/json" id="data">([^<]*)</script>')


INCIDENT = encode(incident())


@pytest.mark.parametrize(
    "encoded", [INCIDENT, encode(crowd(9, 90)), *(filled(INCIDENT, text) for text in HOSTILE)]
)
def test_the_page_holds_exactly_the_json_form(encoded: dict[str, Any]) -> None:
    data = DATA.search(as_html(encoded))
    assert data is not None
    assert json.loads(data[1]) == encoded
    assert data[1].isascii()


def test_the_policy_allows_the_one_script_and_the_one_style_and_nothing_else() -> None:
    html = as_html(INCIDENT)
    policy = unescape(
        re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)[0]
    )
    allowed = dict(directive.split(" ", 1) for directive in policy.split("; "))
    for tag in ("script", "style"):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = b64encode(sha256(text.encode()).digest()).decode()
        assert allowed.pop(f"{tag}-src") == f"'sha256-{digest}'"
    assert allowed == {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"}


@pytest.mark.parametrize("text", HOSTILE)
def test_a_strangers_text_is_data_wherever_it_stands(text: str) -> None:
    html = as_html(filled(INCIDENT, text))
    harmless = as_html(INCIDENT)
    tags = re.compile(r"<[a-z/!]+", re.IGNORECASE)
    assert tags.findall(html) == tags.findall(harmless)
    assert "<" not in text or text not in html


def test_what_has_its_default_is_absent_and_all_else_is_in_camel_case() -> None:
    entry = Event("e1", 5, "message", "<A> b", lane=0)
    lane = Lane("A", self_=True, spans=(Presence(1, before=True),))
    part = Part("p1", "room", "r@x", 1, 9, lanes=(lane,), events=(entry,))
    timeline = Timeline("log", "t", 1, "b", "utc", False, "n", (part,), left_out=2)
    assert {"format", "madeAt", "leftOut", "pseudonyms"} <= encode(timeline).keys()
    assert not {"leftOut", "verdict"} & encode(replace(timeline, left_out=0)).keys()
    lanes = [{"name": "A", "self": True, "spans": [{"from": 1, "before": True}]}]
    events = [{"id": "e1", "at": 5, "kind": "message", "text": "<A> b", "lane": 0}]
    told = {"id": "p1", "kind": "room", "title": "r@x", "from": 1, "to": 9}
    assert encode(timeline)["parts"] == [{**told, "lanes": lanes, "events": events}]


def test_the_document_names_every_field_of_the_json_form() -> None:
    text = Path(bridge.__file__).parent.parent.joinpath("docs/page.md").read_text("utf-8")
    form = text.partition("## The JSON form")[2]
    named = set(re.findall("`([a-zA-Z]+)`", form))
    used: set[str] = {"format"}
    for kind in (Timeline, Part, Lane, Presence, Event, Bar, Hole, Finding):
        for field in fields(kind):
            head, *tail = field.name.rstrip("_").split("_")
            used.add(head + "".join(map(str.capitalize, tail)))
    assert used <= named
    for limit in (MAX_EVENTS, MAX_LANES, MAX_BODY_CHARACTERS, MAX_WEIGHT):
        assert f"{limit:,}" in text
