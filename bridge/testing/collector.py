"""Makes a pytest test of each scenario file: collects it, plays it, names the line that failed."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest

from bridge.testing.actor import Actor, ActorProxy
from bridge.testing.bot import BotProcess
from bridge.testing.errors import XmppTestError
from bridge.testing.scenario import ScenarioError, Verbs, line_of, parse
from bridge.testing.server import FixtureServer
from bridge.text import visible

OBSERVER = "Observer"
"""The actor of the first steps, if these name none."""

LAST_LINES = 50
"""Last lines of the bot's output in a failure: enough for a traceback and what led to it."""


NO_VERBS = {"enter", "occupants", "played", "report", "sees"}
VERBS: Verbs = {
    name.removeprefix("set_"): method
    for name, method in vars(Actor).items()
    if not name.startswith("_") and name not in NO_VERBS
} | {"fault": FixtureServer.fault}
"""The verbs of a step, with the methods that do them."""


class ScenarioTest(pytest.Function):
    """The test that plays a scenario."""

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the file, the line, and the test's name for the heading of a failure."""
        return self.path, 0, self.name


class ScenarioFile(pytest.File):
    """One file, which is one test."""

    def collect(self) -> Iterator[pytest.Function]:
        """Yield the test; raises `CollectError` with line and key of what is wrong in the file."""
        try:
            self.text = self.path.read_text("utf-8")
            self.scenario = parse(self.text, VERBS)
        except (OSError, UnicodeDecodeError, ScenarioError) as error:
            raise self.CollectError(visible(f"{self.path.name}: {error}")) from None
        name = self.path.name.partition(".")[0]
        yield ScenarioTest.from_parent(self, name=name, callobj=self.play)

    def play(self, xmpp_server: FixtureServer) -> None:
        """Play the scenario; fail with the line of the step that went wrong."""
        self.taken, self.output = 0, ""  # the number of steps begun, and what the bot wrote
        try:
            # A loop that is set for this thread stays set: it may be another plugin's.
            with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
                runner.run(self._play(xmpp_server))
        # `ValueError` is for a fault without its seconds, or a name that no account can have.
        except (XmppTestError, ValueError) as error:
            where = "before the first step"
            if self.taken:
                verb = self.scenario.step[self.taken - 1].verb
                where = f"line {line_of(self.text, ('step', self.taken - 1, verb))}, {verb}"
            message = [f"{self.path.name}, {where}: {error}"]
            if last := self.output.splitlines()[-LAST_LINES:]:
                message += ["What the bot wrote at last:", *(f"  {line}" for line in last)]
            raise pytest.fail.Exception(visible("\n".join(message)), pytrace=False) from None

    async def _play(self, server: FixtureServer) -> None:
        bot, first = self.scenario.bot, self.scenario.step[0].actor or OBSERVER
        owner = await server.actor(first)
        if bot is None:
            await self._take_steps(server, owner)
            return
        process = BotProcess(bot, self.path.parent, server.environment(bot.account or None))
        ended = asyncio.create_task(asyncio.to_thread(process.wait))
        playing = asyncio.create_task(self._take_steps(server, owner))
        try:
            await asyncio.wait((playing, ended), return_when=asyncio.FIRST_COMPLETED)
            # The bot may end with exit code 0 once the steps have begun: they may tell it to go.
            if ended.done() and (ended.result() or not self.taken):
                raise XmppTestError(f"the bot ended with exit code {ended.result()}.")
            await playing
        finally:
            playing.cancel()
            process.end()
            self.output = process.output()

    async def _take_steps(self, server: FixtureServer, actor: ActorProxy) -> None:
        if (bot := self.scenario.bot) is not None:
            with _timed(server, actor.nickname, "expect_join", {"nickname": bot.joins_as}):
                await actor.expect_join(bot.joins_as, within=bot.within)
        actors = {actor.nickname: actor}
        for step in self.scenario.step:
            self.taken += 1
            name = step.actor or actor.nickname
            if name not in actors:
                actors[name] = await server.actor(name)
            actor = actors[name]
            whose = server if step.verb == "fault" else actor
            with _timed(server, name, step.verb, step.arguments):
                doing = getattr(whose, VERBS[step.verb].__name__)(**step.arguments)
                if isawaitable(doing):
                    await doing
            if step.verb == "leave":
                del actors[name]


@contextmanager
def _timed(
    server: FixtureServer, actor: str, verb: str, arguments: Mapping[str, Any]
) -> Iterator[None]:
    """Note the step that the `with` block takes, for the page."""
    began, ok = time.time(), False
    given = {name.rstrip("_"): value for name, value in arguments.items()}
    try:
        yield
        ok = True
    finally:
        server.steps.append((actor, verb, given, began, time.time(), ok))
