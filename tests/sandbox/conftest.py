from collections.abc import AsyncIterator

import pytest

from bridge.sandbox.server import Sandbox


@pytest.fixture
async def server() -> AsyncIterator[Sandbox]:
    async with Sandbox() as running:
        yield running
