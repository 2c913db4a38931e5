"""Fixtures for the tests of drawn pages."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.page.chromium import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser
