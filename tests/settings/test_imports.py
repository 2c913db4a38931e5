"""The cost of looking."""

import subprocess
import sys

from tests.docs.pages import TOP


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
