"""The interactive test client: starts a server, reads lines, and shows what the server answers."""

import asyncio
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable, Mapping, Sequence

from bridge.client.arguments import Parameter, parameters
from bridge.client.client import Client
from bridge.client.commands import LEAVE, Command, CommandRunner, parse
from bridge.client.errors import InputCancelledError, InvalidInputError, OutputError, ServerError
from bridge.client.formatting import Answer, client_error
from bridge.client.frontend import INSERTED, Frontend, Pipe
from bridge.client.process import ServerProcess
from bridge.client.rooms import STATUS, RoomFollower, settled_status, standing_of
from bridge.logs import complain, lines_of, open_log
from bridge.mcp.framing import Framing, SkippedInput
from bridge.mcp.jsonrpc import Json, Malformed, Message, Notification, Response, RpcError, preview
from bridge.mcp.revisions import Revision
from bridge.settings.table import Configuration
from bridge.text import one_line
from bridge.views.termination import until_terminated

GREETING = 'Connected! Type a message or "help" for commands.'
"""Says that the client reads lines now."""

CHAT_GREETING = "Connected! What you type is said in the room; /help shows the commands."
"""The same in a chat."""

ROOM_SECONDS = 10.0
"""How long the client waits, before it greets, until the bridge is in the room or says why not."""

QUIET = {"LOG_LEVEL": "WARNING"}
"""What the environment of a server at a terminal has besides ours, unless the user has set a level:
the client itself shows what happens in the rooms."""

SCRIPT_SECONDS = 300.0
"""How long a script waits for one answer, as agents do. A person has no limit, but Ctrl-C."""

CLOSING_SECONDS = 1.0
"""How long a terminal may take to restore its modes when the server has ended."""

QUEUED = "(queued until the call that runs has ended; Ctrl-C cancels both)"
"""The answer to a line that is typed while a command runs."""

ANSWER = Parameter("answer", ("string",), required=True, choices=("accept", "decline", "cancel"))
"""The first question. Only a person who accepts is asked for the fields."""

MAX_LINES = 50
"""After so many lines of the server's message, the rest of it is one more line."""


async def run_client(
    command: Sequence[str],
    *,
    as_json: bool,
    framing: Framing,
    revision: Revision | None,
    configuration: Configuration,
    chat: bool,
) -> int:
    """Talk to the MCP server that `command` starts; return the exit code.

    Unless stdin and stdout are terminals, stdout gets answers only, one on each line, and the
    greeting goes to stderr. The exit code is 1 if any call failed, or the server did.
    If `revision` is None, the client finds one that the server takes.
    `configuration` gives the log its level and file. In a `chat` at a terminal, a line is said in
    the room.
    """
    interactive = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    if problem := open_log("[Client]", configuration.log_level, configuration.log_file):
        complain(f"[Client] WARNING: {one_line(problem)}")
    # The server must not write to the terminal itself: it would garble the prompt, and may send
    # escape sequences. So we read its stderr, and show its lines and their events escaped.
    to_terminal = sys.stderr is not None and sys.stderr.isatty()
    stderr = PIPE if interactive or to_terminal else None
    is_quiet = interactive and to_terminal and not configuration.source_of("LOG_LEVEL")
    environment = {**os.environ, **QUIET} if is_quiet else None

    async def talk() -> int:
        server = None
        try:
            server = await ServerProcess.start(command, environment, stderr=stderr)
            server.framing = framing
            client = Client(server, revision)
            frontend: Frontend = Pipe(json=as_json)
            if interactive:
                # Imported here, since it loads prompt_toolkit, which a script does not need.
                from bridge.client.terminal import Terminal, history_of

                history = history_of(configuration)
                frontend = Terminal(client.catalogue, history=history, json=as_json, chat=chat)
            if interactive and to_terminal:
                handler = _LogHandler(frontend.tell, configuration.log_level)
                logging.getLogger("bridge").handlers[0] = handler
            is_chat = chat and interactive
            conversation = Conversation(client, frontend, to_terminal, chat=is_chat)
            return await conversation.run()
        except (ServerError, OutputError) as error:
            complain(f"[Client] {error}")
            return 1
        finally:
            if server is not None:
                await server.stop()

    # A signal must not end the process before the terminal's modes are restored.
    return await (until_terminated(talk()) if interactive else talk())


class _LogHandler(logging.Handler):
    """Shows lines of our log above the prompt."""

    def __init__(self, tell: Callable[[str], None], level: str) -> None:
        super().__init__(level)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record of the log."""
        for line in lines_of(record, "[Client]", traced=self.level <= logging.DEBUG):
            self._tell(line)


class Conversation:
    """The talk with one server, from the handshake to the end of input."""

    def __init__(
        self, client: Client, frontend: Frontend, to_terminal: bool, *, chat: bool = False
    ) -> None:
        """`to_terminal` says whether stderr is a terminal."""
        self._client = client
        self._frontend = frontend
        self._interactive = frontend.interactive
        self._answer_seconds = None if self._interactive else SCRIPT_SECONDS
        self._note = frontend.tell if to_terminal else complain
        """Shows a line of the client's own, or of the server's log."""
        self._rooms = RoomFollower(client, frontend.tell)
        self._runner = CommandRunner(client, frontend, chat=chat)
        self._call: asyncio.Task[Answer] | None = None
        """The command that is being carried out."""
        self._asking = asyncio.Lock()
        """Held while the person fills in a form, so that there is one form at a time."""
        client.server.on_log_line = lambda line: self._note(one_line(line))
        client.server.on_unsolicited = self._take_unsolicited
        client.take_forms(self._fill_in)

    async def run(self) -> int:
        """Talk until the input ends, and return the exit code.

        Raises `ServerError` if the server ends first.
        """
        client = self._client
        try:
            await client.open()
            async with asyncio.timeout(self._answer_seconds):
                await client.read_catalogue()
                if STATUS in client.catalogue.tools:
                    standing = standing_of(await settled_status(client, ROOM_SECONDS))
                    self._note(f"[Client] {standing}")
        except TimeoutError:
            raise ServerError(f"no lists within {SCRIPT_SECONDS:g} s: given up") from None
        self._frontend.tell(CHAT_GREETING if self._runner.chat else GREETING)
        loop = asyncio.get_running_loop()
        if self._interactive:  # from a pipe, Ctrl-C ends the client and its call
            await self._rooms.start()
            # While a line is typed, Ctrl-C is a key and not a signal.
            loop.add_signal_handler(signal.SIGINT, lambda: self._call and self._call.cancel())
        try:
            return 1 if await self._converse() else 0
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            self._rooms.stop()
            self._frontend.close()

    async def _fill_in(self, params: Mapping[str, Json]) -> dict[str, Json]:
        """Have the person fill in a form of the command that runs; without a command, cancel it."""
        async with self._asking:
            if self._call is None or self._call.done():
                return {"action": "cancel"}
            try:
                return await fill_in(params, self._frontend)
            finally:
                self._watch_typing()  # the prompt of the form replaced our reader of stdin

    async def _converse(self) -> bool:
        """Carry out lines until the end of input; return whether any call failed."""
        failed = False
        while True:
            try:
                typed = await self._typed()
            except InputCancelledError:
                continue
            except EOFError:
                return failed
            for line in filter(str.strip, typed.split("\n")):
                command = parse(line.replace(INSERTED, "\n"), chat=self._runner.chat)
                if command.name in LEAVE:
                    return failed
                answer = await self._answer(command)
                if answer is None:
                    break  # the person gave up the other lines of the same paste too
                failed = failed or answer.failed
                if answer.text or not answer.own or answer.value is not None:
                    self._frontend.show(answer)

    async def _typed(self) -> str:
        """Return what is typed next; raises `ServerError` if the server ends first."""
        reading, server = asyncio.create_task(self._frontend.line()), self._client.server
        try:
            await asyncio.wait((reading, server.ended), return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                self._frontend.close()
                if self._interactive:
                    await asyncio.wait((reading,), timeout=CLOSING_SECONDS)
                raise ServerError(await server.exit_description())
            return reading.result()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _answer(self, command: Command) -> Answer | None:
        """Carry out `command` and return its answer; None if the person cancelled it."""
        self._call = asyncio.create_task(self._runner.run(command))
        self._watch_typing()
        try:
            async with asyncio.timeout(self._answer_seconds):
                return await self._call
        except TimeoutError:
            return client_error(f"no answer within {SCRIPT_SECONDS:g} s: given up")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # the whole client is to end
                raise
            self._frontend.tell("(cancelled)")
        except (InputCancelledError, EOFError):
            self._frontend.tell("(not called)")
        finally:
            if self._interactive:
                asyncio.get_running_loop().remove_reader(sys.stdin)
        return None

    def _watch_typing(self) -> None:
        """Watch for a line that is typed while there is no prompt, to say that it is queued."""
        if self._interactive and self._call is not None and not self._call.done():
            # The line is not read here: the terminal keeps it for the next prompt.
            asyncio.get_running_loop().add_reader(sys.stdin, self._tell_queued)

    def _tell_queued(self) -> None:
        """Say that a line waits for the end of the command, and watch no longer."""
        asyncio.get_running_loop().remove_reader(sys.stdin)
        self._frontend.tell(QUEUED)

    def _take_unsolicited(self, message: Message | SkippedInput) -> None:
        match message:
            case Notification(method="notifications/message", params={"data": data, **others}):
                level = one_line(str(others.get("level")), 20)
                self._note(f"[Client] the server logs ({level}): {preview(data)}")
            case Notification("notifications/resources/updated", {"uri": uri}):
                self._rooms.take_update(uri)
            case Notification("notifications/subscriptions/acknowledged"):
                self._rooms.take_update()
            case Notification(method=method) if method.endswith("/list_changed"):
                self._runner.catalogue_is_stale = True
            case Response(id=None, error=error):
                what = "the server reports an error without a request"
                self._note(f"[Client] {what}: {preview(error)}")
            case Malformed(error=RpcError(data=reason)) | SkippedInput(reason=reason):
                self._note(f"[Client] the server wrote to stdout what is no message: {reason}")


async def fill_in(params: Mapping[str, Json], frontend: Frontend) -> dict[str, Json]:
    """Show a form, and return the person's answers as the result of `elicitation/create`.

    A field that the person leaves out has its default. Ctrl-C and the end of input cancel the form;
    in a script a wrong value does, too.
    """
    frontend.tell("[Client] the server asks you:")
    for line in str(params.get("message")).split("\n", MAX_LINES):
        frontend.tell(f"  {one_line(line)}")
    content: dict[str, Json] = {}
    try:
        action = (await frontend.ask(ANSWER))[ANSWER.name]
        if action != "accept":
            return {"action": action}
        for field in parameters(params.get("requestedSchema")):
            if field.default is not None:
                content[field.name] = field.default
            content |= await frontend.ask(field)
    except (InputCancelledError, EOFError):
        return {"action": "cancel"}
    except InvalidInputError as error:
        frontend.tell(f"  {error}; cancelled")
        return {"action": "cancel"}
    return {"action": action, "content": content}
