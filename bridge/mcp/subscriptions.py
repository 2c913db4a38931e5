"""Who wants to hear of changes, in both eras. Pure.

Until 2025-11-25 a client subscribes to a URI for the whole session; since 2026-07-28 it opens a
listening request with a filter, and every notification carries that request's id.
"""

from collections.abc import Mapping

from bridge.mcp.calls import Reply, Tell
from bridge.mcp.framing import Framing
from bridge.mcp.jsonrpc import Id, Json, Notification, Response

SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
"""In `_meta`: which listening request a notification belongs to (2026-07-28, Subscriptions)."""

MAX_LISTENERS = 64
"""Open listening requests of one client: each costs a notification a change."""


class Subscriptions:
    """The subscriptions of one client to some of the URIs that are `known`.

    Each is told of in the framing that asked for it.
    """

    def __init__(self, known: frozenset[str]) -> None:
        self.known = known
        self.session_wide: dict[str, Framing] = {}
        self.listeners: dict[Id, tuple[frozenset[str], Framing]] = {}

    def listen(
        self, id_: Id, wanted: Mapping[str, Json], framing: Framing = Framing.LINES
    ) -> Notification:
        """Open a listening request and return its acknowledgement.

        The lists of tools, prompts and resources never change while we run, so of the filter
        only resources are agreed to.
        """
        uris = wanted.get("resourceSubscriptions")
        asked = [one for one in uris if isinstance(one, str)] if isinstance(uris, list) else []
        honoured = [one for one in dict.fromkeys(asked) if one in self.known]
        self.listeners[id_] = frozenset(honoured), framing
        agreed = {"resourceSubscriptions": honoured} if honoured else {}
        return Notification(
            "notifications/subscriptions/acknowledged",
            {"_meta": {SUBSCRIPTION_ID: id_}, "notifications": agreed},
        )

    def end(self, id_: Id) -> bool:
        """Forget a listening request; False if there is none of this id."""
        return self.listeners.pop(id_, None) is not None

    def watched(self, uri: str) -> bool:
        """Whether anybody wants to hear of `uri`."""
        return uri in self.session_wide or any(uri in uris for uris, _ in self.listeners.values())

    def changed(self, uri: str) -> list[Tell]:
        """Return what to send now that the resource at `uri` has changed."""
        method = "notifications/resources/updated"
        told = [
            Tell(Notification(method, {"_meta": {SUBSCRIPTION_ID: id_}, "uri": uri}), framing)
            for id_, (uris, framing) in self.listeners.items()
            if uri in uris
        ]
        if uri in self.session_wide:
            told.insert(0, Tell(Notification(method, {"uri": uri}), self.session_wide[uri]))
        return told

    def close(self, meta: Mapping[str, Json]) -> list[Reply]:
        """End every listening request in good order (2026-07-28, "Graceful Closure").

        `meta` is what every result carries in `_meta`.
        """
        ended = [
            Reply(
                Response(id_, {"resultType": "complete", "_meta": {**meta, SUBSCRIPTION_ID: id_}}),
                framing=framing,
            )
            for id_, (_, framing) in self.listeners.items()
        ]
        self.listeners.clear()
        return ended
