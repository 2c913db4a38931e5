"""The tests run in an environment that has no settings of whoever runs them."""

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
    "tests/e2e/test_check_command.py",
    "tests/e2e/test_log_command.py",
    "tests/client/test_conversation.py",
)
LOOKING = "settings_that_do_not_do or without_a_store_it_says or without_settings_it_greets"
"""Tests of commands that look for a file, which found the one of the checkout."""


def test_an_account_beside_the_package_changes_no_test_and_is_not_logged_in(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(*NO_COPY))
    python = with_source(tmp_path / "environment", checkout) / "python"
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        (checkout / ".env").write_text(ACCOUNT.format(port=port), "utf-8")
        ran = subprocess.run(
            [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *FILES, "-k", LOOKING],
            capture_output=True,
            text=True,
            cwd=checkout,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "MUC_ROOM": "mine@example.org"},
            check=False,
        )
        assert ran.returncode == 0, ran.stdout
        assert "3 passed" in ran.stdout
        with pytest.raises(BlockingIOError):
            server.accept()
