"""Each command carried out: from what was typed to the server and back."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from bridge.console import shapes
from bridge.console.arguments import (
    Parameter,
    TypedError,
    of_prompt,
    parameters,
    read_arguments,
)
from bridge.console.client import SHOWN_CHARACTERS, Client
from bridge.console.commands import USAGES, Call, Command, Help, Raw, Show, Switch, Unclear
from bridge.console.completion import Known
from bridge.console.peer import RefusedError, Reply
from bridge.console.shapes import Answer, own_words
from bridge.escaping import one_line
from bridge.mcp import jsonrpc, revisions
from bridge.mcp.framing import Framing
from bridge.mcp.jsonrpc import Id, Json, Malformed, Notification, Request, Response

RAW_SECONDS = 5.0
"""How long an answer to a text that is no message is waited for: none may come."""

Asks: TypeAlias = Callable[[Parameter], Awaitable[str]]
"""Asks a person for an argument and returns what was typed."""

Hook: TypeAlias = Callable[[], Awaitable[None]]

FRAMINGS = {"lines": Framing.LINES, "headers": Framing.HEADERS}


class Errands:
    """Carries commands out, one after the other; `asks` is None where nobody can be asked."""

    def __init__(self, client: Client, known: Known, asks: Asks | None = None) -> None:
        self.known = known
        """What the server has, as far as it lists it; filled in here."""
        self.before_switch: Hook = _nothing
        self.after_switch: Hook = _nothing
        """Called around a change of revision: what is subscribed to in one ends with it."""
        self._client = client
        self._asks = asks
        self._tools: dict[str, Mapping[str, Json]] | None = None
        self._stale = False

    async def look_around(self) -> None:
        """Learn what the server has to offer; what it does not list is not there."""
        self._stale = False
        tools = await self._items("tools")
        self._tools = None if tools is None else {str(one.get("name")): one for one in tools}
        self.known.tools = {
            name: parameters(one.get("inputSchema")) for name, one in (self._tools or {}).items()
        }
        resources = await self._items("resources")
        self.known.resources = [str(one.get("uri")) for one in resources or ()]
        prompts = await self._items("prompts")
        self.known.prompts = {
            str(one.get("name")): of_prompt(one.get("arguments")) for one in prompts or ()
        }

    def lists_changed(self) -> None:
        """Look around again before the next command."""
        self._stale = True

    async def perform(self, command: Command) -> Answer:
        """Carry out `command`; raises `PeerError` when the server has ended."""
        if self._stale:
            await self.look_around()
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            return await self._perform(command)
        except TypedError as error:
            return own_words(str(error), failed=True)
        except RefusedError as refusal:
            return shapes.refused(refusal.error, str(refusal), clock() - began)

    async def _perform(self, command: Command) -> Answer:
        match command:
            case Call():
                return await self._call(command)
            case Show(kind=kind, name="") as show:
                reply = await self._client.listing(show.kind)
                return shapes.listed(kind, reply.result, reply.seconds)
            case Show(kind="tools", name=name):
                tool = (self._tools or {}).get(name)
                return self._no_tool(name) if tool is None else shapes.described(tool)
            case Show(kind="resources", name=uri):
                reply = await self._client.request("resources/read", {"uri": uri})
                return shapes.contents(reply.result, reply.seconds)
            case Show(name=name, typed=typed):
                return await self._prompt(name, typed)
            case Raw(text=text):
                return await self._raw(text)
            case Switch(what=what, to=to):
                return await self._switch(what, to)
            case Unclear(why=why):
                return own_words(one_line(why), failed=True)
            case Help():
                return own_words(HELP, raw={one.line: one.meaning for one in USAGES})
            case _:
                raise AssertionError(command)

    async def _call(self, command: Call) -> Answer:
        name, shortcut = command.tool, command.shortcut
        if self._tools is not None and name not in self._tools:
            return self._no_tool(name)
        known = self.known.tools.get(name, ())
        main, verbatim = None, False
        if shortcut is not None:
            main, verbatim = shortcut.argument, shortcut.verbatim
        elif len(known) == 1 and known[0].types == ("string",):
            main = known[0].name
        arguments = read_arguments(command.typed, known, main, verbatim=verbatim)
        if self._asks is not None and not command.typed.startswith("{"):
            every = shortcut is None and not command.typed
            arguments |= await self._asked(
                [one for one in known if one.name not in arguments and (every or one.required)]
            )
        return _called(await self._client.call(name, arguments))

    async def _asked(self, wanted: Sequence[Parameter]) -> dict[str, Json]:
        assert self._asks is not None
        arguments: dict[str, Json] = {}
        for one in wanted:
            text = (await self._asks(one)).strip()
            if text:
                arguments[one.name] = one.read(text)
            elif one.required and "string" in one.types:
                arguments[one.name] = ""
        return arguments

    async def _prompt(self, name: str, typed: str) -> Answer:
        known = self.known.prompts.get(name, ())
        arguments = read_arguments(typed, known)
        if self._asks is not None and not typed:
            arguments |= await self._asked(known)
        params = {"name": name, "arguments": arguments}
        reply = await self._client.request("prompts/get", params)
        return shapes.prompt(reply.result, reply.seconds)

    async def _raw(self, text: str) -> Answer:
        ids, lost = _expected(text)
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(RAW_SECONDS if lost else None):
                responses = await self._client.peer.raw(
                    text.encode("utf-8", "replace"), ids, lost=lost
                )
        except TimeoutError:
            return own_words(f"no answer within {RAW_SECONDS:g} s", failed=True)
        if not responses:
            return own_words("(sent; nothing answers that)")
        wire = [json.loads(jsonrpc.encode(one)) for one in responses]
        failed = any(_fails(one) for one in responses)
        came: Json = wire[0] if len(wire) == 1 else wire
        return Answer(came, came, seconds=clock() - began, failed=failed)

    async def _switch(self, what: str, to: str) -> Answer:
        client = self._client
        match what:
            case "framing" if to:
                if to not in FRAMINGS:
                    return own_words("The framings are lines and headers.", failed=True)
                client.peer.framing = FRAMINGS[to]
            case "bare" if to:
                if to not in {"on", "off"}:
                    return own_words("Type /bare, /bare on or /bare off.", failed=True)
                client.dialect = replace(client.dialect, bare=to == "on")
            case "bare":
                client.dialect = replace(client.dialect, bare=not client.dialect.bare)
            case "revision" if to:
                revision = revisions.find(to)
                if revision is None:
                    dates = ", ".join(one.date for one in revisions.ALL)
                    return own_words(f"The revisions are {dates}.", failed=True)
                await self.before_switch()
                try:
                    agreed = await client.speak(revision)
                finally:
                    await self.after_switch()
                self._stale = True  # older revisions say less of each tool
                if agreed != to:
                    spoken = one_line(agreed, SHOWN_CHARACTERS)
                    return own_words(f"The server speaks {spoken} instead of {to}.", failed=True)
        if what == "framing":
            return own_words(f"framing: {client.peer.framing.value}")
        return own_words(f"speaking {client.dialect}")

    def _no_tool(self, name: str) -> Answer:
        return own_words(
            f"This server has no tool {one_line(name)}; /tools lists what it has.", failed=True
        )

    async def _items(self, kind: str) -> list[Mapping[str, Json]] | None:
        if self._client.capabilities and kind not in self._client.capabilities:
            return []
        try:
            result = (await self._client.listing(kind)).result
        except RefusedError:
            return None
        return [one for one in result[kind] if isinstance(one, dict)]


async def _nothing() -> None:
    """Do nothing: there is nobody to tell."""


def _called(reply: Reply) -> Answer:
    return shapes.called(reply.result, reply.seconds)


def _expected(text: str) -> tuple[list[Id], bool]:
    """Return the ids that `text` asks for answers to, and whether one without an id may come."""
    message = jsonrpc.decode(text)
    parts = message if isinstance(message, list) else [message]
    ids: list[Id] = []
    lost = not parts
    for one in parts:
        match one:
            case Request(id=id_):
                ids.append(id_)
            case Malformed(id=id_) if id_ is not None:
                ids.append(id_)
            case Malformed():
                lost = True
            case Response() | Notification():
                pass
    return ids, lost


def _fails(response: Response) -> bool:
    result = response.result
    return response.error is not None or (
        isinstance(result, dict) and result.get("isError") is True
    )


def _help() -> str:
    width = max(len(one.line) for one in USAGES)
    return "\n".join(f"{one.line:{width}}  {one.meaning}" for one in USAGES)


HELP = _help()
"""What `help` shows."""
