"""Fixtures of the tests of tap."""

import pytest

from tests.faults.scripted_server import DOMAIN
from tests.servers.certificates import Authority, Certificate


@pytest.fixture
def certificate(authority: Authority) -> Certificate:
    """One that the authority vouches for, and that names the domain and no host."""
    return authority.issue(DOMAIN)
