"""The root of this package's exceptions, and two of the exceptions. Pure.

Each other exception is in the module that raises it. Exceptions with a `Fault` are in `faults`.
"""


class XmppError(Exception):
    """The root of every exception that `bridge.xmpp` raises."""


class UnsendableError(XmppError, ValueError):
    """The text cannot be the body of a message; the message of the exception says why."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(why)
        self.hint = hint
        """A sentence on what to do."""


class NotInRoomError(XmppError):
    """Nothing can be sent or asked: we are not in the room, and the room's status says why."""
