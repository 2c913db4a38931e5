"""Where a `.env` may lie, what stands in it, and what was read."""

from pathlib import Path

from bridge.settings.load import load
from bridge.settings.table import Configuration, Settings

PASSWORD = "correct-horse-battery"
ACCOUNT = {
    "XMPP_USERNAME": "bot@example.org",
    "XMPP_PASSWORD": PASSWORD,
    "MUC_ROOM": "room@conference.example.org",
}
REQUIRED = {"XMPP_USERNAME", "XMPP_PASSWORD", "MUC_ROOM"}
NAMED = ("TIA_ENV_PATH", "--env-file", "package")
"""What makes a file in the current directory ours."""
USED = "used"
MISSING = "missing"
SAYS_NOTHING = "sets none of our variables"
SETS_NO_ROOM = "not used, since it sets no account, server or room"
NOT_NEEDED = "not needed, an earlier one was used"
UNREADABLE = "unusable"
NAMED_IS_MISSING = "not used, since TIA_ENV_PATH names no readable file"


class Folders:
    """Three places for a `.env`: where the agent starts, beside the package, and elsewhere."""

    def __init__(self, root: Path) -> None:
        self.here, self.package, self.elsewhere = (
            root / name for name in ("here", "package", "elsewhere")
        )
        for folder in (self.here, self.package, self.elsewhere):
            folder.mkdir()

    def load(
        self,
        environ: dict[str, str],
        env_file: Path | None = None,
        at_start: Configuration | None = None,
    ) -> Configuration:
        return load(
            environ, cwd=self.here, package_root=self.package, env_file=env_file, at_start=at_start
        )

    def load_named(
        self, how: str, environ: dict[str, str], at_start: Configuration | None = None
    ) -> Configuration:
        """Load with the file of the current directory named, or with the package there."""
        named = {"TIA_ENV_PATH": "../here/.env"} if how == "TIA_ENV_PATH" else {}
        if how == "package":
            self.package = self.here
        return self.load(environ | named, Path(".env") if how == "--env-file" else None, at_start)

    def reasons(self, environ: dict[str, str]) -> list[str]:
        return reasons(self.load(environ))


def reasons(configuration: Configuration) -> list[str]:
    """The reasons of the candidates, without the names of what each sets."""
    return [candidate.reason for candidate in configuration.candidates]


def written(values: dict[str, str]) -> str:
    return "".join(f"{name}='{value}'\n" for name, value in values.items())


def write(folder: Path, values: dict[str, str] | str | bytes, name: str = ".env") -> Path:
    path = folder / name
    text = written(values) if isinstance(values, dict) else values
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(0o600)
    return path


def settled(configuration: Configuration) -> Settings:
    assert configuration.problems == ()
    assert configuration.settings is not None
    return configuration.settings


def about(configuration: Configuration, variable: str) -> str:
    (problem,) = (p for p in configuration.problems if p.variable == variable)
    return str(problem)
