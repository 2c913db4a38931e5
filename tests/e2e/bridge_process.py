"""The installed command `xmpp-bridge` as a child process, and everything it says."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Self

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.service import OWN

COMMAND = str(Path(sys.executable).parent / "xmpp-bridge")
"""The console script that pip installed beside this Python."""
ANSWER_SECONDS = 60.0
"""Limit for one reply: above the 10 s that `xmppSend` may take, far above all others."""
CHANGE_SECONDS = 60.0
"""Limit for a change of status; a first join takes 0.3 s on idle cores."""
RUN_SECONDS = 300.0
END_SECONDS = 60.0
"""Limit for the process to end; the drain of calls in flight alone may take 10 s."""
LOOK_EVERY_SECONDS = 0.03
"""Pause between two questions for the status, the one thing here that is asked for repeatedly."""
LONGEST_LINE = 32 * 1024 * 1024

NOWHERE = {
    "XMPP_SERVICE": "xmpp://127.0.0.1:1",
    "XMPP_USERNAME": "bot@localhost",
    "XMPP_PASSWORD": "a-password-of-mine",
    "MUC_ROOM": "room@conference.localhost",
}
"""Settings that lead to a port where nothing listens."""

TOOLS = [
    "echo",
    "xmppStatus",
    "xmppSend",
    "xmppHistory",
    "xmppWait",
    "xmppOccupants",
    "xmppPing",
    "xmppInfo",
    "xmppTrace",
    "xmppCheck",
    "xmppDiagnose",
]
"""What the bridge lists, in this order."""

REVISION = "2025-11-25"


def run_in(
    home: Path, *command: str | Path, said: str = "", **environment: str
) -> "subprocess.CompletedProcess[str]":
    """What came of a command that is run in `home` and told this on its stdin.

    It sees PATH, HOME and `environment`, and nothing else of ours.
    """
    return subprocess.run(
        command,
        input=said,
        capture_output=True,
        text=True,
        cwd=home,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), **environment},
        timeout=RUN_SECONDS,
        check=False,
    )


@cache
def _output_schemas() -> dict[str, Any]:
    """The output schema of each tool, as `tools/list` tells it."""
    tools = OWN.tools
    return {each.name: each.output_schema for each in tools if each.output_schema is not None}


def check_result(tool: str, structured: object) -> None:
    """Fail if a result of `tool` is not what its output schema says."""
    schema = _output_schemas().get(tool)
    if schema is not None:
        Draft202012Validator(schema).validate(structured)


class RpcFailedError(Exception):
    """The bridge answered with an error object."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(json.dumps(error))
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


class ToolFailedError(Exception):
    """A tool answered `isError`; the text is what a model would read."""


class BridgeProcess:
    """One run of the bridge, from `async with` to its end.

    It sees `environment`, PATH and an empty HOME, which is its current directory too, and
    nothing else of ours: not even the `.env` of the checkout, unless `arguments` leave out the
    `--env-file` that keeps it away. Each line on its stdout must be a JSON-RPC message that
    somebody waits for; what nobody fetched by the end of the block fails the test.
    """

    def __init__(
        self,
        home: Path,
        environment: Mapping[str, str] | None = None,
        *,
        arguments: Sequence[str] | None = None,
        command: Sequence[str] = (COMMAND,),
        keep: tuple[int, ...] = (),
    ) -> None:
        self.home = home
        self.odd: list[bytes] = []
        """Lines on stdout that are no JSON object."""
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(home), **(environment or {})}
        self._arguments = arguments
        self._command = command

        self._keep = keep
        self._ids = count(1)
        self._answers: dict[object, asyncio.Future[dict[str, Any]]] = {}
        self._unclaimed: list[dict[str, Any]] = []
        self.stdout = b""
        """Everything it wrote to stdout so far."""
        self._stderr = b""
        self._news = asyncio.Event()
        self._readers: list[asyncio.Task[None]] = []
        self._process: asyncio.subprocess.Process | None = None

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    @property
    def stderr(self) -> str:
        return self._stderr.decode("utf-8", "replace")

    async def initialize(self, revision: str = REVISION) -> dict[str, Any]:
        result = await self.request(
            "initialize",
            {
                "protocolVersion": revision,
                "capabilities": {},
                "clientInfo": {"name": "tests", "version": "0"},
            },
        )
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    async def request(
        self, method: str, params: object = None, *, seconds: float = ANSWER_SECONDS
    ) -> dict[str, Any]:
        """The result of a request; raises `RpcFailedError` for an error object."""
        id_ = f"request-{next(self._ids)}"
        message: dict[str, object] = {"jsonrpc": "2.0", "id": id_, "method": method}
        if params is not None:
            message["params"] = params
        answer = self.expect(id_)
        self.send(message)
        response = await self.answer(answer, method, seconds)
        if "error" in response:
            raise RpcFailedError(response["error"])
        result: dict[str, Any] = response["result"]
        return result

    async def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """The structured result of a tool under MCP, as its schema has it.

        Raises `ToolFailedError`.
        """
        result = await self.request("tools/call", {"name": tool, "arguments": arguments})
        if result["isError"]:
            assert set(result) == {"content", "isError"}
            (told,) = result["content"]
            raise ToolFailedError(told["text"])
        if "structuredContent" not in result:
            return result
        structured: dict[str, Any] = result["structuredContent"]
        check_result(tool, structured)
        assert json.loads(result["content"][0]["text"]) == structured
        return structured

    async def bare(self, tool: str, **arguments: object) -> dict[str, Any]:
        """The result of a tool in the bare dialect; raises `RpcFailedError`."""
        result = await self.request(tool, arguments)
        check_result(tool, result)
        return result

    async def status(self) -> dict[str, Any]:
        return await self.bare("xmppStatus")

    async def until(
        self, satisfied: Callable[[dict[str, Any]], object], seconds: float = CHANGE_SECONDS
    ) -> dict[str, Any]:
        status: dict[str, Any] = {}
        try:
            async with asyncio.timeout(seconds):
                # The process tells nobody that its status changed, so we have to ask.
                while not satisfied(status := await self.status()):  # noqa: ASYNC110 - as said
                    await asyncio.sleep(LOOK_EVERY_SECONDS)
        except TimeoutError:
            told = json.dumps(status, indent=1, ensure_ascii=False)
            raise TimeoutError(f"not within {seconds:g} s: {told}\n{self.stderr}") from None
        return status

    async def joined(self) -> dict[str, Any]:
        return await self.until(lambda status: status["connected"])

    def send(self, message: object) -> None:
        """Write one message as a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    def expect(self, id_: object) -> "asyncio.Future[dict[str, Any]]":
        """Claim the response that will carry this id."""
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[id_] = answer
        return answer

    async def answer(
        self,
        answer: "asyncio.Future[dict[str, Any]]",
        what: str = "it",
        seconds: float = ANSWER_SECONDS,
    ) -> dict[str, Any]:
        """The response behind a claim, within the limit."""
        awaited: list[asyncio.Future[Any]] = [answer, self._readers[0]]
        done, _ = await asyncio.wait(awaited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if answer in done:
            return answer.result()
        ended = "the end of stdout" if done else f"{seconds:g} s"
        raise TimeoutError(f"no answer to {what} before {ended}\n{self.stderr}")

    async def frame(self, seconds: float = ANSWER_SECONDS) -> dict[str, Any]:
        """The next message on stdout that no request claims."""
        await self._until_news(lambda: bool(self._unclaimed), "a frame", seconds)
        return self._unclaimed.pop(0)

    async def stderr_says(self, text: str, seconds: float = ANSWER_SECONDS) -> None:
        await self._until_news(lambda: text in self.stderr, f"{text!r} on stderr", seconds)

    async def output_ended(self, seconds: float) -> None:
        """Return once nobody holds the other end of stdout any more."""
        done, _ = await asyncio.wait(self._readers[:1], timeout=seconds)
        if not done:
            raise TimeoutError(f"stdout is still open after {seconds:g} s\n{self.stderr}")

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def hang_up(self) -> None:
        """Send SIGHUP, as the kernel does when the terminal is closed."""
        self._signal(signal.SIGHUP)

    def interrupt(self) -> None:
        """Send SIGINT, as Ctrl-C does, if it still runs."""
        self._signal(signal.SIGINT)

    def _signal(self, number: signal.Signals) -> None:
        # Not `send_signal`, which may take the exit code away from whoever waits for it.
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, number)

    async def wait(self, seconds: float = END_SECONDS) -> int:
        """Its exit code, once it has ended and all it wrote is read."""
        try:
            async with asyncio.timeout(seconds):
                code = await self.process.wait()
                await asyncio.gather(*self._readers)
        except TimeoutError:
            raise TimeoutError(f"still running after {seconds:g} s\n{self.stderr}") from None
        return code

    async def __aenter__(self) -> Self:
        self.home.mkdir(parents=True, exist_ok=True)
        arguments = self._arguments
        if arguments is None:
            nothing = self.home / "nothing.env"
            nothing.touch()
            arguments = ("--env-file", str(nothing))
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            *arguments,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=self.home,
            env=self._environment,
            limit=LONGEST_LINE,
            pass_fds=self._keep,
            start_new_session=True,
        )
        self._readers = [
            asyncio.create_task(self._read_stdout()),
            asyncio.create_task(self._read_stderr()),
        ]
        return self

    async def __aexit__(self, _: object, error: BaseException | None, *__: object) -> None:
        try:
            self.close_input()
            if error is None:
                await self.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            await self.process.wait()
            await asyncio.gather(*self._readers)
        if error is not None:
            error.add_note(f"stderr of the bridge:\n{self.stderr}")
            return
        assert not self.odd, f"not frames: {self.odd}"
        assert not self._unclaimed, f"nobody asked for {self._unclaimed}"
        assert "Traceback" not in self.stderr, self.stderr

    async def _read_stdout(self) -> None:
        stdout = self.process.stdout
        assert stdout is not None
        while line := await stdout.readline():
            self.stdout += line
            self._take(line)
            self._news.set()

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self.odd.append(line)
            return
        answer = self._answers.pop(message.get("id"), None)
        if answer is None:
            self._unclaimed.append(message)
        else:
            answer.set_result(message)

    async def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        while chunk := await self.process.stderr.read(65536):
            self._stderr += chunk
            self._news.set()

    async def _until_news(self, satisfied: Callable[[], bool], what: str, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                while not satisfied():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise TimeoutError(f"no {what} within {seconds:g} s\n{self.stderr}") from None


OWN_STDOUT = "import os, sys; os.dup2(int(sys.argv[1]), 1); os.execv(sys.argv[2], sys.argv[2:])"


@asynccontextmanager
async def unread(
    home: Path, settings: Mapping[str, str]
) -> AsyncIterator[tuple[BridgeProcess, BinaryIO]]:
    """A bridge, and the end of its stdout, in the hands of a client that may let it be."""
    descriptor, writing = os.pipe()
    os.set_inheritable(writing, True)
    command = (sys.executable, "-c", OWN_STDOUT, str(writing), COMMAND)
    with os.fdopen(descriptor, "rb") as client:
        async with BridgeProcess(home, settings, command=command, keep=(writing,)) as bridge:
            os.close(writing)
            yield bridge, client


@asynccontextmanager
async def reading(client: BinaryIO) -> AsyncIterator[asyncio.StreamReader]:
    """What is there and what comes."""
    reader = asyncio.StreamReader()
    file = os.fdopen(os.dup(client.fileno()), "rb")
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), file
    )
    try:
        yield reader
    finally:
        transport.close()
