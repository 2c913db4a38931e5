"""Streams of clients that do nothing wrong, as many and as different as are asked for."""

from collections.abc import Callable
from itertools import count
from random import Random
from typing import NamedTuple

from tests.capture.logs import ACCOUNT, BIND, HEADER, SASL, USER

MUC = "http://jabber.org/protocol/muc"
SM = "urn:xmpp:sm:3"
SASL2 = "urn:xmpp:sasl:2"
NAMES = ("Ann", "Ben", "Zoë", "d'Arc", "人")
WORDS = ("hello", "a &lt; b", 'it\'s "so"', "first\n\nthird line", "ä→ö", "<![CDATA[x]]>", "bye")


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
            random.choice(DEEDS)(self)
        for room in list(self._rooms)[: random.randint(0, 3)]:
            self._leave(room)
        if random.random() < 0.7:
            self._say("</stream:stream>")
            self._hear("</stream:stream>")
        return self.passed

    def _say(self, xml: str, pause: float | None = None) -> None:
        self._pass(True, xml, pause)

    def _hear(self, xml: str, pause: float | None = None) -> None:
        self._pass(False, xml, pause)

    def _pass(self, sent: bool, xml: str, pause: float | None) -> None:
        usual = self._random.choice((0.01, 0.05, 0.3))
        self.passed.append(Passed(usual if pause is None else pause, sent, xml))

    def _id(self) -> str:
        return f"i{next(self._ids)}"

    def _room(self) -> tuple[str, str]:
        if not self._rooms:
            self._join("lobby@muc.example.org", "bot")
        return self._random.choice(list(self._rooms.items()))

    def _log_in(self) -> None:
        random = self._random
        self._open()
        if random.random() < 0.4:
            tls = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls>"
            self._hear(f"<stream:features>{tls}</stream:features>")
            self._say("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
            self._hear("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
            self._open()
        if random.random() < 0.4:
            self._log_in_by_sasl2()
            return
        names = "".join(f"<mechanism>{name}</mechanism>" for name in ("SCRAM-SHA-1", "PLAIN"))
        self._hear(
            f"<stream:features><mechanisms xmlns='{SASL}'>{names}</mechanisms></stream:features>"
        )
        if random.random() < 0.5:
            self._say(f"<auth xmlns='{SASL}' mechanism='PLAIN'>AGJvdABzM2NyM3Q=</auth>")
        else:
            self._say(f"<auth xmlns='{SASL}' mechanism='SCRAM-SHA-1'>biwsbj1ib3Qscj14</auth>")
            self._hear(f"<challenge xmlns='{SASL}'>cj14</challenge>")
            self._say(f"<response xmlns='{SASL}'>Yz1iaXdz</response>")
        self._hear(f"<success xmlns='{SASL}'/>")
        self._open()
        self._bind()

    def _log_in_by_sasl2(self) -> None:
        inline = "<inline><bind xmlns='urn:xmpp:bind:0'/></inline>"
        mechanisms = f"<mechanism>SCRAM-SHA-1</mechanism>{inline}"
        self._hear(
            f"<stream:features><authentication xmlns='{SASL2}'>{mechanisms}</authentication>"
            "</stream:features>"
        )
        self._say(
            f"<authenticate xmlns='{SASL2}' mechanism='SCRAM-SHA-1'><initial-response>"
            "biwsbj1ib3Qscj14</initial-response><bind xmlns='urn:xmpp:bind:0'/></authenticate>"
        )
        self._hear(f"<challenge xmlns='{SASL2}'>cj14</challenge>")
        self._say(f"<response xmlns='{SASL2}'>Yz1iaXdz</response>")
        self._hear(
            f"<success xmlns='{SASL2}'><authorization-identifier>{ACCOUNT}"
            "</authorization-identifier><bound xmlns='urn:xmpp:bind:0'/></success>"
        )
        self._hear("<stream:features/>")
        self._say("<presence/>")

    def _open(self) -> None:
        self._say(HEADER)
        self._hear(HEADER.replace(" to=", " id='s1' from="))

    def _bind(self) -> None:
        random, id_ = self._random, self._id()
        self._hear(f"<stream:features><bind xmlns='{BIND}'/><sm xmlns='{SM}'/></stream:features>")
        self._say(f"<iq type='set' id='{id_}'><bind xmlns='{BIND}'/></iq>")
        self._hear(
            f"<iq type='result' id='{id_}' to='{ACCOUNT}'><bind xmlns='{BIND}'><jid>{ACCOUNT}"
            "</jid></bind></iq>"
        )
        if random.random() < 0.5:
            self._say(f"<enable xmlns='{SM}' resume='true'/>")
            self._hear(f"<enabled xmlns='{SM}' id='x' resume='true'/>")
            self._can_resume = True
        self._say("<presence><priority>5</priority></presence>")
        self._hear(f"<presence from='{ACCOUNT}' to='{ACCOUNT}'><priority>5</priority></presence>")

    def _join(self, room: str, nickname: str) -> None:
        random = self._random
        self._say(f"<presence to='{room}/{nickname}'><x xmlns='{MUC}'/></presence>")
        given = nickname
        for name in random.sample(NAMES, 3):
            self._seat(room, name)
        codes = "<status code='110'/>"
        if random.random() < 0.2:
            codes += "<status code='201'/>"
        self._seat(room, given, codes)
        for _ in range(random.randint(0, 4)):
            self._hear(
                f"<message from='{_attribute(room, random.choice(NAMES))}' to='{ACCOUNT}' "
                f"type='groupchat'><body>{random.choice((*WORDS, nickname + ': ping'))}</body>"
                "<delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/></message>"
            )
        self._hear(f"<message from='{room}' to='{ACCOUNT}' type='groupchat'><subject/></message>")
        self._rooms[room] = nickname

    def _seat(self, room: str, name: str, codes: str = "", *, type_: str = "") -> None:
        item = f"<item affiliation='none' role='{'none' if type_ else 'participant'}'/>"
        kind = f" type='{type_}'" if type_ else ""
        self._hear(
            f"<presence from='{_attribute(room, name)}' to='{ACCOUNT}'{kind}>"
            f"<x xmlns='{USER}'>{item}{codes}</x></presence>"
        )

    def _leave(self, room: str) -> None:
        nickname = self._rooms.pop(room)
        self._say(f"<presence to='{room}/{nickname}' type='unavailable'/>")
        self._seat(room, nickname, "<status code='110'/>", type_="unavailable")

    def talk_of_others(self) -> None:
        room, _ = self._room()
        for _ in range(self._random.randint(1, 8)):
            self._hear_groupchat(room, self._random.choice(WORDS), self._random.choice((0.2, 5)))

    def _hear_groupchat(self, room: str, body: str, pause: float | None = None) -> None:
        random = self._random
        more = random.choice(
            (
                "",
                "<active xmlns='http://jabber.org/protocol/chatstates'/>",
                f"<replace xmlns='urn:xmpp:message-correct:0' id='{self._id()}'/>",
                "<stanza-id xmlns='urn:xmpp:sid:0' id='s' by='room@muc.example.org'/>",
            )
        )
        self._hear(
            f"<message from='{_attribute(room, random.choice(NAMES))}' to='{ACCOUNT}' "
            f"type='groupchat' id='{self._id()}'><body>{body}</body>{more}</message>",
            pause,
        )

    def answer_a_command(self) -> None:
        room, nickname = self._room()
        self._hear_groupchat(room, f"{nickname}: ping", 3)
        self._speak(room, nickname, self._random.choice(WORDS))

    def _speak(self, room: str, nickname: str, body: str, pause: float | None = None) -> None:
        told = f"type='groupchat' id='{self._id()}'><body>{body}</body></message>"
        self._say(f"<message to='{room}' {told}", pause)
        self._hear(f"<message from='{room}/{nickname}' to='{ACCOUNT}' {told}")

    def announce(self) -> None:
        self._speak(*self._room(), f"It is {self._id()}.", 4)

    def answer_in_private(self) -> None:
        room, nickname = self._room()
        who = _attribute(room, self._random.choice(NAMES))
        self._hear(
            f"<message from='{who}' to='{ACCOUNT}' type='chat'><body>{nickname}: psst</body>"
            f"<x xmlns='{USER}'/></message>",
            3,
        )
        self._say(f"<message to='{who}' type='chat'><body>yes?</body><x xmlns='{USER}'/></message>")

    def answer_a_friend(self) -> None:
        self._hear(
            f"<message from='ann@example.net/x' to='{ACCOUNT}' type='chat'><body>hi</body>"
            "<request xmlns='urn:xmpp:receipts'/></message>",
            3,
        )
        self._say("<message to='ann@example.net/x'><received xmlns='urn:xmpp:receipts'/></message>")
        self._say("<message to='ann@example.net/x' type='chat'><body>hi</body></message>")

    def be_asked(self) -> None:
        id_ = self._id()
        room, _ = self._room()
        query = self._random.choice(
            (
                "<ping xmlns='urn:xmpp:ping'/>",
                "<query xmlns='http://jabber.org/protocol/disco#info'/>",
                "<query xmlns='jabber:iq:version'/>",
            )
        )
        from_ = self._random.choice((" from='example.org'", "", f" from='{room}/Ann'"))
        self._hear(f"<iq type='get' id='{id_}' to='{ACCOUNT}'{from_}>{query}</iq>")
        self._say(f"<iq type='result' id='{id_}'{from_.replace('from', 'to')}/>")

    def ask(self) -> None:
        id_ = self._id()
        room, nickname = self._room()
        to = self._random.choice((" to='example.org'", "", f" to='{room}/{nickname}'"))
        self._say(f"<iq type='get' id='{id_}'{to}><ping xmlns='urn:xmpp:ping'/></iq>", 30)
        from_ = to.replace("to=", "from=")
        self._hear(f"<iq type='result' id='{id_}'{from_} to='{ACCOUNT}'/>")

    def ask_the_archive(self) -> None:
        id_ = self._id()
        room, nickname = self._room()
        self._say(f"<iq type='set' id='{id_}' to='{room}'><query xmlns='urn:xmpp:mam:2'/></iq>")
        for body in (f"{nickname}: ping", "old"):
            self._hear(
                f"<message from='{room}' to='{ACCOUNT}'><result xmlns='urn:xmpp:mam:2' id='r'>"
                "<forwarded xmlns='urn:xmpp:forward:0'><message xmlns='jabber:client' "
                f"from='{room}/Ann' type='groupchat'><body>{body}</body></message></forwarded>"
                "</result></message>"
            )
        self._hear(
            f"<iq type='result' id='{id_}' from='{room}' to='{ACCOUNT}'>"
            "<fin xmlns='urn:xmpp:mam:2' complete='true'/></iq>"
        )

    def see_others_come_and_go(self) -> None:
        room, _ = self._room()
        name = self._random.choice(NAMES)
        self._seat(room, name)
        self._seat(
            room, name, self._random.choice(("", "<status code='307'/>")), type_="unavailable"
        )

    def get_another_role(self) -> None:
        room, nickname = self._room()
        self._hear(
            f"<presence from='{room}/{nickname}' to='{ACCOUNT}'><x xmlns='{USER}'>"
            "<item affiliation='admin' role='moderator'/><status code='110'/></x></presence>"
        )

    def take_another_nickname(self) -> None:
        room, nickname = self._room()
        new = f"{nickname}x"
        self._say(f"<presence to='{room}/{new}'/>")
        codes = "<status code='303'/><status code='110'/>"
        self._hear(
            f"<presence from='{room}/{nickname}' to='{ACCOUNT}' type='unavailable'>"
            f"<x xmlns='{USER}'><item nick='{new}'/>{codes}</x></presence>"
        )
        self._seat(room, new, "<status code='110'/>")
        self._rooms[room] = new

    def be_kicked_and_stay_away(self) -> None:
        if len(self._rooms) > 1:
            room, nickname = self._room()
            del self._rooms[room]
            self.was_put_out = True
            self._seat(
                room, nickname, "<status code='307'/><status code='110'/>", type_="unavailable"
            )

    def leave_and_come_back(self) -> None:
        room, nickname = self._room()
        self._leave(room)
        self._join(room, nickname)

    def acknowledge(self) -> None:
        self._say(f"<r xmlns='{SM}'/>")
        self._hear(f"<a xmlns='{SM}' h='3'/>")
        self._hear(f"<r xmlns='{SM}'/>")
        self._say(f"<a xmlns='{SM}' h='9'/>")

    def resume(self) -> None:
        if not self._can_resume:
            return
        self._open()
        names = "<mechanism>PLAIN</mechanism>"
        self._hear(
            f"<stream:features><mechanisms xmlns='{SASL}'>{names}</mechanisms></stream:features>"
        )
        self._say(f"<auth xmlns='{SASL}' mechanism='PLAIN'>AGJvdABzM2NyM3Q=</auth>")
        self._hear(f"<success xmlns='{SASL}'/>")
        self._open()
        self._hear(f"<stream:features><sm xmlns='{SM}'/></stream:features>")
        self._say(f"<resume xmlns='{SM}' previd='x' h='9'/>")
        self._hear(f"<resumed xmlns='{SM}' previd='x' h='3'/>")

    def mark_and_react(self) -> None:
        room, _ = self._room()
        for payload in (
            "<reactions xmlns='urn:xmpp:reactions:0' id='x'><reaction>👍</reaction></reactions>",
            "<composing xmlns='http://jabber.org/protocol/chatstates'/>",
            "<displayed xmlns='urn:xmpp:chat-markers:0' id='x'/>",
        ):
            self._say(f"<message to='{room}' type='groupchat'>{payload}</message>")

    def be_quiet(self) -> None:
        self._hear(f"<presence from='ann@example.net/x' to='{ACCOUNT}'/>", 100)


def _attribute(room: str, name: str) -> str:
    return f"{room}/{name.replace(chr(39), '&apos;')}"


DEEDS: tuple[Callable[[Healthy], None], ...] = (
    Healthy.talk_of_others,
    Healthy.talk_of_others,
    Healthy.answer_a_command,
    Healthy.answer_a_command,
    Healthy.announce,
    Healthy.answer_in_private,
    Healthy.answer_a_friend,
    Healthy.be_asked,
    Healthy.ask,
    Healthy.ask_the_archive,
    Healthy.see_others_come_and_go,
    Healthy.get_another_role,
    Healthy.take_another_nickname,
    Healthy.be_kicked_and_stay_away,
    Healthy.leave_and_come_back,
    Healthy.acknowledge,
    Healthy.resume,
    Healthy.mark_and_react,
    Healthy.be_quiet,
)
