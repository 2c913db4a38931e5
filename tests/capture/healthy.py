"""Streams of clients that do nothing wrong, as many and as different as are asked for."""

import re
from collections.abc import Callable
from itertools import count
from random import Random
from typing import NamedTuple

from tests.capture.logs import ACCOUNT, HEADER, LOGIN

OPEN = f">>> {HEADER}\n<<< {HEADER}\n".replace("<<< <stream:stream", "<<< <stream:stream id='s1'")
BY_SCRAM = "\n".join(LOGIN[2:7]) + f"\n{OPEN}"
BY_PASSWORD = f"""
{LOGIN[2].replace("<mechanism>", "<mechanism>PLAIN</mechanism><mechanism>")}
>>> <auth xmlns='{{sasl}}' mechanism='PLAIN'>AGJvdABzM2NyM3Q=</auth>
<<< <success xmlns='{{sasl}}'/>
{OPEN}"""
BY_SASL2 = """
<<< <stream:features><authentication xmlns='urn:xmpp:sasl:2'><mechanism>SCRAM-SHA-1</mechanism>
    <inline><bind xmlns='urn:xmpp:bind:0'/></inline></authentication></stream:features>
>>> <authenticate xmlns='urn:xmpp:sasl:2' mechanism='SCRAM-SHA-1'><initial-response>biwsbj1ib3Q=
    </initial-response><bind xmlns='urn:xmpp:bind:0'/></authenticate>
<<< <challenge xmlns='urn:xmpp:sasl:2'>cj14</challenge>
>>> <response xmlns='urn:xmpp:sasl:2'>Yz1iaXdz</response>
<<< <success xmlns='urn:xmpp:sasl:2'><authorization-identifier>{account}
    </authorization-identifier><bound xmlns='urn:xmpp:bind:0'/></success>
<<< <stream:features/>
>>> <presence/>"""
WITH_TLS = f"""
<<< <stream:features><starttls xmlns='{{tls}}'><required/></starttls></stream:features>
>>> <starttls xmlns='{{tls}}'/>
<<< <proceed xmlns='{{tls}}'/>
{OPEN}"""
BOUND = f"""
{LOGIN[9].replace("</stream", "<sm xmlns='urn:xmpp:sm:3'/></stream")}
{LOGIN[10]}
{LOGIN[11]}"""
ENABLED = """
>>> <enable xmlns='{sm}' resume='true'/>
<<< <enabled xmlns='{sm}' id='x' resume='true'/>"""
PRESENT = """
>>> <presence><priority>5</priority></presence>
<<< <presence from='{account}' to='{account}'><priority>5</priority></presence>"""
RESUMED = f"""
{OPEN}{BY_PASSWORD}
<<< <stream:features><sm xmlns='{{sm}}'/></stream:features>
>>> <resume xmlns='{{sm}}' previd='x' h='9'/>
<<< <resumed xmlns='{{sm}}' previd='x' h='3'/>"""
SEATED = """
<<< <presence from='{room}/{who}' to='{account}'><x xmlns='{user}'>
    <item affiliation='none' role='participant'/>{codes}</x></presence>"""
GONE = """
<<< <presence from='{room}/{who}' to='{account}' type='unavailable'><x xmlns='{user}'>
    <item affiliation='none' role='none'/>{codes}</x></presence>"""
SUBJECT = """
<<< <message from='{room}' to='{account}' type='groupchat'><subject/></message>"""
OLD = """
<<< <message from='{room}/{who}' to='{account}' type='groupchat'><body>{old}</body>
    <delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/></message>"""
HEARD = """
<<<{pause} <message from='{room}/{who}' to='{account}' type='groupchat' id='{id}'>
    <body>{body}</body>{more}</message>"""
RENAMED = """
>>> <presence to='{room}/{me}x'/>
<<< <presence from='{room}/{me}' to='{account}' type='unavailable'><x xmlns='{user}'>
    <item nick='{me}x'/><status code='303'/><status code='110'/></x></presence>"""
DEEDS = """
<<<3 <message from='{room}/{who}' to='{account}' type='groupchat'><body>{me}: ping</body>
    {more}</message>
>>> <message to='{room}' type='groupchat' id='{id}'><body>{body}</body></message>
<<< <message from='{room}/{me}' to='{account}' type='groupchat' id='{id}'>
    <body>{body}</body></message>

>>>4 <message to='{room}' type='groupchat' id='{id}'><body>It is {id}.</body></message>
<<< <message from='{room}/{me}' to='{account}' type='groupchat' id='{id}'>
    <body>It is {id}.</body></message>

<<<3 <message from='{room}/{who}' to='{account}' type='chat'><body>{me}: psst</body>
    <x xmlns='{user}'/></message>
>>> <message to='{room}/{who}' type='chat'><body>yes?</body><x xmlns='{user}'/></message>

<<<3 <message from='ann@example.net/x' to='{account}' type='chat'><body>hi</body>
    <request xmlns='urn:xmpp:receipts'/></message>
>>> <message to='ann@example.net/x'><received xmlns='urn:xmpp:receipts'/></message>
>>> <message to='ann@example.net/x' type='chat'><body>hi</body></message>

<<< <iq type='get' id='{id}' to='{account}' from='{peer}'>{query}</iq>
>>> <iq type='result' id='{id}' to='{peer}'/>

<<< <iq type='get' id='{id}' to='{account}'>{query}</iq>
>>> <iq type='result' id='{id}'/>

>>>30 <iq type='get' id='{id}' to='{peer}'><ping xmlns='urn:xmpp:ping'/></iq>
<<< <iq type='result' id='{id}' from='{peer}' to='{account}'/>

>>>30 <iq type='get' id='{id}' to='{room}/{me}'><ping xmlns='urn:xmpp:ping'/></iq>
<<< <iq type='result' id='{id}' from='{room}/{me}' to='{account}'/>

>>>30 <iq type='get' id='{id}'><ping xmlns='urn:xmpp:ping'/></iq>
<<< <iq type='result' id='{id}' to='{account}'/>

>>> <iq type='set' id='{id}' to='{room}'><query xmlns='urn:xmpp:mam:2'/></iq>
<<< <message from='{room}' to='{account}'><result xmlns='urn:xmpp:mam:2' id='r'>
    <forwarded xmlns='urn:xmpp:forward:0'><message xmlns='jabber:client' from='{room}/Ann'
     type='groupchat'><body>{me}: ping</body></message></forwarded></result></message>
<<< <iq type='result' id='{id}' from='{room}' to='{account}'>
    <fin xmlns='urn:xmpp:mam:2' complete='true'/></iq>

<<< <presence from='{room}/{me}' to='{account}'><x xmlns='{user}'>
    <item affiliation='admin' role='moderator'/><status code='110'/></x></presence>

>>> <r xmlns='{sm}'/>
<<< <a xmlns='{sm}' h='0'/>
<<< <r xmlns='{sm}'/>
>>> <a xmlns='{sm}' h='0'/>

>>> <message to='{room}' type='groupchat'><reactions xmlns='urn:xmpp:reactions:0' id='x'>
    <reaction>👍</reaction></reactions></message>
>>> <message to='{room}' type='groupchat'>
    <composing xmlns='http://jabber.org/protocol/chatstates'/></message>
>>> <message to='{room}' type='groupchat'>
    <displayed xmlns='urn:xmpp:chat-markers:0' id='x'/></message>

<<<100 <presence from='ann@example.net/x' to='{account}'/>"""
"""What a client does or hears; a number is how many seconds pass before."""

NAMES = ("Ann", "Ben", "Zoë", "d&apos;Arc", "人")
CHOSEN = {
    "who": NAMES,
    "body": ("hello", "a &lt; b", 'it\'s "so"', "first\n\nthird line", "ä→ö", "<![CDATA[x]]>"),
    "old": ("old", "a &lt; b", "first\n\nthird", "ä→ö", "hi", "bye", "bot0: ping", "bot1: ping"),
    "peer": ("example.org", "room0@muc.example.org/Ann"),
    "pause": ("0.2", "5"),
    "more": (
        "",
        "<active xmlns='http://jabber.org/protocol/chatstates'/>",
        "<replace xmlns='urn:xmpp:message-correct:0' id='x'/>",
        "<stanza-id xmlns='urn:xmpp:sid:0' id='s' by='room@muc.example.org'/>",
    ),
    "query": (
        "<ping xmlns='urn:xmpp:ping'/>",
        "<query xmlns='http://jabber.org/protocol/disco#info'/>",
        "<query xmlns='jabber:iq:version'/>",
    ),
    "account": (ACCOUNT,),
    "sm": ("urn:xmpp:sm:3",),
    "sasl": ("urn:ietf:params:xml:ns:xmpp-sasl",),
    "tls": ("urn:ietf:params:xml:ns:xmpp-tls",),
    "user": ("http://jabber.org/protocol/muc#user",),
}
"""What a line leaves open, and from what chance chooses it."""


class Passed(NamedTuple):
    """A stanza of a stream, and how many seconds passed before it."""

    pause: float
    sent: bool
    xml: str


class Healthy:
    """One stream of a client, which is chosen by chance and has nothing wrong in it."""

    def __init__(self, random: Random) -> None:
        self.passed: list[Passed] = []
        self.was_put_out = False
        self._random = random
        self._ids = count(1)
        self._can_resume = False
        self._rooms: dict[str, str] = {}
        """The nickname in each room."""

    def live(self, deeds: int) -> list[Passed]:
        random = self._random
        self._log_in()
        for number in range(random.randint(1, 3)):
            self._join(f"room{number}@muc.example.org", f"bot{number}")
        for _ in range(deeds):
            deed = random.choice(POSSIBLE)
            if isinstance(deed, str):
                self._pass(deed)
            else:
                deed(self, *random.choice([*self._rooms.items()]))
        for room, me in [*self._rooms.items()][: random.randint(0, 3)]:
            self._leave(room, me)
        if random.random() < 0.7:
            self._pass(">>> </stream:stream>\n<<< </stream:stream>")
        return self.passed

    def _pass(self, text: str, room: str = "", me: str = "", **given: str) -> None:
        random = self._random
        if not room:
            room, me = random.choice([*self._rooms.items()] or [("", "")])
        chosen = {name: random.choice(values) for name, values in CHOSEN.items()}
        chosen |= {"room": room, "me": me, "codes": "", "id": f"i{next(self._ids)}"} | given
        for line in re.sub("\n    ", "", text).split("\n"):
            if line:
                way, _, xml = line.format(**chosen).partition(" ")
                pause = float(way[3:] or random.choice((0.01, 0.05, 0.3)))
                self.passed.append(Passed(pause, way[0] == ">", xml))

    def _log_in(self) -> None:
        random = self._random
        self._pass(OPEN)
        if random.random() < 0.4:
            self._pass(WITH_TLS)
        if random.random() < 0.4:
            self._pass(BY_SASL2)
            return
        self._pass(random.choice((BY_PASSWORD, BY_SCRAM)) + BOUND)
        if random.random() < 0.5:
            self._pass(ENABLED)
            self._can_resume = True
        self._pass(PRESENT)

    def _join(self, room: str, me: str) -> None:
        random = self._random
        muc = "<x xmlns='http://jabber.org/protocol/muc'/>"
        self._pass(f">>> <presence to='{room}/{me}'>{muc}</presence>")
        for who in random.sample(NAMES, 3):
            self._pass(SEATED, room, who=who)
        created = "<status code='201'/>" if random.random() < 0.2 else ""
        self._pass(SEATED, room, who=me, codes=f"<status code='110'/>{created}")
        for _ in range(random.randint(0, 4)):
            self._pass(OLD, room)
        self._pass(SUBJECT, room)
        self._rooms[room] = me

    def _leave(self, room: str, me: str) -> None:
        leave = f">>> <presence to='{room}/{me}' type='unavailable'/>"
        self._pass(leave + GONE, room, who=me, codes="<status code='110'/>")

    def others_talk(self, room: str, me: str) -> None:
        for _ in range(self._random.randint(1, 8)):
            self._pass(HEARD, room, me)

    def others_come_and_go(self, room: str, me: str) -> None:
        self._pass(SEATED, room, me, who="Ann")
        codes = self._random.choice(("", "<status code='307'/>"))
        self._pass(GONE, room, me, who="Ann", codes=codes)

    def take_another_nickname(self, room: str, me: str) -> None:
        self._pass(RENAMED, room, me)
        self._rooms[room] = f"{me}x"
        self._pass(SEATED, room, who=f"{me}x", codes="<status code='110'/>")

    def be_kicked_and_stay_away(self, room: str, me: str) -> None:
        if len(self._rooms) > 1:
            del self._rooms[room]
            self.was_put_out = True
            self._pass(GONE, room, who=me, codes="<status code='307'/><status code='110'/>")

    def leave_and_come_back(self, room: str, me: str) -> None:
        self._leave(room, me)
        self._join(room, me)

    def resume(self, room: str, me: str) -> None:
        if self._can_resume:
            self._pass(RESUMED, room, me)


POSSIBLE: tuple[str | Callable[[Healthy, str, str], None], ...] = (
    *DEEDS.split("\n\n"),
    *(Healthy.others_talk, Healthy.others_talk),
    Healthy.others_come_and_go,
    Healthy.take_another_nickname,
    Healthy.be_kicked_and_stay_away,
    Healthy.leave_and_come_back,
    Healthy.resume,
)
