"""One line of the log at DEBUG for each request, reply and cancellation."""

import logging
from typing import NamedTuple

from bridge.escaping import one_line
from bridge.mcp.framing import Framing
from bridge.mcp.jsonrpc import Malformed, Message, Notification, Request, Response

LOGGED_CHARACTERS = 200
"""How much of a request's arguments is shown."""

log = logging.getLogger("bridge.mcp.wire")


class Asked(NamedTuple):
    """What a reply needs to know of its request."""

    framing: Framing
    size: int
    """In bytes; of a call in a batch, its share of them."""
    started: float
    """On the session's clock."""
    dialect: str = "?"
    """`bare`, or a revision's date."""
    method: str = "?"
    id: object = None
    answers: str | None = None
    """Of a response, the method that we asked."""

    def __str__(self) -> str:
        return f"{one_line(self.dialect)} {one_line(self.method, 100)} id {shown(self.id)}"


def received(message: Message | list[Message], asked: Asked) -> None:
    """Log what came in."""
    match message:
        case list():
            log.debug("<- batch of %d, %d bytes", len(message), asked.size)
        case Request(params=params):
            log.debug("<- %s, %d bytes: %s", asked, asked.size, shown(params))
        case Notification(params=params):
            log.debug("<- %s, notification, %d bytes: %s", asked, asked.size, shown(params))
        case Malformed(error=error):
            log.debug(
                "<- no message, %d bytes: %s", asked.size, one_line(str(error), LOGGED_CHARACTERS)
            )
        case Response(id=id_) if asked.answers is not None:
            log.debug("<- the answer to %s, id %s, %d bytes", asked.answers, id_, asked.size)
        case Response(id=id_):
            log.debug("<- a response to nothing we asked, id %s, %d bytes", shown(id_), asked.size)


def replied(response: Response | list[Response], asked: Asked, size: int, now: float) -> None:
    """Log what goes out."""
    took = (now - asked.started) * 1000
    if isinstance(response, list):
        log.debug("-> batch of %d, %d bytes, %.1f ms", len(response), size, took)
    else:
        kind = "result" if response.error is None else f"error {response.error['code']}"
        log.debug("-> %s, %s, %d bytes, %.1f ms", asked, kind, size, took)


def inquired(request: Request, size: int) -> None:
    """Log a question of ours: what is in it is the tool's affair."""
    log.debug("-> %s, our request, id %s, %d bytes", request.method, request.id, size)


def told(notification: Notification, size: int) -> None:
    """Log a notification of ours."""
    log.debug("-> %s, notification, %d bytes", notification.method, size)


def cancelled(asked: Asked, now: float) -> None:
    """Log that a call was given up for its caller."""
    log.debug("-- %s, cancelled after %.1f ms", asked, (now - asked.started) * 1000)


def shown(value: object) -> str:
    """Return any JSON value, escaped and cut, in one line."""
    try:
        return one_line(repr(value), LOGGED_CHARACTERS)
    except RecursionError:
        return "(nested too deeply)"
