"""The errors of registering this bridge with a client. Pure."""


class RegistrationError(Exception):
    """Registering or unregistering failed; the text says why. No file is left half written."""

    def __init__(self, text: str, by_hand: str = "") -> None:
        super().__init__(text)
        self.by_hand = by_hand
        """What the user can do instead, if a file was left unchanged; otherwise empty."""


class LaunchError(RegistrationError):
    """There is nothing to register yet; the text says what the user can do about it."""


class EditError(RegistrationError):
    """A configuration file cannot be read, or cannot be changed without loss; the text says why."""
