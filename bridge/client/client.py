"""The client's side of MCP: the handshake, requests, lists and calls of tools."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from bridge import __version__
from bridge.client.arguments import SHOWN_CHARACTERS, Parameter, parameters, prompt_parameters
from bridge.client.errors import RequestError, ServerError
from bridge.client.process import ServerProcess
from bridge.mcp import revisions
from bridge.mcp.jsonrpc import Json, compact, objects, parse
from bridge.mcp.revisions import Revision
from bridge.text import one_line

HANDSHAKE_SECONDS = 10.0
"""How long a server may take to answer the handshake; a program that speaks no MCP never does."""

MAX_PAGES = 100
"""The most pages of a list after the first: a server's list may never end."""

MAX_LIST_CHARACTERS = 4 * 1024 * 1024
"""After so many characters of JSON the client fetches no further page. In memory the values take 30
times as much."""

CLIENT_INFO = {"name": "xmpp-bridge client", "version": __version__}

FIRST_OFFER = revisions.HANDSHAKE[0]
"""The revision that a server is offered first: most servers support `initialize`."""

FALLBACK_OFFER = next(revision for revision in revisions.ALL if not revision.handshake)
"""The revision that a server is offered when it refuses `initialize`."""

MAX_ROUNDS = 20
"""How often a server may answer one request with questions before the request is given up."""

FillIn: TypeAlias = Callable[[Mapping[str, Json]], Awaitable[dict[str, Json]]]
"""Has a person fill in a form: takes the params of `elicitation/create`, and returns its result."""

LISTS = ("tools", "resources", "prompts")
"""The lists that a server may have, by MCP's names."""


@dataclass
class ServerCatalogue:
    """The server's lists as last read, for completion and for reading arguments."""

    definitions: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    """The tools as they were listed, by name."""
    tools: Mapping[str, tuple[Parameter, ...]] = field(default_factory=dict)
    prompts: Mapping[str, tuple[Parameter, ...]] = field(default_factory=dict)
    resources: Sequence[str] = ()
    nicknames: Sequence[str] = ()
    """The nicknames of the room's occupants, as last read."""


class Client:
    """Speaks MCP with one server."""

    def __init__(self, server: ServerProcess, wanted: Revision | None = None) -> None:
        """If `wanted` is None, `open` finds a revision that the server takes."""
        self.server = server
        self._wanted = wanted
        self.revision = FIRST_OFFER
        self.capabilities: Mapping[str, Json] = {}
        """The capabilities that the server declared; empty if it declared none."""
        self.catalogue = ServerCatalogue()
        self._fill_in: FillIn | None = None

    def take_forms(self, fill_in: FillIn) -> None:
        """Declare that a person can fill in forms, by `fill_in`. Call this before `open`."""
        self._fill_in = self.server.answering["elicitation/create"] = fill_in

    @property
    def _own_capabilities(self) -> dict[str, Json]:
        return {} if self._fill_in is None else {"elicitation": {}}

    async def open(self, *, seconds: float = HANDSHAKE_SECONDS) -> None:
        """Agree on a revision, with the handshake or without; raises `ServerError`."""
        try:
            async with asyncio.timeout(seconds):
                await self._agree()
        except TimeoutError as error:
            silent = f"no answer within {seconds:g} s: is it an MCP server?"
            raise ServerError(silent) from error

    async def _agree(self) -> None:
        refusals: list[RequestError] = []
        for offer in [self._wanted] if self._wanted else [FIRST_OFFER, FALLBACK_OFFER]:
            try:
                return await self._negotiate(offer)
            except RequestError as refusal:
                refusals.append(refusal)
        said = one_line(str(refusals[0]), SHOWN_CHARACTERS)
        raise ServerError(f"the server refused the handshake: {said}")

    async def _negotiate(self, revision: Revision) -> None:
        """Offer `revision` to the server; raises `RequestError`, `ServerError`."""
        if revision.handshake:
            offer = {"protocolVersion": revision.date, "capabilities": self._own_capabilities}
            result = await self.server.request("initialize", {**offer, "clientInfo": CLIENT_INFO})
            await self.server.notify("notifications/initialized")
        else:
            result = await self.server.request("server/discover", self._with_meta({}, revision))
        agreed = result if isinstance(result, dict) else {}
        date = str(agreed.get("protocolVersion", revision.date))
        if self._wanted and date != revision.date:
            spoken = one_line(date, SHOWN_CHARACTERS)
            raise ServerError(f"the server speaks {spoken} instead of {revision.date}")
        # If the server answers with a revision that we do not know, we speak the one we offered.
        self.revision = revisions.find(date) or revision
        capabilities = agreed.get("capabilities")
        self.capabilities = capabilities if isinstance(capabilities, dict) else {}

    async def request(self, method: str, params: Mapping[str, Json] | None = None) -> Any:
        """Return the result of a method of MCP; raises `RequestError`, `ServerError`.

        If the server has questions first, ask the person, and send the request again with the
        answers (2026-07-28, "Multi Round-Trip Requests").
        """
        sent = self._with_meta(params or {}, self.revision)
        result = await self.server.request(method, sent)
        for _ in range(MAX_ROUNDS):
            if not isinstance(result, dict) or result.get("resultType") != "input_required":
                return result
            answers = {"inputResponses": await self._answers(result.get("inputRequests"))}
            state = {"requestState": result["requestState"]} if "requestState" in result else {}
            result = await self.server.request(method, sent | answers | state)
        raise RequestError(f"the server asked for something {MAX_ROUNDS} times")

    async def _answers(self, questions: Json) -> dict[str, Json]:
        """Return the answers to the questions of a result, by the names of the questions."""
        answers: dict[str, Json] = {}
        for name, question in questions.items() if isinstance(questions, dict) else ():
            match question:
                case {"method": "elicitation/create", "params": dict(params)} if self._fill_in:
                    answers[name] = await self._fill_in(params)
                case _:
                    raise RequestError("the server asks for what this client lacks")
        return answers

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> Any:
        """Return the result of a tool; raises as `request` does."""
        return await self.request("tools/call", {"name": tool, "arguments": arguments})

    async def subscribe(self, uris: Sequence[str]) -> None:
        """Ask to be notified when one of these resources changes; raises as `request` does.

        Since 2026-07-28 that is one request, which lasts as long as the subscription.
        """
        if self.revision.handshake:
            for uri in uris:
                await self.request("resources/subscribe", {"uri": uri})
        else:
            wanted = {"resourceSubscriptions": [*uris]}
            await self.request("subscriptions/listen", {"notifications": wanted})

    async def structured_content(
        self, tool: str, arguments: Mapping[str, Json] | None = None
    ) -> dict[str, Any]:
        """Call a tool, and return its object; empty if the tool failed or returned no object."""
        try:
            result = await self.call(tool, arguments or {})
        except RequestError:
            return {}
        match result:
            case {"structuredContent": dict(content)}:
                return content
            case {"content": [{"text": str(text)}]}:  # before 2025-06-18
                with suppress(ValueError):
                    value = parse(text)
                    return value if isinstance(value, dict) else {}
        return {}

    async def list_all(self, kind: str) -> dict[str, Any]:
        """Return all pages of a list (`tools`, `resources`, `prompts`) as one result."""
        items: list[Json] = []
        params: dict[str, Json] = {}
        size = 0
        for _ in range(MAX_PAGES + 1):
            page = await self.request(f"{kind}/list", params)
            result = page if isinstance(page, dict) else {}
            items += objects(result, kind)
            cursor = result.get("nextCursor")
            size += len(compact(result))
            if not isinstance(cursor, str) or size > MAX_LIST_CHARACTERS:
                break
            params = {"cursor": cursor}
        return {**result, kind: items}

    async def read_catalogue(self) -> None:
        """Read the lists of tools, resources and prompts; a refused list counts as empty."""
        tools, resources, prompts = [await self._items(kind) for kind in LISTS]
        lists = self.catalogue
        lists.definitions = {str(tool.get("name")): tool for tool in tools}
        lists.tools = {k: parameters(v.get("inputSchema")) for k, v in lists.definitions.items()}
        lists.resources = [str(resource.get("uri")) for resource in resources]
        lists.prompts = {str(prompt.get("name")): prompt_parameters(prompt) for prompt in prompts}

    async def _items(self, kind: str) -> list[dict[str, Json]]:
        """Return all items of a list, none if the server refuses it."""
        if not self.capabilities or kind in self.capabilities:
            with suppress(RequestError):
                return objects(await self.list_all(kind), kind)
        return []

    def _with_meta(self, params: Mapping[str, Json], revision: Revision) -> dict[str, Json]:
        """Return `params` with the `_meta` that a revision without handshake requires."""
        if revision.handshake:
            return dict(params)
        meta: dict[str, Json] = {
            revisions.PROTOCOL_VERSION: revision.date,
            revisions.CLIENT_CAPABILITIES: self._own_capabilities,
            revisions.CLIENT_INFO: CLIENT_INFO,
        }
        return {"_meta": meta, **params}
