"""The program under test as a child process: what it is given, what is kept of it, its end."""

import base64
import html
import json
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from urllib.parse import quote, quote_plus
from xml.sax.saxutils import escape

import pytest

from bridge.testing.bot import MAX_OUTPUT_BYTES, BotProcess, Mask
from bridge.testing.errors import XmppTestError
from bridge.testing.scenario import Bot
from bridge.text import visible

SECONDS = 30.0
SETTINGS = {"XMPP_USERNAME": "robot", "XMPP_PASSWORD": "pencil", "MUC_ROOM": "a@b"}


@contextmanager
def _running(
    folder: Path, program: str, environment: dict[str, str] | None = None
) -> Iterator[BotProcess]:
    (folder / "bot.py").write_text(textwrap.dedent(program), "utf-8")
    bot = Bot(("python", "bot.py"), "Robot", environment=environment or {})
    process = BotProcess(bot, folder, SETTINGS)
    try:
        yield process
    finally:
        process.end()


def _until(process: BotProcess, text: str) -> None:
    end = time.monotonic() + SECONDS
    while text not in process.output():
        assert time.monotonic() < end, process.output()
        time.sleep(0.01)


def _is_gone(pid: int) -> bool:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def test_it_gets_the_settings_and_what_the_file_adds_but_none_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XMPP_TLS_CA_FILE", "/of/the/bridge")
    monkeypatch.setenv("OTHER", "kept")
    program = """
        import os
        for name in ("XMPP_USERNAME", "MUC_ROOM", "XMPP_TLS_CA_FILE", "OTHER", "BOT_JID", "RAW"):
            print(name, os.environ.get(name))
        print(os.getcwd())
    """
    added = {"BOT_JID": "${XMPP_USERNAME}@localhost", "RAW": "$5 ${NO_SUCH}"}
    with _running(tmp_path, program, added) as process:
        assert process.wait(SECONDS) == 0
    assert process.output().splitlines() == [
        "XMPP_USERNAME robot",
        "MUC_ROOM a@b",
        "XMPP_TLS_CA_FILE None",
        "OTHER kept",
        "BOT_JID robot@localhost",
        "RAW $5 ${NO_SUCH}",
        str(tmp_path),
    ]


def test_no_secret_and_no_hidden_character_is_in_its_output(tmp_path: Path) -> None:
    program = r"""
        import base64, os, sys
        word = os.environ["XMPP_PASSWORD"]
        print("password", word, os.environ["COPY"], "\u202e\x1b[31m", file=sys.stderr)
        print(base64.b64encode(f"\0robot\0{word}".encode()).decode())
    """
    with _running(tmp_path, program, {"COPY": "<${XMPP_PASSWORD}>"}) as process:
        process.wait(SECONDS)
    told = process.output()
    assert told == "password *** <***> \\u{202E}\\u{1B}[31m\nAHJvYm90A***==\n"
    assert base64.b64encode(b"\0robot\0pencil").decode() not in told


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON, not ASCII": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "repr": lambda text: repr(text)[1:-1],
    "repr of bytes": lambda text: repr(text.encode())[2:-1],
    "visible": visible,
    "ASCII repr": lambda text: ascii(text)[1:-1],
    "URL": lambda text: quote(text, safe=""),
    "path": quote,
    "URL of JavaScript": lambda text: quote(text, safe="!'()*"),
    "form": quote_plus,
    "XML": escape,
    "HTML": html.escape,
    "XML attribute": lambda text: escape(text, {'"': "&quot;"}),
    "XML attribute of ours": lambda text: escape(text, {'"': "&quot;", "'": "&apos;"}),
    "ASCII XML": lambda text: escape(text).encode("ascii", "xmlcharrefreplace").decode(),
    "XML in JSON": lambda text: json.dumps(escape(text))[1:-1],
    "path in HTML": lambda text: html.escape(quote(text, safe="!'()*&")),
    "hexadecimal": lambda text: text.encode().hex(),
}
SECRETS = [
    "pencil",
    "correct horse",
    "a\"b'c\\d\\\\e/f",
    "<&> %+=?;#",
    "pä\u20ac\U0001f600ß",
    "two\nlines\ttab",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_masked_in_every_form(secret: str) -> None:
    mask = Mask(["", "other", secret])
    shown = {
        name: mask(f"before {form(secret)} after{form(secret)}") for name, form in FORMS.items()
    }
    assert shown == dict.fromkeys(FORMS, "before *** after***")
    assert mask("nothing in here \\ & %") == "nothing in here \\ & %"


WRITTEN: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "for URLs": lambda text: text.translate(str.maketrans("+/", "-_")),
    "in URLs": lambda text: quote(text, safe=""),
    "in JSON": lambda text: json.dumps(text).replace("/", r"\/"),
    "in lines": lambda text: "\n".join(textwrap.wrap(text, 4)),
}


@pytest.mark.parametrize("secret", [*SECRETS, "abc", "~~~???", "\xff\xfe\xfb"])
@pytest.mark.parametrize("write", WRITTEN.values(), ids=WRITTEN)
def test_a_secret_is_masked_in_base64_of_any_text(secret: str, write: Callable[[str], str]) -> None:
    for before, after in product(("", "a", "ab", "\0robot\0"), ("", "a", "ab")):
        written = write(_base64(before + secret + after))
        masked = Mask([secret])(f"<{written}>")
        assert masked.count("***") == 1
        # Not even bits of its first and last byte are left.
        bits = len(before.encode()) * 8 // 6 + (len(after.encode()) * 8 + 5) // 6
        kept = re.sub("%..|[^A-Za-z0-9]", "", masked.replace("%2B", "").replace("%2F", ""))
        assert len(kept) <= bits


def test_what_is_too_short_is_not_looked_for_in_base64() -> None:
    assert Mask(["ab"])(f"{_base64('ab')} ab") == "YWI= ***"


@pytest.mark.parametrize(
    "cut", ["my correct-h...", "my correct-h\u2026", "'...-horse'", "'...rrect-horse-battery'"]
)
def test_what_a_cut_has_left_of_a_secret_is_masked(cut: str) -> None:
    masked = Mask(["correct-horse-battery", "another-horse"])(cut)
    assert "***" in masked
    assert "horse" not in masked
    assert "corr" not in masked


def test_of_a_flood_the_newest_whole_lines_are_kept(tmp_path: Path) -> None:
    program = """
        for number in range(20_000):
            print(number, "pencil")
    """
    with _running(tmp_path, program) as process:
        process.wait(SECONDS)
    told = process.output()
    assert MAX_OUTPUT_BYTES // 2 < len(told) <= MAX_OUTPUT_BYTES
    assert told.endswith("\n19999 ***\n")
    assert all(line.endswith(" ***") for line in told.splitlines())


@pytest.mark.parametrize("command", [("no-such-program",), ("/etc",)])
def test_a_program_that_does_not_start_is_told(command: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(XmppTestError, match=f"the bot does not start: .*{command[0]}"):
        BotProcess(Bot(command, "Robot"), tmp_path, SETTINGS)


def test_one_that_does_not_want_to_end_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    program = """
        import os, signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = os.fork()
        if child:
            print("child", child)
        time.sleep(60)
    """
    with _running(tmp_path, program) as process:
        _until(process, "child")
    assert process.wait(0) == -signal.SIGKILL
    assert _is_gone(int(process.output().split()[1]))


def test_it_ends_with_whoever_started_it_however_that_ends(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("import time; time.sleep(60)", "utf-8")
    program = """if True:
        from pathlib import Path
        from bridge.testing.bot import BotProcess
        from bridge.testing.scenario import Bot
        process = BotProcess(Bot(("python", "bot.py"), "Robot"), Path.cwd(), {})
        print(process._process.pid, flush=True)
        process.wait()
    """
    tests = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with tests:
        assert tests.stdout is not None
        pid = int(tests.stdout.readline())
        assert not Path(f"/proc/{pid}/stat").read_text("utf-8").endswith("Z")
        tests.kill()
    assert _is_gone(pid)
