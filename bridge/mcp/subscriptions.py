"""Subscriptions of one client to changes of resources, in all revisions of MCP. Pure.

Until 2025-11-25 a client subscribes to a URI for the whole session. Since 2026-07-28 it opens a
listening request with a filter, and every notification carries that request's id.
"""

from collections.abc import Callable

from bridge.mcp import jsonrpc
from bridge.mcp.framing import Framing
from bridge.mcp.jsonrpc import Id, Notification, Object, Response, RpcError

SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
"""A notification belongs to a listening request. This key in `_meta` has that request's id
(2026-07-28, Subscriptions)."""

MAX_LISTENERS = 64
"""The most open listening requests of a client: a change needs a notification for each."""


MAX_URIS = 1_000
"""The most resources of a listening request that we look at; a bridge has some two hundred."""


class Subscriptions:
    """Keeps one client's subscriptions to resources; `is_known` says whether a URI exists.

    The notifications use the framing of the message that asked for them.
    """

    def __init__(self, is_known: Callable[[str], object]) -> None:
        self._is_known = is_known
        self.session_wide: dict[str, Framing] = {}
        """The framing of each subscription that `resources/subscribe` made, by URI."""
        self._listeners: dict[Id, tuple[frozenset[str], Framing]] = {}

    def listen(self, id_: Id, params: Object, framing: Framing) -> Notification:
        """Open a listening request and return its acknowledgement; raises `RpcError`.

        The lists of tools, prompts and resources never change while we run, so only the filter's
        subscriptions to resources are agreed to.
        """
        wanted = jsonrpc.param(params, "notifications", dict, "an object")
        if id_ in self._listeners:
            raise RpcError(jsonrpc.INVALID_REQUEST, "a listening request of this id is open")
        if len(self._listeners) >= MAX_LISTENERS:
            reason = f"{MAX_LISTENERS} listening requests are open; end some"
            raise RpcError(jsonrpc.INVALID_PARAMS, reason)
        uris = wanted.get("resourceSubscriptions")
        asked = [uri for uri in uris if isinstance(uri, str)] if isinstance(uris, list) else []
        honoured = [uri for uri in [*dict.fromkeys(asked)][:MAX_URIS] if self._is_known(uri)]
        self._listeners[id_] = frozenset(honoured), framing
        agreed = {"resourceSubscriptions": honoured} if honoured else {}
        return Notification(
            "notifications/subscriptions/acknowledged",
            {"_meta": {SUBSCRIPTION_ID: id_}, "notifications": agreed},
        )

    def end(self, id_: Id) -> bool:
        """Forget a listening request; False if there is no request with this id."""
        return self._listeners.pop(id_, None) is not None

    def __bool__(self) -> bool:
        """Whether there is any subscription; most clients have none."""
        return bool(self.session_wide or self._listeners)

    def has(self, uri: str) -> bool:
        """Whether the client subscribed to `uri` in either way."""
        return uri in self.session_wide or any(uri in uris for uris, _ in self._listeners.values())

    def updates(self, uri: str) -> list[tuple[Notification, Framing]]:
        """Return what to send when the resource at `uri` has changed."""
        method = "notifications/resources/updated"
        updates = []
        if uri in self.session_wide:
            updates.append((Notification(method, {"uri": uri}), self.session_wide[uri]))
        for id_, (uris, framing) in self._listeners.items():
            if uri in uris:
                tagged = {"_meta": {SUBSCRIPTION_ID: id_}, "uri": uri}
                updates.append((Notification(method, tagged), framing))
        return updates

    def close(self, meta: Object) -> list[tuple[Response, Framing]]:
        """End every listening request and return the responses (2026-07-28, "Graceful Closure").

        `meta` is the `_meta` of every result.
        """
        ended = []
        for id_, (_, framing) in self._listeners.items():
            tagged = {**meta, SUBSCRIPTION_ID: id_}
            ended.append((Response(id_, {"resultType": "complete", "_meta": tagged}), framing))
        self._listeners.clear()
        return ended
