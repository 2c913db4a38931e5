"""Calls the bridge's tools for one command, in a room and on a connection of its own."""

import argparse
import asyncio
import json
import os
import shlex
import sys
import termios
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeAlias

from bridge.commands.configuration import ReadSettings, run_with_settings, usable
from bridge.commands.exit import FAILURE, USAGE, UsageError
from bridge.commands.filters import room_of
from bridge.commands.send_rate import CountedRate
from bridge.logs import can_print, complain, open_log, show
from bridge.mcp.asking import Question
from bridge.mcp.context import Context
from bridge.mcp.errors import ArgumentError, ToolError
from bridge.mcp.jsonrpc import Object
from bridge.recording.recording import Recording
from bridge.settings.table import Configuration, Settings
from bridge.text import one_line
from bridge.tools.answers import option
from bridge.tools.entries import NOTICE
from bridge.tools.link import RoomLink
from bridge.tools.send import MAX_WAIT_SECONDS, xmpp_send
from bridge.views.output import display_of
from bridge.views.results import lines_of
from bridge.views.termination import taking_part, until_terminated
from bridge.xmpp.link.from_slixmpp import load
from bridge.xmpp.model.events import Phase
from bridge.xmpp.muc.participant import Participant

TERMINAL = "/dev/tty"
"""The controlling terminal, whatever stdin and stdout are."""

ENOUGH = 1_024
"""The most bytes of an answer that are read: a yes has fewer."""

GREETING_SECONDS = 1.0
"""We say nothing that is to be answered so soon after we came: a program may greet us just then."""

Call: TypeAlias = Callable[
    [argparse.Namespace, RoomLink, Configuration], Awaitable[tuple[dict[str, Any], int]]
]
"""Calls tools, and returns the result to show and the exit code."""


def run_call(
    parsed: argparse.Namespace, says: str | None, call: Call, *, must_show: bool = True
) -> int:
    """Run `call` in the room of `--room`, or the default room, and show its result.

    `says` is the text that `call` says in the room, if any. If a tool fails, its error is shown. A
    signal ends the call, and then we leave the room. Without `must_show`, a full or closed stdout
    has no effect on the call and the exit code.
    """

    async def run(parsed: argparse.Namespace, read: ReadSettings) -> int:
        configuration, settings = usable(read)
        if says is not None and configuration.read_only:
            source = configuration.source_of("BRIDGE_READ_ONLY")
            raise UsageError(f"BRIDGE_READ_ONLY in {source} forbids to say anything in a room")
        seconds = parsed.timeout + parsed.await_seconds
        if says is not None and seconds > MAX_WAIT_SECONDS:
            raise UsageError(
                f"--await and the {parsed.timeout:g} s for the room to send the text back are "
                f"{seconds:g} s together; the most is {MAX_WAIT_SECONDS}"
            )
        open_log("[Client]", configuration.log_level)
        try:
            async with _in_room(configuration, _alone(settings, parsed)) as link:
                link.read_only = configuration.read_only
                link.look_into(configuration, os.environ)
                result, code = await call(parsed, link, configuration)
        except ToolError as error:
            # The notice is for models that read a result.
            message = one_line(error.message.removesuffix(NOTICE).rstrip())
            hint = one_line(error.hint)
            complain(f"xmpp-bridge: {message}\n[{error.condition}] {hint}")
            return USAGE if isinstance(error, ArgumentError) else FAILURE
        if not can_print():
            return code
        if step := result.get("nextStep"):
            result["nextStep"] = {"command": step.get("command") or command_of(step, parsed)}
        lines = [json.dumps(result)] if parsed.json else lines_of(result, display_of(sys.stdout))
        return code if show(lines) or not must_show else FAILURE

    load()
    return run_with_settings(parsed, lambda *given: until_terminated(run(*given)))


def command_of(step: Mapping[str, Any], parsed: argparse.Namespace) -> str:
    """Return the command that does the same as the call of a tool, for a shell."""
    given = step["arguments"]
    nickname = given.get("nickname") or given.get("from") or ""
    who = [*["--"] * nickname.startswith("-"), *[nickname] * bool(nickname)]
    settings = ["--sandbox"] if parsed.sandbox else []
    settings += option("--env-file", str(parsed.env_file or ""))
    room = option("--room", parsed.room or "")
    message = option("--say", given.get("message", ""))
    words = {
        "xmppCheck": ["check", *settings],
        "xmppOccupants": ["watch", *settings, *room, "--kind", "join"],
        "xmppWait": ["watch", *settings, *room, "--first", *option("--from", nickname)],
        "xmppDiagnose": ["diagnose", *settings, *room, *who],
        "xmppSend": ["diagnose", *settings, *room, *message, *who],
    }
    return shlex.join(["xmpp-bridge", *words[step["tool"]]])


async def say(
    parsed: argparse.Namespace, link: RoomLink, configuration: Configuration, text: str, sender: str
) -> dict[str, Any]:
    """Say `text` as xmppSend does, within the rate of the settings and with the consent they want.

    With `--await`, only answers of `sender` count, if it is not empty. Raises `ToolError`.
    """
    account = str(link.participant.settings and link.participant.settings.jid)
    rate_in = configuration.source_of("BRIDGE_SEND_RATE")
    limiter = CountedRate(configuration.send_rate, rate_in, account)
    if configuration.confirm_send:
        limiter.confirm_in = configuration.source_of("BRIDGE_CONFIRM_SEND")
    if parsed.await_seconds:
        room = link.room()
        await room.first_join(asyncio.get_running_loop().time() + parsed.timeout)
        await asyncio.sleep(GREETING_SECONDS if room.room.phase is Phase.JOINED else 0)
    ask = partial(_ask, limiter.confirm_in)
    context = Context(lambda *_: None, lambda *_: None, lambda _: True, ask)
    waits = parsed.timeout, parsed.await_seconds
    return {**await xmpp_send(link, limiter, context, text, *waits, sender or None)}


def _alone(settings: Settings, parsed: argparse.Namespace) -> Settings:
    """Return the settings with one room: the others do not see us come and go."""
    room = settings.room if parsed.room is None else room_of(parsed.room, settings.rooms)
    return settings._replace(
        rooms=(room,),
        room_password=settings.password_of(room),  # only the default room has one
        nickname=f"{settings.nickname}-{parsed.command}",  # a bridge may be in the room already
    )


@asynccontextmanager
async def _in_room(configuration: Configuration, settings: Settings) -> AsyncIterator[RoomLink]:
    """Join the room in the background, and leave it at the end; record what happens there."""
    participant = Participant(settings, history=configuration.history)
    recording = Recording.of(participant, configuration)
    try:
        async with taking_part(participant):
            yield RoomLink(participant, recording)
    finally:
        if recording is not None:
            recording.close()


async def _ask(
    set_in: str, questions: Mapping[str, Question], seconds: float
) -> Mapping[str, Object]:
    """Ask the person at the terminal for consent, as BRIDGE_CONFIRM_SEND in `set_in` demands."""
    ((name, question),) = questions.items()
    loop, typed = asyncio.get_running_loop(), asyncio.Event()
    try:
        with open(TERMINAL, "r+b", buffering=0) as terminal:  # noqa: ASYNC230, PTH123 - no file
            termios.tcflush(terminal, termios.TCIFLUSH)  # a key pressed before is no answer
            terminal.write(f"{question.params['message']} [y/N] ".encode())
            loop.add_reader(terminal, typed.set)
            try:
                async with asyncio.timeout(seconds):
                    await typed.wait()
                answer = (terminal.read(ENOUGH) or b"").strip().lower()
            finally:
                loop.remove_reader(terminal)
    except (OSError, termios.error) as error:  # no terminal, or no answer in time
        raise ToolError(
            "Not sent: a person is to be asked before each message, and none is at a terminal.",
            condition="not-allowed",
            hint=f"Run it in a terminal. BRIDGE_CONFIRM_SEND in {set_in} wants that.",
        ) from error
    return {name: {"action": "accept" if answer in {b"y", b"yes"} else "decline"}}
