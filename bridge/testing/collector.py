"""Scenario files as tests of pytest: each is collected, played, and reported with its line."""

import asyncio
from collections.abc import Iterator
from inspect import isawaitable
from typing import Any

import pytest

from bridge.testing.actor import Actor
from bridge.testing.bot import BotProcess
from bridge.testing.errors import XmppTestError
from bridge.testing.scenario import Scenario, ScenarioError, Verbs, line_of, parse
from bridge.testing.server import Server

OBSERVER = "Observer"
"""The actor of the first steps, where these name none."""

LAST_LINES = 10
"""Of what the bot wrote, beside the reason of a failure; the report has more."""


async def _wait(_: Actor, seconds: float) -> None:
    """Do nothing for so many seconds."""
    await asyncio.sleep(seconds)


NO_VERBS = {"enter", "occupants", "report"}
VERBS: Verbs = {
    name.removeprefix("set_"): method
    for name, method in vars(Actor).items()
    if not name.startswith("_") and name not in NO_VERBS
} | {"fault": Server.fault, "wait": _wait}
"""What a step can be: all that an actor does, and what is beside the room."""


class ScenarioFile(pytest.File):
    """One file, which is one test."""

    def collect(self) -> "Iterator[ScenarioTest]":
        """Yield the test; raises `CollectError` with line and key of what is wrong in the file."""
        name = self.path.name.partition(".")[0]
        test: ScenarioTest = ScenarioTest.from_parent(self, name=name, callobj=_fixtures)
        try:
            test.text = self.path.read_text("utf-8")
            test.scenario = parse(test.text, VERBS)
        except (OSError, UnicodeDecodeError, ScenarioError) as error:
            raise self.CollectError(f"{self.path.name}: {error}") from None
        yield test


def _fixtures(xmpp_server: Server) -> None:
    """Name the fixtures of a scenario."""


class ScenarioTest(pytest.Function):
    """The scenario of a file."""

    text: str
    """Of the file."""
    scenario: Scenario
    taken = 0
    """How many steps were begun."""
    output = ""
    """What the bot wrote."""

    def runtest(self) -> None:
        """Play the scenario; raises `XmppTestError` if something else happens."""
        server = self.funcargs["xmpp_server"]
        assert isinstance(server, Server)
        # The loop that is current in this thread stays so: it may be another plugin's.
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            runner.run(self._play(server))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return what went wrong, in which line of the file; the traceback is for our mistakes."""
        # `ValueError` is for a pattern that is none, or a fault that there is not.
        if not isinstance(excinfo.value, XmppTestError | ValueError):
            return super().repr_failure(excinfo)
        where = "before the first step"
        if self.taken:
            verb = self.scenario.step[self.taken - 1].verb
            where = f"line {line_of(self.text, ('step', self.taken - 1, verb))}, {verb}"
        last = [f"  {one}" for one in self.output.splitlines()[-LAST_LINES:]]
        told = ["What the bot wrote at last:", *last] if last else []
        return "\n".join([f"{self.path.name}, {where}: {excinfo.value}", *told])

    def reportinfo(self) -> tuple[Any, int, str]:
        """Return where the scenario is."""
        return self.path, 0, self.name

    async def _play(self, server: Server) -> None:
        bot, first = self.scenario.bot, self.scenario.step[0].actor or OBSERVER
        owner = await server.actor(first)
        if bot is None:
            await self._take_steps(server, owner)
            return
        process = BotProcess(bot, self.path.parent, server.environment(bot.account or None))
        ended = asyncio.wrap_future(process.exited)
        playing = asyncio.create_task(self._take_steps(server, owner))
        try:
            await asyncio.wait((playing, ended), return_when=asyncio.FIRST_COMPLETED)
            # One that was told to go may end well.
            if ended.done() and (ended.result() or not self.taken):
                raise XmppTestError(f"the bot ended with exit code {ended.result()}.")
            await playing
        finally:
            playing.cancel()
            process.end()
            self.output = process.output()
            self.add_report_section("call", "bot", self.output)

    async def _take_steps(self, server: Server, actor: Actor) -> None:
        if (bot := self.scenario.bot) is not None:
            await actor.expect_join(bot.joins_as, within=bot.within)
        actors = {actor.nickname: actor}
        for step in self.scenario.step:
            self.taken += 1
            name = step.actor or actor.nickname
            if name not in actors:
                actors[name] = await server.actor(name)
            actor = actors[name]
            doing = VERBS[step.verb](server if step.verb == "fault" else actor, **step.arguments)
            if isawaitable(doing):
                await doing
            if step.verb == "leave":
                del actors[name]
