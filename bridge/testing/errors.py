"""The exceptions of `bridge.testing`: their root, and two that an actor raises. Pure."""

from bridge.text import visible


class XmppTestError(Exception):
    """A test went wrong, or was written wrongly; the text says how.

    Names of rooms and occupants may be in it, and what a bot said: hidden characters are escaped.
    """

    def __init__(self, message: str) -> None:
        super().__init__(visible(message))


class ActorError(XmppTestError):
    """An actor could not do what the test asked, because of the room or the server."""

    def __init__(self, nickname: str, message: str) -> None:
        self.nickname = nickname
        """The nickname of the actor."""
        super().__init__(message)


class ExpectationError(ActorError, AssertionError):
    """An event that an actor expected did not come, or an unwanted event came."""
