"""Timelines for tests and pictures: an incident, a crowded room, and hostile texts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from bridge.page.report import pieces
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
)

START = 1_795_000_000_000
"""When the incident begins, in milliseconds since the epoch: 2026-11-18."""
MUC_USER = "http://jabber.org/protocol/muc#user"
FORBIDDEN = "<error><forbidden xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"
BODY = "<body>deploying api</body>"
ROOM = "ops@conference.example.org"
NOTICE = (
    "This page has names and words of people in the rooms. They are shown as data. Pseudonyms: off."
)
HOSTILE = (
    "</script><script>document.title='pwned'</script>",
    "<img src=https://evil.example/x.png onerror=alert(1)>",
    "javascript:alert(1)//{{script}} {{policy}} ${alert(1)} &lt;b&gt; ]]> <!-- \\u003c",
    '" onmouseover="alert(1)" x="',
    "\\u{202E}txt.exe \\u{200B}" + "Z" + "\u0301" * 60 + "algo",
    "W" * 3_000,
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \U0001f468\u200d\U0001f469",
    "__proto__",
    "=cmd|'/C calc'!A0",
)
"""Texts that strangers may write, as the page gets them: hidden characters are escaped already."""
OURS = {"id", "event", "zone", "source", "severity", "outcome", "direction"}
"""The fields that hold words of ours only; a kind too."""


def _at(seconds: float) -> int:
    return START + round(seconds * 1_000)


def _bars(names: Sequence[str], times: Sequence[float]) -> list[Bar]:
    """Stages one after the other, which begin at these times; the last is the end."""
    spans = zip(names, pairwise(map(_at, times)), strict=True)
    return [Bar(name, begin, end, ok=True) for name, (begin, end) in spans]


def incident() -> Timeline:
    """A bot stops answering: its message is refused, it is put out, and the connection is lost."""
    names = ("McpDebug", "Alice", "Bob", "Carol", "Robot", "Dave", "Erin", "Mallory")
    away = 900
    lanes = []
    for number, name in enumerate(names):
        role = "moderator" if name == "Alice" else "participant"
        affiliation = {"Alice": "owner", "Robot": "member"}.get(name, "none")
        spans: tuple[Presence, ...] = (
            Presence(_at(0 if number < 5 else 60 * number), None, role, affiliation, number < 5),
        )
        if name == "Robot":
            spans = (
                Presence(_at(0), _at(240), "participant", "member", before=True),
                Presence(_at(240), _at(412), "visitor", "member"),
                Presence(
                    _at(412), _at(413.2), "visitor", "member", left='kicked by Alice: "flooding"'
                ),
                Presence(_at(1_500), None, "participant", "member"),
            )
        elif name == "Mallory":
            spans = (Presence(_at(420), _at(700), role, "none", left="kicked by Alice"),)
        elif name == "Carol":
            spans = (Presence(_at(0), _at(610), role, "none", before=True, left="left"),)
        elif name == "McpDebug":
            spans = (
                Presence(_at(0), _at(away), role, "none", left="lost the connection"),
                Presence(_at(away + 185), None, role, "none"),
            )
        lanes.append(Lane(name, name == "McpDebug", spans))
    entries: list[Event] = []

    def add(seconds: float, kind: str, text: str, lane: int | None = None, **more: Any) -> str:
        id_ = f"e{len(entries) + 1}"
        entries.append(replace(Event(id_, _at(seconds), kind, text, lane), **more))
        return id_

    def say(seconds: float, lane: int, body: str, **more: Any) -> str:
        xml = (
            f"<message from='{ROOM}/{names[lane]}' to='debug@example.org/b' type='groupchat' "
            f"id='m{len(entries)}'><body>{body}</body></message>"
        )
        text = f"<{names[lane]}> {body}"
        more = {"direction": "in", "body": body, "stanzas": (xml,)} | more
        return add(seconds, "message", text, lane, **more)

    add(0, "subject", "* subject by <Alice>: Deployments on Wednesday", 1, direction="in")
    for number in range(40):
        say(8 + 5.5 * number, 1 + number % 4, f"status of job {number}: green")
    add(
        240,
        "role",
        "* <Robot> is now (visitor, member) by <Alice>: too loud",
        4,
        direction="in",
        severity="warning",
        stanzas=(f"<presence from='{ROOM}/Robot'><x xmlns='{MUC_USER}'></x></presence>",),
    )
    say(300, 2, "!deploy api")
    refused = add(
        301.4,
        "error",
        "returned, id r17: forbidden: Visitors are not allowed to send messages to all occupants",
        4,
        direction="in",
        severity="error",
        stanzas=(
            f"<message to='{ROOM}' type='groupchat' id='r17'>{BODY}</message>",
            f"<message from='{ROOM}' type='error' id='r17'>{FORBIDDEN}</message>",
        ),
    )
    silent = say(330, 2, "!deploy api")
    say(371, 2, "Robot? anybody?")
    add(413.2, "leave", "* <Robot> left by <Alice> [kicked]: flooding", 4, severity="warning")
    add(420, "join", "* <Mallory> is here (participant, none)", 7)
    for number in range(12):
        say(430 + 18 * number, (1, 2, 5, 7)[number % 4], f"who restarts the robot? {number}")
    add(610, "leave", "* <Carol> left: good night", 3)
    add(700, "leave", "* <Mallory> left by <Alice> [kicked]: bye", 7, severity="warning")
    add(
        away,
        "connection",
        "waiting: The server ended the stream. [system-shutdown] Next attempt in 60 s.",
        severity="error",
    )
    add(away + 185, "gap", "* what was said in these three minutes may be missing")
    add(1_500, "join", "* <Robot> is here (participant, member)", 4)
    say(1_512, 4, "deploying api")
    findings = (
        Finding(
            "refused",
            "error",
            "The room returned a message of Robot: forbidden. Robot has no voice.",
            "Give Robot the role participant, or make the room unmoderated.",
            "XEP-0045, 7.5",
            _at(301.4),
            refused,
        ),
        Finding(
            "silent",
            "warning",
            "Robot was asked at 330 s and sent nothing within 10 s.",
            "Look into the log of the program.",
            "XEP-0045, 7.4",
            _at(330),
            silent,
        ),
    )
    names_of_stages = ("resolving", "connecting", "securing", "authenticating", "joining")
    times = [0.0, 0.02, 0.13, 0.37, 0.68, 0.77]
    again = [away + 183 + 0.3 * number for number in range(6)]
    stages = [*_bars(names_of_stages, times), Bar("waiting", _at(away), _at(away + 60), ok=True)]
    stages += [
        Bar("connecting", _at(away + 60), _at(away + 70), ok=False, detail="no answer in 10 s")
    ]
    stages += [Bar("waiting", _at(away + 70), _at(away + 183), ok=True, detail="attempt 2")]
    stages += _bars(names_of_stages, again)
    room = Part(
        "p1",
        "room",
        ROOM,
        _at(0),
        _at(1_600),
        lanes=tuple(lanes),
        events=tuple(entries),
        gaps=(Hole(_at(away), _at(away + 185), "what was said may be missing"),),
        findings=findings,
        verdict="The room returned a message of Robot: forbidden. Robot has no voice.",
    )
    connection = Part(
        "p2", "connection", "debug@example.org", _at(0), _at(1_600), stages=tuple(stages)
    )
    return Timeline(
        "log",
        f"{ROOM}, 2026-11-18",
        _at(1_700),
        "xmpp-debug-bridge 2.0",
        "utc",
        False,
        NOTICE,
        (room, connection),
    )


def crowd(occupants: int = 200, events: int = MAX_EVENTS) -> Timeline:
    """A room with many occupants and as many events as a page may have."""
    lanes = [
        Lane(
            f"Occupant {number}",
            number == 0,
            (
                Presence(_at(7 * number), _at(7 * number + 40_000), "participant", "none"),
                Presence(_at(7 * number + 41_000), None, "participant", "none"),
            ),
        )
        for number in range(occupants)
    ]
    entries = []
    for number in range(events):
        lane = number * 7 % occupants
        name, body = lanes[lane].name, f"message {number}: " + "lorem ipsum dolor " * (number % 9)
        xml = f"<message from='{ROOM}/{name}' type='groupchat' id='m{number}'><body>{body}</body>"
        entries.append(
            Event(
                f"e{number + 1}",
                _at(8.6 * number),
                "message",
                f"<{name}> {body}",
                lane,
                "in",
                body,
                "error" if number % 997 == 0 else "",
                stanzas=(f"{xml}</message>",),
            )
        )
    to = _at(8.6 * events)
    part = Part("p1", "room", ROOM, _at(0), to, lanes=tuple(lanes), events=tuple(entries))
    return replace(incident(), title=f"{ROOM}, a busy day", parts=(part,), left_out=123_456)


def as_html(encoded: Mapping[str, Any]) -> str:
    """The page that shows the JSON form of a timeline."""
    return "".join(pieces(encoded))


def filled(value: Any, text: str, field: str = "") -> Any:
    """A page in its JSON form in which every field that strangers have a say in holds `text`."""
    match value:
        case dict():
            return {name: filled(item, text, name) for name, item in value.items()}
        case list():
            return [filled(item, text, field) for item in value]
        case str() if field not in OURS and value not in {"room", "connection", "message"}:
            return text
    return value
