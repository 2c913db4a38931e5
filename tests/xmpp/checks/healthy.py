"""Weeks in healthy rooms of every kind, as events: people, their phones, and programs that do what
they should.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bridge.xmpp.model.events import Event
from tests.xmpp.checks.watching import came, left, said

KINDS = (
    *("busy", "moderated", "anonymous", "gatewayed", "two", "phones", "greeted", "announced"),
    *("secret", "agents", "quick", "three"),
)
WEEK = 7 * 86_400.0
WORDS = (  # noqa: SIM905 - as a list it would take forty lines
    "ok yes no lol hm the a server room is was down again who did that works for me see logs "
    "thanks great later tomorrow lunch why because it build bot maybe sure really"
).split()
COMMANDS = ("!ping", "!help", "!weather Rome", "!roll 2d6", ".uptime", "!seen Wilma")
PEOPLE = ("Wilma", "Fred", "Betty", "Barney", "Pebbles", "Dino")


@dataclass
class Week:
    kind: str
    people: Sequence[str]
    programs: Sequence[str]
    says: dict[str, bool]
    """Who says whether they are a program."""
    shown: bool = True
    """Whether the room shows accounts."""
    visitors: Sequence[str] = ()
    """People who may not speak, and do not."""
    events: list[tuple[float, Event]] = field(default_factory=list)


def week(seed: int) -> Week:
    """Return a week; the seed decides everything in it, its kind included."""
    chance = random.Random(seed)  # noqa: S311 - a test
    kind = KINDS[seed % len(KINDS)]
    people = PEOPLE[: {"two": 2, "three": 3}.get(kind) or chance.randint(3, len(PEOPLE))]
    programs = {
        "gatewayed": ["Gateway"],
        "greeted": ["Greeter", "Doorman"],
        "announced": ["Git", "CI", "Feed"],
        "agents": ["Agent"],
    }.get(kind, [])
    programs += ["Robot", "Helper"]
    says = {who: True for who in programs if chance.random() < 0.7}
    says |= {who: False for who in people if chance.random() < 0.7}
    made = Week(kind, people, programs, says, kind != "anonymous" and chance.random() < 0.7)
    if kind == "moderated":
        made.visitors = ("Reader", "Lurker")[: chance.randint(0, 2)]
    scenes = [_talk] * (12 if kind == "busy" else 6) + [_asks] * 8 + [_restarts] * 2
    scenes += {
        "two": [_chat] * 12,
        "three": [_chat] * 8 + [_between_two] * 4,
        "phones": [_phone] * 3,
        "gatewayed": [_relayed] * 8,
        "greeted": [_welcomes] * 8,
        "announced": [_announces] * 12,
        "secret": [_secretly] * 8,
        "agents": [_tests] * 8,
        "quick": [_hurries] * 8,
    }.get(kind, [])
    starts = sorted(chance.sample(range(int(WEEK) // 1_800), len(scenes)))
    chance.shuffle(scenes)
    for start, scene in zip(starts, scenes, strict=True):
        made.events += scene(chance, made, start * 1_800.0)
    made.events.sort(key=lambda event: event[0])
    return made


def _words(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=min(20, 1 + int(chance.expovariate(0.25)))))


def _typed(chance: random.Random, text: str) -> float:
    """Return how long a person takes to read, to think, and to type this."""
    return 0.7 + len(text) / chance.uniform(4, 9) + chance.expovariate(1 / 4)


def _answered(chance: random.Random) -> float:
    return chance.choice((0.03, 0.05, 0.1, 0.3)) + chance.expovariate(20)


def _lines(
    chance: random.Random, people: Sequence[str], at: float, count: int
) -> Iterator[tuple[float, Event]]:
    who = chance.choice(people)
    for _ in range(count):
        if chance.random() < 0.75:
            who = chance.choice([it for it in people if it != who])
        text = _words(chance)
        at += _typed(chance, text)
        yield at, said(who, text)


def _talk(chance: random.Random, room: Week, at: float) -> Iterator[tuple[float, Event]]:
    speakers = chance.sample(room.people, chance.randint(2, len(room.people)))
    yield from _lines(chance, speakers, at, chance.randint(5, 40))


def _chat(chance: random.Random, room: Week, at: float) -> Iterator[tuple[float, Event]]:
    for number in range(chance.randint(10, 40)):
        text = chance.choice(WORDS)
        at += _typed(chance, text)
        yield at, said(room.people[number % len(room.people)], text)


def _between_two(chance: random.Random, room: Week, at: float) -> Iterator[tuple[float, Event]]:
    """Two people try a bot in turn: one asks it, the other says what they think of the answer."""
    asks, looks = chance.sample(room.people, 2)
    named = chance.choice(("!weather", "Robot: weather"))
    for _ in range(chance.randint(6, 20)):
        at += chance.uniform(0.5, 4)
        yield at, said(asks, f"{named} {chance.choice(WORDS)}")
        at += _answered(chance)
        yield at, said("Robot", f"Robot answers {_words(chance)}")
        at += chance.uniform(0.5, 4)
        yield at, said(looks, chance.choice(WORDS))


def _asks(chance: random.Random, room: Week, at: float) -> Iterator[tuple[float, Event]]:
    """Somebody gives commands, impatiently, while others talk now and then."""
    who, command = chance.choice(room.people), chance.choice(COMMANDS)
    if chance.random() < 0.3:
        command = f"Robot: {command[1:]}"
    for _ in range(chance.choice((1, 1, 2, 3, 5))):
        at += 1.2 + chance.expovariate(1 / 4)
        yield at, said(who, command)
        answers = ["Robot", "Helper"] if command == "!help" else ["Robot"]
        for program in answers:
            yield at + _answered(chance), said(program, f"{program} answers {command[1:]}")
    if chance.random() < 0.5:
        yield from _lines(chance, room.people, at, 3)


def _restarts(chance: random.Random, room: Week, at: float) -> Iterator[tuple[float, Event]]:
    """A program is started anew, once or twice, and says so."""
    who = chance.choice(("Robot", "Helper"))
    for _ in range(chance.randint(1, 2)):
        at += chance.uniform(30, 600)
        yield at, left(who, *chance.choice(((), (333,))))
        at += chance.uniform(0.5, 20)
        yield at, came(who)
        if chance.random() < 0.5:
            yield at + 0.1, said(who, f"{who} is back.")


def _phone(chance: random.Random, room: Week, at: float) -> Iterator[tuple[float, Event]]:
    """A phone loses its connection every few minutes, for hours."""
    who, every = chance.choice(room.people), chance.uniform(60, 900)
    for _ in range(chance.randint(3, 20)):
        at += every * chance.uniform(0.95, 1.05)
        yield at, left(who, 333)
        yield at + chance.uniform(1, 20), came(who)


def _relayed(chance: random.Random, room: Week, at: float) -> Iterator[tuple[float, Event]]:
    """What people in another network say, relayed by one program; it may answer one of ours."""
    here = [*room.people[:2], "there 1", "there 2"]
    for time, event in _lines(chance, here, at, chance.randint(5, 40)):
        text = event.body  # type: ignore[union-attr]
        who = event.sender  # type: ignore[union-attr]
        if who in room.people:
            yield time, event
        else:
            yield time, said("Gateway", f"<{who}> {text}")


def _welcomes(chance: random.Random, room: Week, at: float) -> Iterator[tuple[float, Event]]:
    """People come, after a netsplit all at once, and two programs greet each."""
    people = chance.sample(room.people, chance.randint(1, len(room.people)))
    text = chance.choice(("Welcome!", "Welcome, {}!"))
    for number, who in enumerate(people):
        yield at + number * 0.01, left(who, 333)
    at += chance.uniform(5, 60)
    apart = chance.choice((0.001, 0.5, 5.0))
    for number, who in enumerate(people):
        yield at + number * apart, came(who)
        for program in ("Greeter", "Doorman"):
            wait = chance.uniform(0.1, 0.6)
            yield at + number * apart + wait, said(program, text.format(who))


def _announces(chance: random.Random, room: Week, at: float) -> Iterator[tuple[float, Event]]:
    """Programs announce what happens elsewhere: pushes, builds, items of feeds."""
    for number in range(chance.randint(1, 4)):
        at += 15 + chance.expovariate(1 / 120)
        yield at, said("Git", f"push {chance.randrange(10**6)} by {chance.choice(PEOPLE)}")
        yield at + chance.uniform(0.2, 3), said("CI", f"build {number} started")
        yield at + chance.uniform(4, 60), said("CI", "Build passed")
    for number in range(chance.randint(0, 6)):
        yield at + 100 + number * 0.05, said("Feed", f"{_words(chance)} {number}")


def _secretly(chance: random.Random, room: Week, at: float) -> Iterator[tuple[float, Event]]:
    """Two people write to each other with encryption; one of them writes in the clear, too."""
    pair = chance.sample(room.people, 2)
    for number in range(chance.randint(4, 20)):
        at += _typed(chance, chance.choice(WORDS))
        yield at, said(pair[number % 2], "", encrypted="OMEMO")
        if number % 2 and chance.random() < 0.3:
            at += _typed(chance, "!ping")
            yield at, said(pair[1], text := chance.choice((_words(chance), "!ping")))
            if text == "!ping":
                yield at + _answered(chance), said("Robot", "Robot answers ping")
    yield from _asks(chance, room, at)


def _tests(chance: random.Random, room: Week, at: float) -> Iterator[tuple[float, Event]]:
    """The agent of another debug bridge tries a bot: as fast as a program, in words of its own."""
    for number in range(chance.randint(3, 30)):
        at += chance.uniform(0.2, 1.5)
        asked = chance.choice((chance.choice(COMMANDS), f"Robot: what about {number}?"))
        yield at, said("Agent", asked)
        at += _answered(chance)
        yield at, said("Robot", f"Robot answers {number}")


def _hurries(chance: random.Random, room: Week, at: float) -> Iterator[tuple[float, Event]]:
    """Somebody asks a quick bot again and again."""
    who, command = chance.choice(room.people), chance.choice(COMMANDS)
    for _ in range(chance.randint(5, 40)):
        at += chance.uniform(0.3, 3)
        yield at, said(who, command)
        at += 0.02 + chance.expovariate(100)
        yield at, said("Robot", f"Robot answers {command[1:]}")
