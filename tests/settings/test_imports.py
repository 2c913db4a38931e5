"""The cost of looking."""

import subprocess
import sys

import pytest

from tests.docs.pages import TOP
from tests.settings.folders import Folders, write


def child(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=TOP
    ).stdout.strip()


def test_importing_settings_brings_nothing_that_the_bridge_does_not_need_anyway() -> None:
    code = """
import asyncio, dataclasses, datetime, json, pathlib, sys, unicodedata
before = set(sys.modules)
import bridge.settings.load
print(*sorted(set(sys.modules) - before))
"""
    assert child(code).split() == [
        "bridge",
        "bridge.settings",
        "bridge.settings.load",
        "bridge.settings.sources",
        "bridge.settings.table",
        "bridge.settings.values",
        "bridge.text",
    ]


@pytest.mark.parametrize(
    ("text", "imported"), [("DATABASE_URL=x\n", "False"), ("MUC_ROOM=x\n", "True")]
)
def test_dotenv_is_imported_only_for_a_file_that_may_be_ours(
    folders: Folders, text: str, imported: str
) -> None:
    write(folders.here, text)
    code = """
import pathlib, sys
from bridge.settings.load import load
here = pathlib.Path(sys.argv[1])
load({}, cwd=here, package_root=here / "nowhere")
print("dotenv" in sys.modules)
"""
    assert child(code, str(folders.here)) == imported
