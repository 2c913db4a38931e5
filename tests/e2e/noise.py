"""Modules that a child Python imports at its start (`sitecustomize`), to try our manners."""

import shutil
from pathlib import Path
from textwrap import dedent

SLOW_SLIXMPP = """
    import importlib.abc, os, sys, time

    class Slow(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path, target=None):
            while name == "slixmpp" and not os.path.exists(os.environ["SLIXMPP_MAY_LOAD"]):
                time.sleep(0.005)  # nothing else tells a thread of a file

    sys.meta_path.insert(0, Slow())
"""
"""Loading slixmpp lasts until the file that `SLIXMPP_MAY_LOAD` names is there."""

BROKEN_SLIXMPP = """
    import importlib.abc, sys

    class Broken(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path, target=None):
            if name == "slixmpp":
                raise ImportError("half an installation")

    sys.meta_path.insert(0, Broken())
"""


SLOW_RESOLVER = """
    import os, socket, threading

    def silence(*args, **kwargs):
        os.write(2, b"SEEN a question to the resolver\\n")
        threading.Event().wait()

    socket.getaddrinfo = silence
"""


def at_start(folder: Path, *parts: str) -> dict[str, str]:
    """Write the parts as a `sitecustomize` and return the environment that imports it."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(dedent(part) for part in parts)
    (folder / "sitecustomize.py").write_text(text, encoding="utf-8")
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    return {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}


def with_limits(module: str, **limits: float) -> str:
    """Give constants of `module` other values, so that no test waits for what users do."""
    assignments = "".join(f"limited.{name} = {value!r}\n" for name, value in limits.items())
    return f"\nimport {module} as limited\n{assignments}"


SOON_SECONDS = 0.25
"""The first pause before a bridge comes back, where a test waits until it has; users are promised
a second, to which tests/xmpp/model/test_backoff.py holds it."""

COMES_BACK_SOON = with_limits("bridge.xmpp.model.backoff", FIRST_SECONDS=SOON_SECONDS)
