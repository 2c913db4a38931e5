"""What a machine must have for some of the tests."""

import os
from typing import NoReturn

import pytest


def do_without(reason: str) -> NoReturn:
    """Skip on a laptop; fail where everything must have been tested (CI=true)."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
