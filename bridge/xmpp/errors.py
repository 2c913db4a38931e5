"""The root of the exceptions of this package, and those of sending a message. Pure.

The others stand beside what raises them.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # The events and faults are loaded after the first answer to the agent, this module before.
    from bridge.xmpp.events import SendFailed
    from bridge.xmpp.faults import Fault
    from bridge.xmpp.room import RoomStatus


class XmppError(Exception):
    """The root of every exception that `bridge.xmpp` raises."""


class UnsendableError(XmppError, ValueError):
    """The text cannot be the body of a message; the message of the exception says why."""


class NotInRoomError(XmppError):
    """Nothing can be sent: we are not in the room; `status` says why."""

    def __init__(self, status: "RoomStatus") -> None:
        self.status = status
        super().__init__(f"not in the room: {status.phase.value}")


class _FaultError(XmppError):
    """Sending a message failed because of `fault`."""

    def __init__(self, fault: "Fault") -> None:
        self.fault = fault
        super().__init__(fault.message)


class NotSentError(_FaultError):
    """The connection had just ended, and nothing was sent to the room."""


class NotReflectedError(_FaultError):
    """The room did not reflect the message: whether the others got it is unknown."""


class BouncedError(XmppError):
    """The room, or a server on the way, returned the message."""

    def __init__(self, failure: "SendFailed", fault: "Fault") -> None:
        self.failure = failure
        self.fault = fault
        super().__init__(failure.condition)
