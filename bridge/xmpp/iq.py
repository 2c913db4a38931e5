"""Sends IQ requests and archive queries on a stream and hands the answers to whoever waits.

Requests that are sent to us are answered by `stanzas.reply_to`.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import TypeAlias
from xml.etree.ElementTree import Element

from bridge.settings.table import Settings
from bridge.xmpp import stanzas
from bridge.xmpp.errors import XmppError

UnlessEnded: TypeAlias = Callable[["asyncio.Future[Element]"], Awaitable[Element]]
"""Awaits a future that the stream completes; raises `ConnectionFailedError` if it ends first."""


class IqError(XmppError):
    """An IQ request was answered with an error."""

    def __init__(self, error: stanzas.StanzaError) -> None:
        self.error = error
        super().__init__(error.text or error.condition)


class TooManyResultsError(XmppError):
    """An archive sent more results than the caller takes."""


class IqTracker:
    """The IQ requests that wait for an answer on one stream."""

    def __init__(
        self, settings: Settings, send: Callable[[Element], None], unless_ended: UnlessEnded
    ) -> None:
        self._settings = settings
        self._send = send
        self._unless_ended = unless_ended
        self.jid = ""
        """Our full JID, once the stream is bound to one."""
        self._requests: dict[str, tuple[str | None, asyncio.Future[Element]]] = {}
        self._collecting: dict[
            tuple[str, str], tuple[Callable[[Element], bool], asyncio.Future[Element]]
        ] = {}
        """The archive queries under way, by the archive's address and the id of the query."""

    async def request(self, type_: str, to: str | None, payload: Element) -> Element:
        """Send an IQ and return its result; raises `IqError` if the response is an error."""
        return await self._ask(type_, to, payload, asyncio.get_running_loop().create_future())

    async def collect(
        self, query_id: str, to: str, payload: Element, take: Callable[[Element], bool]
    ) -> Element:
        """Send an archive query (XEP-0313) and return its final answer.

        `take` is called with each result as it arrives, so that none is buffered, and returns
        whether it is within the caller's limits; raises `TooManyResultsError` at once where not.
        """
        answer: asyncio.Future[Element] = asyncio.get_running_loop().create_future()
        self._collecting[to, query_id] = (take, answer)
        try:
            return await self._ask("set", to, payload, answer)
        finally:
            del self._collecting[to, query_id]

    def handle_response(self, iq: Element) -> None:
        """Complete the request that a response belongs to; ignore one that belongs to none."""
        to, answer = self._requests.get(iq.get("id", ""), (None, None))
        if answer is None or answer.done() or not self.may_answer(iq.get("from"), to):
            return
        match iq.get("type"):
            case "error":
                answer.set_exception(IqError(stanzas.error_of(iq)))
            case "result":
                answer.set_result(iq)

    def handle_archive_result(self, stanza: Element) -> bool:
        """Hand the archive result in `stanza` to its query; return whether a query took it."""
        found = stanzas.archive_result(stanza) if self._collecting else None
        if found is None or found[:2] not in self._collecting:
            return False
        archive, query_id, result = found
        take, answer = self._collecting[archive, query_id]
        if not answer.done() and not take(result):
            answer.set_exception(TooManyResultsError())
        return True

    def may_answer(self, sender: str | None, to: str | None) -> bool:
        """Whether `sender` may answer a request that was sent to `to`; its id can be guessed."""
        if to is None or to == self.jid.partition("/")[0]:
            return sender in {None, self._settings.domain, self._settings.jid, self.jid}
        return stanzas.prepared(sender or "") == stanzas.prepared(to)

    async def _ask(
        self, type_: str, to: str | None, payload: Element, answer: "asyncio.Future[Element]"
    ) -> Element:
        id_ = secrets.token_hex(8)
        self._requests[id_] = (to, answer)
        try:
            self._send(stanzas.iq_request(type_, to, id_, payload))
            return await self._unless_ended(answer)
        finally:
            del self._requests[id_]
