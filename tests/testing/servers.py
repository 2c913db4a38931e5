"""The servers of the tests, as a user of the plugin names them."""

from pathlib import Path

from tests.servers.server import Account, XmppServer


def env_file(server: XmppServer, folder: Path, account: Account | None = None) -> Path:
    """Write the settings that reach `server`, as its bot or as `account`."""
    given = account or server.bot
    settings = server.environment(XMPP_USERNAME=given.username, XMPP_PASSWORD=given.password)
    path = folder / f"{given.username}.env"
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), "utf-8")
    return path
