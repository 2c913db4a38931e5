"""Real bots behind tap do each wrong, and tap names it as it happens."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.capture.deeds import DEEDS, Deed
from tests.capture.program import Clock
from tests.capture.stage import Stage, secured_sandbox, staged
from tests.capture.test_libraries import ATTEMPTS, command
from tests.servers.server import XmppServer
from tests.tap.tapping import Tap, tapped

KINDS = {
    "A: the login": ("a wrong password", "no mechanism in common", "a login given up"),
    "B: what ended it, and what did not come back": (
        # First, since a period shows only as long as the client has no other streams.
        *("cut off every two minutes", "cut off", "came back without its room"),
        *("a forbidden character", "closed after a silence", "one resource twice"),
        *("acknowledgements that do not come", "its request never answered"),
    ),
    "E: how far it got": ("TLS not begun", "never joined", "a negative priority"),
    "others: what the room did": ("kicked", "chat to a room", "silent", "a ping never answered"),
}
"""What bots struggle with, by the kinds of the reports that it was taken from, and deeds of each.

Of A, channel binding and the flag y are in `test_listener`; so are E where the server says nothing,
and all of F, components.
"""


async def unnamed(stage: Stage, taps: list[Tap], deeds: Mapping[str, Deed]) -> str:
    """What tap did not name of what the bot did."""
    missing = []
    for name, deed in deeds.items():
        (tap,) = taps
        for _ in range(ATTEMPTS):
            before = len(tap.shown)
            try:
                await stage.do(deed)
            except TimeoutError as error:
                told = [str(error)]
                continue
            await tap.is_left()
            tap.witness.pause()
            tap.witness.capture.finish()
            told = [f"{each.name}: {each.message} {each.hint}" for each in tap.shown[before:]]
            right = [each for each in told if each.startswith(deed.rule) and deed.words in each]
            if right if deed.rule else not told:
                break
        else:
            missing.append("\n".join([name, *told]))
    return "\n\n".join(missing)


@asynccontextmanager
async def behind_tap(
    library: str, server: XmppServer | None, folder: Path
) -> AsyncIterator[tuple[Stage, list[Tap]]]:
    taps: list[Tap] = []

    @asynccontextmanager
    async def between(through: Mapping[str, str], clock: Clock) -> AsyncIterator[dict[str, str]]:
        settings = {"XMPP_USERNAME": "bot", "XMPP_PASSWORD": "x", "MUC_ROOM": "r@localhost"}
        async with tapped({**settings, **through}, folder / "tap", clock=clock.seconds) as tap:
            taps.append(tap)
            yield {
                **through,
                "XMPP_SERVICE": f"xmpp://127.0.0.1:{tap.port}",
                "XMPP_TLS_CA_FILE": str(tap.anchor),
                "NODE_EXTRA_CA_CERTS": str(tap.anchor),
            }

    async with AsyncExitStack() as stack:
        at = (server, []) if server else await stack.enter_async_context(secured_sandbox())
        run = staged(at[0], command(library, folder), at[1], between)
        yield await stack.enter_async_context(run), taps


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("library", ["slixmpp", "xmpp.js"])
async def test_a_wrong_of_each_kind_is_named(library: str, kind: str, tmp_path: Path) -> None:
    async with behind_tap(library, None, tmp_path) as (stage, taps):
        deeds = {name: DEEDS[name] for name in KINDS[kind] if library not in DEEDS[name].without}
        assert await unnamed(stage, taps, deeds) == ""


@pytest.mark.long
@pytest.mark.parametrize("server", ["prosody", "ejabberd", "sandbox"])
@pytest.mark.parametrize("library", ["slixmpp", "xmpp.js", "Profanity"])
async def test_each_wrong_of_a_real_bot_is_named_and_nothing_in_its_healthy_hour(
    library: str, server: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    real = None if server == "sandbox" else request.getfixturevalue(server)
    async with behind_tap(library, real, tmp_path) as (stage, taps):
        deeds = {
            name: deed
            for name, deed in DEEDS.items()
            # Nothing of a bound login passes, and Prosody 0.12 checks the flag y on TLS 1.2 alone,
            # while tap speaks TLS 1.3 with it.
            if not {"binding", "flag"} & {*deed.words.replace("channel ", "").split()}
            # A break is named as it happens; that the session is resumed shows only later.
            if name != "a break, and the session resumed"
            if server in deed.on and library not in deed.without
        }
        # A period shows only as long as the client has no other streams.
        first = "cut off every two minutes"
        deeds = {first: deeds.pop(first), **deeds}
        if library == "Profanity":
            deeds = {name: DEEDS[name] for name in ("never joined", "kicked", "silent")}
        assert await unnamed(stage, taps, deeds) == ""
