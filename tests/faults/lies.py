"""Scripts of a server that is honest up to one step, and there says something else."""

from dataclasses import replace

from tests.faults import scripted_server as scripted
from tests.faults.scripted_server import HONEST, Script, Step, Wire


def at_features(*xml: str | bytes) -> Script:
    """What comes in the place of the first stream header."""

    async def step(wire: Wire) -> None:
        await wire.header()
        await scripted.saying(*xml)(wire)

    return replace(HONEST, authenticate=step)


def offering(*mechanisms: str) -> Step:
    """Offer these logins, and say nothing more."""

    async def step(wire: Wire) -> None:
        await wire.open(scripted.mechanisms(*mechanisms))
        await wire.gone()

    return step


def instead_of_challenge(*xml: str) -> Script:
    """What comes when the client has begun to log in."""

    async def step(wire: Wire) -> None:
        await wire.open(scripted.mechanisms("SCRAM-SHA-256", "PLAIN"))
        await wire.element("auth")
        await scripted.saying(*xml)(wire)

    return replace(HONEST, authenticate=step)


def instead_of_bound(*xml: str) -> Script:
    """What comes when the client has asked for a resource; `{id}` in it is that of the request."""

    async def step(wire: Wire) -> None:
        await wire.open(f"<bind xmlns='{scripted.BIND}'/>")
        id_ = (await wire.element("iq")).get("id", "")
        await scripted.saying(*(each.replace("{id}", id_) for each in xml))(wire)

    return replace(HONEST, bind=step)


def instead_of_presence(*xml: str) -> Script:
    """What comes when the client has asked to be let into the room."""

    async def step(wire: Wire) -> None:
        await wire.element("presence")
        await scripted.saying(*xml)(wire)

    return replace(HONEST, join=step)


def once_joined(*xml: str | bytes) -> Script:
    """What comes when the client is in the room."""
    return replace(HONEST, stand=scripted.saying(*xml))
