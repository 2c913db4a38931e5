"""A package of tools as somebody else would write it, with everything that tools can have."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Literal

from bridge.toolkit import (
    ArgumentError,
    Bounds,
    Completes,
    Configuration,
    Context,
    Interpret,
    RoomLink,
    ToolError,
    Toolset,
    prompt,
    resource,
    tool,
    visible,
)

sys.stderr.write("dice_tools is loaded\n")
sys.stdout.write("whatever is printed must not reach the client\n")


class Shape(Enum):
    """What a die looks like."""

    CUBE = "cube"
    SPHERE = "sphere"


@dataclass(frozen=True)
class Die:
    """One die."""

    sides: Annotated[int, Bounds(minimum=2, maximum=100)] = 6
    shape: Shape = Shape.CUBE
    labels: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Throw:
    """What came of it."""

    faces: list[int]
    total: Annotated[int, "the sum"]
    die: Die
    note_of_luck: str | None = None


@tool(title="Throw dice", open_world=False)
def throw_dice(
    die: Die,
    times: Annotated[int, Bounds(minimum=1, maximum=5), "how many throws"] = 1,
    luck: Literal["good", "bad"] | None = None,
    extra: list[int] | None = None,
) -> Throw:
    """Throw a die that always shows its highest number."""
    faces = [die.sides] * times + (extra or [])
    return Throw(faces, sum(faces), die, luck)


@tool("dice.say", title="Say a number", read_only=True, open_world=False)
def say(number: float) -> str:
    """Say a number. Returns it as text."""
    if number < 0:
        raise ArgumentError("no die shows that", condition="not-acceptable", hint="Above zero.")
    return f"{number:g}"


@tool(title="Lose a die", read_only=True)
def lose() -> str:
    """Fail as tools do."""
    raise ToolError("it fell under the table", condition="item-not-found", hint="Bend down.")


@tool(title="Roll for long", read_only=True)
async def roll_for_long(context: Context, /) -> str:
    """Tell how far it has rolled, until it is stopped."""
    context.progress(1, 2, "rolls")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        sys.stderr.write("the die was caught\n")
        raise
    return "never"


@tool(title="Where", read_only=True)
def where(link: RoomLink, configuration: Configuration, /) -> dict[str, Any]:
    """Tell which room the dice are in."""
    return {"room": visible(link.participant.room_jid), "rate": configuration.send_rate}


@tool(title="Throw and tell", read_only=True)
async def throw_and_tell(context: Context, /) -> Interpret[Throw]:
    """Throw a die, to be told in a sentence."""
    context.log("info", "thrown")
    return Interpret(Throw([6], 6, Die()), "Say it with joy.")


@resource("dice://last", title="Last throw")
def last() -> Throw:
    """The throw before this one."""
    return Throw([1], 1, Die())


def colours() -> list[str]:
    """What a die may be dyed in."""
    return ["red", "green"]


@prompt("bet", title="Bet")
def bet(colour: Annotated[str, "of the die", Completes(colours)]) -> str:
    """Ask for a bet."""
    return f"Bet on the {colour} die."


TOOLS = Toolset(
    "anything", (throw_dice, say, lose, roll_for_long, where, throw_and_tell), (last,), (bet,)
)


@tool("throw_dice", title="Throw loaded dice")
def throw_loaded() -> str:
    """Throw a six."""
    return "6"


LOADED = Toolset("loaded", (throw_loaded,))


class Ship:
    """Nothing that the bridge has."""


@tool(title="Sink", read_only=True)
def sink(ship: Ship, /) -> str:
    """Want what is not there."""
    return str(ship)


SUNKEN = Toolset("sunken", (sink,))
