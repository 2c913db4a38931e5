import importlib
import inspect
import pkgutil

import pytest

import bridge.xmpp
from bridge.xmpp.errors import XmppError

MODULES = [one.name for one in pkgutil.iter_modules(bridge.xmpp.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_every_exception_of_the_package_has_the_one_root(name: str) -> None:
    module = importlib.import_module(f"bridge.xmpp.{name}")
    raised = [
        one
        for _, one in inspect.getmembers(module, inspect.isclass)
        if issubclass(one, BaseException) and one.__module__ == module.__name__
    ]
    assert [one for one in raised if not issubclass(one, XmppError)] == []
