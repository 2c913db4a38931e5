"""The tests run in an environment that has no settings of the person who runs them."""

import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.support.environments import with_source

ROOT = Path(__file__).parent.parent
NO_COPY = (".*", "build", "transcripts", "benchmarks")
ACCOUNT = """\
XMPP_SERVICE=xmpp://127.0.0.1:{port}
XMPP_DOMAIN=home.example
XMPP_USERNAME=me@home.example
XMPP_PASSWORD=my-own-password-31
MUC_ROOM=room@conference.home.example
BRIDGE_READ_ONLY=1
LOG_LEVEL=DEBUG
"""
FILES = (
    "tests/test_cli.py",
    "tests/e2e/test_check_command.py",
    "tests/e2e/test_log_command.py",
    "tests/client/test_conversation.py",
)
LOOKING = "settings_that_do_not_do or without_a_store_it_says or without_settings_it"
"""Tests of commands that look for a file, which would find the developer's."""


def test_accounts_of_a_developer_change_no_test_and_are_not_logged_in(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(*NO_COPY))
    python = with_source(tmp_path / "environment", checkout) / "python"
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        (tmp_path / ".config").mkdir()
        for file in (checkout / ".env", tmp_path / ".config/xmpp-bridge.env"):
            file.write_text(ACCOUNT.format(port=port), "utf-8")
        ran = subprocess.run(
            [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *FILES, "-k", LOOKING],
            capture_output=True,
            text=True,
            cwd=checkout,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "MUC_ROOM": "mine@example.org"},
            check=False,
        )
        assert ran.returncode == 0, ran.stdout
        assert "5 passed" in ran.stdout
        with pytest.raises(BlockingIOError):
            server.accept()
