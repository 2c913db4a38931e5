"""What the tests of the console share."""

from pathlib import Path

import pytest


@pytest.fixture
def nothing(tmp_path: Path) -> str:
    """An empty settings file, which keeps the checkout's own away."""
    path = tmp_path / "nothing.env"
    path.touch()
    return str(path)
