"""Files that the program made before its store was made anew; README.md says what is in them."""

import hashlib
import json
import lzma
import shutil
import sqlite3
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.servers.postgresql import Postgresql

FOLDER = Path(__file__).parent
LOBBY = "hall@rooms.localhost"
SCHEMA = "former_schema"
"""The name of the schema in the dump."""

SETTINGS = {
    "XMPP_SERVICE": "xmpp://127.0.0.1:1",
    "XMPP_DOMAIN": "localhost",
    "XMPP_USERNAME": "bot",
    "XMPP_PASSWORD": "bot-passes-4711",
    "MUC_ROOM": f"{LOBBY},desk@rooms.localhost",
    "XMPP_ALLOW_PLAINTEXT": "1",
    "BRIDGE_STORE_DAYS": "36500",
}
"""What reads the stores, with a port where nothing listens, and deletes nothing for its age."""

STATE = Path(".local/state/xmpp-bridge")
"""Where a user's stores are, in the home."""


def unpack(name: str, folder: Path) -> Path:
    """Put `store`, `wal` or `spool` into a folder, with a `-wal` if it has one; return its path."""
    folder.mkdir(parents=True, mode=0o700)
    with tarfile.open(FOLDER / f"{name}.tar.xz") as archive:
        for member in archive:  # `extractall` differs between Pythons
            if (content := archive.extractfile(member)) is not None:
                (folder / member.name).write_bytes(content.read())
                (folder / member.name).chmod(member.mode)
    (path,) = folder.glob("*.db")
    return path


def pack(folder: Path, name: str) -> None:
    """Keep all that is in a folder."""
    with tempfile.TemporaryDirectory() as place:
        made = shutil.make_archive(f"{place}/{name}", "xztar", folder)
        shutil.copy(made, FOLDER)


def restore(server: Postgresql) -> str:
    """Make the database anew, in a schema of its own; return its URL."""
    url = server.new()
    schema = url.rpartition("%3D")[2]
    server.query(f"DROP SCHEMA {schema}")
    server.query((FOLDER / "database.sql").read_text("utf-8").replace(SCHEMA, schema))
    return url


def unpack_spool(folder: Path, url: str) -> Path:
    """Put the spool into a folder, as if it belonged to the database of this URL."""
    path = unpack("spool", folder)
    parts = urlsplit(url)
    name = parts.path.removeprefix("/")
    options = f"-csearch_path={url.rpartition('%3D')[2]}"
    where = (parts.hostname or "", "", str(parts.port), name, options)
    target = hashlib.sha256("\n".join(where).encode()).hexdigest()[:16]
    with closing(sqlite3.connect(path)) as spool, spool:
        spool.execute("UPDATE batches SET target = ?", [target])
    return path


def shown(name: str) -> list[dict[str, Any]]:
    """What `log --json` showed of a store, without the cursors."""
    return without_cursors((FOLDER / f"{name}.jsonl").read_text("utf-8"))


def shown_stanzas() -> list[dict[str, Any]]:
    """What `log --json --stanzas` showed of the store, without the cursors."""
    return without_cursors(lzma.decompress((FOLDER / "stanzas.jsonl.xz").read_bytes()).decode())


def without_cursors(out: str) -> list[dict[str, Any]]:
    """The lines of `log --json`, without the cursors, which each program makes its own way."""
    lines = [json.loads(line) for line in out.splitlines()]
    return [{key: value for key, value in line.items() if key != "cursor"} for line in lines]
