"""The arguments of each command of `xmpp-bridge`, and what its `--help` says of it.

Each command has a function, whose docstring is its page: the line on the first page, the
description, the options of this command alone, examples, exit codes, and what else there is to say.
The function adds the options that it shares with others, and what a line cannot say. `add_options`
reads such lines:

    --first: a switch, and what it is for
    --timeout SECONDS: an option with a value; `VALUES` knows what a value of this name may be
    --fault NAME...: an option that may be given again
    --format text|json: an option with these values, the first of which is the default
    TEXT or [NICKNAME] or [FILES...]: an argument; in brackets it may be left out
"""

import argparse
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bridge.mcp.revisions import ALL
from bridge.registration import KEYS
from bridge.text import nearest
from bridge.xmpp.model.events import KINDS

MAX_REPEATS = 1_000
"""The most runs of one check: each logs in, and servers limit logins."""

MAX_MS = 1_000_000
"""The highest threshold for a whole check; a check never takes so long."""

MAX_DAYS = 10_000
"""The highest threshold for a certificate: none is valid for longer."""

MAX_EVENTS = 999_999_999
"""The highest `--limit` of `log`: more than a person reads. Without `--limit` all events are shown,
however many the store has."""

MAX_SECONDS = 1_000_000
"""The longest wait for an event: eleven days."""


class Once(argparse.Action):
    """Stores the value of an option; a second, different value is a mistake."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Store the value; ends the process if there is another already."""
        if getattr(namespace, self.dest) not in (None, values):
            parser.error(f"{option_string} is given twice, with different values")
        setattr(namespace, self.dest, values)


def _number(most: int) -> Callable[[str], int]:
    """Return what reads a whole number from 1 to `most`."""

    def number(text: str) -> int:
        if not re.fullmatch("[1-9][0-9]{0,8}", text) or int(text) > most:
            raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {most}")
        return int(text)

    return number


def _duration(text: str) -> int:
    match = re.fullmatch(r"([1-9][0-9]{0,5})([smh]?)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 90s, 2m or 1h")
    return int(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def _kinds(text: str) -> list[str]:
    kinds = text.split(",")
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise argparse.ArgumentTypeError(
            f"invalid choice: {unknown[0]!r} (choose from {', '.join(KINDS)})"
            + nearest(unknown[0], KINDS)
        )
    return kinds


def _address(text: str) -> str:
    match = re.fullmatch(r".+:([0-9]{1,5})", text)
    if match is None or int(match[1]) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no HOST:PORT such as 127.0.0.1:5222")
    return text


def _server_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text):
        raise argparse.ArgumentTypeError("a name has 1 to 64 letters, digits, - and _")
    return text


VALUES: dict[str, dict[str, Any]] = {
    "DAYS": {"metavar": "N", "type": _number(MAX_DAYS)},
    "DURATION": {"type": _duration},
    "ENTRY": {"metavar": "NAME", "type": _server_name},
    "EVENTS": {"metavar": "N", "type": _number(MAX_EVENTS)},
    "FILES": {"metavar": "FILE"},
    "HOST:PORT": {"type": _address},
    "KINDS": {"metavar": "KIND", "type": _kinds, "action": "extend"},
    "MS": {"type": _number(MAX_MS)},
    "PATH": {"type": Path, "action": Once},
    "PROGRAM": {"metavar": "COMMAND"},
    "RUNS": {"metavar": "N", "type": _number(MAX_REPEATS)},
    "SECONDS": {"type": _number(MAX_SECONDS)},
}
"""How a value of this name is read, and its name on the page if it has another there. A value whose
name is missing here is a text."""

NAMES = {
    "await": "await_seconds",
    "command": "command_text",
    "for": "seconds",
    "from": "sender",
    "only": "only_set",
}
"""The names of parsed options that cannot have the name of the option."""


def add_options(container: argparse._ActionsContainer, lines: str) -> None:
    """Add the options and arguments that these lines declare, as the module's docstring says."""
    for entry in re.split(r"\n(?! )", textwrap.dedent(lines).strip("\n")):
        declared, _, help_ = " ".join(entry.split()).partition(": ")
        is_optional = declared.startswith("[")
        declared = declared.strip("[]") if is_optional else declared
        name, _, value = declared.removesuffix("...").partition(" ")
        repeats = declared.endswith("...")
        if name.startswith("--") and not value:
            container.add_argument(name, action="store_true", help=help_)
            continue
        choices = value.split("|")
        given = {"metavar": value or name} | VALUES.get(value or name, {})
        if len(choices) > 1:
            given = {"choices": choices, "default": choices[0]}
        if name.startswith("--"):
            dest = name.removeprefix("--").replace("-", "_")
            given["dest"] = NAMES.get(dest, dest)
            if repeats:
                given = {"action": "append", "default": []} | given | {"dest": f"{given['dest']}s"}
        else:
            name = name.lower()
            given["nargs"] = ("*" if repeats else "?") if is_optional else None
        container.add_argument(name, help=help_, **given)


def first_page(parser: argparse.ArgumentParser) -> None:
    """The first page.

    Sits in an XMPP chat room and hands what happens there to a coding agent. Without a command it
    serves.

        xmpp-bridge client --sandbox

        0 success; for what runs until it is stopped, also Ctrl-C
        1 what was checked or asked for failed
        2 a mistake on the command line or in the settings

    settings:
      xmpp-bridge help settings explains each, xmpp-bridge settings shows them.

    xmpp-bridge help COMMAND explains each command, README.md the rest.
    xmpp-bridge help agent prints what to tell a coding agent.
    """


def _add_serve(command: argparse.ArgumentParser) -> None:
    """The bridge: MCP on stdio, and a participant in the room.

    The bridge: MCP on stdin and stdout, and a participant in the room.

        --read-only: withhold every tool that writes to the room

        codex mcp add xmpp -- xmpp-bridge --env-file /path/to/.env

        0 the client left, or a signal ended it
        1 stdin or stdout cannot be used
        2 the command line is wrong, or a set of tools cannot be loaded
    """
    _add_settings(command)
    sets = command.add_mutually_exclusive_group()
    _add_toolsets(sets)
    alone = "serve this set of tools, and only sets that are named by this option; joins no room"
    add_options(sets, f"--only NAME...: {alone}; may be given again")


def _add_client(command: argparse.ArgumentParser) -> None:
    """The interactive test client.

    Starts the bridge, or any MCP server on stdio, and talks to it: a line is echoed, `help` lists
    the commands. At a terminal with --sandbox it is a chat: a line is said in the room, and
    commands begin with a slash. From a pipe, stdout has one answer a line.

        --json: each answer as it came, in one line
        --framing lines|headers: separate messages by line ends, or write Content-Length headers
            before each
        [PROGRAM...]: another MCP server to start, after --

        echo status | xmpp-bridge client --sandbox
        Another server: xmpp-bridge client -- npx some-mcp-server

        0 no call failed
        1 a call failed, or the server ended or did not answer
        2 the command line is wrong
    """
    _add_settings(command)
    _add_toolsets(command)
    dates = [revision.date for revision in ALL]
    help_ = f"speak this revision of MCP: {', '.join(dates)}"
    command.add_argument("--revision", choices=dates, metavar="DATE", help=help_)


def _add_check(command: argparse.ArgumentParser) -> None:
    """Walk through a connection stage by stage, and say where it breaks.

    Joins the room over a connection of its own and leaves it again, and shows what each stage found
    and how long it took.

        --send: also say something in the room, and await it back
        --room-must-exist: if the room does not exist, fail instead of joining, which would create
            it
        --format text|json|prometheus|nagios: text, json (one object), prometheus (metrics), or
            nagios (one line, and the exit codes of monitoring plugins: 0 OK, 1 WARNING, 2 CRITICAL,
            3 UNKNOWN)
        --warn MS: warn if the check takes MS milliseconds or more (the median)
        --crit MS: fail if it takes MS milliseconds or more, even if every stage passed
        --cert-days DAYS: warn of a certificate with fewer days left (default: 14); a warning
            changes the exit code of nagios only
        --repeat RUNS: check N times, and show the median and the worst of each stage; a refused
            password ends it, since further tries could lock the account

        xmpp-bridge check --repeat 10
        xmpp-bridge check --format nagios --warn 2000 --crit 10000

        0 every stage passed
        1 a stage failed, or it took --crit or longer
        2 the command line or the settings are wrong
        0, 1, 2, 3 with --format nagios: OK, WARNING, CRITICAL, UNKNOWN
    """
    _add_settings(command)
    command.add_argument(
        "--json", action="store_const", dest="format", const="json", help="--format json"
    )
    command.set_defaults(cert_days=14, repeat=1)


def _add_send(command: argparse.ArgumentParser) -> None:
    """Say something in the room, and prove that the room got it.

    Says TEXT in the room, under the nickname with `-send` after it, as the tool xmppSend does, and
    ends once the room has sent it back. With --await it waits for an answer too.

        TEXT: what to say; - reads it from stdin
        --await SECONDS: how long to wait for answers; after the first, at most 1.5 s longer
        --from NICKNAME: whose answers --await waits for
        --timeout SECONDS: for the room to send it back (default: 10); with --await at most 50
            together
        --json: the result of the tool, one JSON object

        xmpp-bridge send 'the build is done'
        xmpp-bridge send '!ping' --await 10 --from Robot

        0 the room sent it back, and with --await an answer came
        1 it was not sent, or not answered
        2 the command line or the settings are wrong
    """
    _add_settings(command)
    _add_room(command)
    command.set_defaults(await_seconds=0, sender="", timeout=10)


def _add_diagnose(command: argparse.ArgumentParser) -> None:
    """Find out why a bot, or another occupant of the room, does not answer.

    Enters the room under the nickname with `-diagnose` after it, looks at who has NICKNAME and at
    what was recorded in the last hour, and names the cause as the tool xmppDiagnose does. Without
    NICKNAME it looks at every occupant that looks like a program.

        [NICKNAME]: the occupant to look at
        --say TEXT: say this first, and wait for its answer
        --await SECONDS: how long to wait after --say (default: 10, at most 40)
        --log FILE: the debug log of NICKNAME's program, of which the newest 16 MiB are read
        --full: show every finding, even those that say nothing
        --json: the result of the tool, one JSON object

        xmpp-bridge diagnose Robot --say '!ping'
        xmpp-bridge diagnose Robot --log bot.log

        0 nothing is wrong
        1 a cause was found, or --say could not be said
        2 too little was seen to say, and the last line is what to do next; or the command line
          or the settings are wrong
    """
    _add_settings(command)
    _add_room(command)
    command.set_defaults(await_seconds=10, timeout=10)


def _add_settings_command(command: argparse.ArgumentParser) -> None:
    """Show every setting in effect, and where it is set.

    Shows the value of each setting, with secrets as ***, where it is set (the environment, which
    file, or the default), and what it means.

        --json: one JSON object

        xmpp-bridge settings

        0 all settings are right
        1 stdout cannot be written
        2 a setting is wrong or missing, or the command line is wrong

    settings, and where they are read:
      Settings are variables. They come from the environment, and those that it does
      not set from one file: the file that --env-file names, or the first of these
      that sets an account, a server or a room:
        .env in the current directory (trusted with less than the others),
        the file that TIA_ENV_PATH names (any of our variables is enough),
        .env beside the package,
        $XDG_CONFIG_HOME/xmpp-bridge.env or ~/.config/xmpp-bridge.env, which
        xmpp-bridge init writes (not used if TIA_ENV_PATH names no readable file).
      Restrictions add up: the strictest value of the environment and all these
      files holds; with --env-file, of that file alone. NO_COLOR keeps colours off
      a terminal.
    """
    _add_settings(command)


def _add_init(command: argparse.ArgumentParser) -> None:
    """Ask for account, server and room, and write the settings file.

    Asks for the account, the server and the room, tries each answer out, and writes them into a
    file that only you can read. A certificate that is not trusted is shown, and trusted from then
    on if you say so. Then checks the way into the room, and offers to register the bridge with the
    coding agents on this machine. Only on a terminal.

        --env-file PATH: the file to write (default: $XDG_CONFIG_HOME/xmpp-bridge.env or
            ~/.config/xmpp-bridge.env, which the bridge finds everywhere)

        xmpp-bridge init
        xmpp-bridge init --env-file ~/bots/lab.env

        0 the check passed
        1 the check failed, or nothing was written
        2 no terminal, or the command line is wrong
        130 Ctrl-C or Ctrl-D gave up
    """


def _add_watch(command: argparse.ArgumentParser) -> None:
    """Follow the room in the terminal.

    Joins the room and shows what happens there, as it happens; times are UTC. Ctrl-C ends it. What
    happens in the room goes to stdout, the state of the connection and everything else to stderr.
    It takes part under the nickname with `-watch` after it, so that a bridge may be in the room at
    the same time. Where stdout is no terminal, an event is one line, written at once. With a
    filter, --first or --timeout, what the room sends on joining is left out: who is there, its
    history, its subject.

        --stanzas: the stanzas themselves, laid out, without their secrets
        --json: one JSON object a line
        --first: end with the first event, and exit code 0
        --timeout SECONDS: end after this time; exit code 1 if nothing was shown by then

        xmpp-bridge watch --json | jq -ac 'select(.kind == "message") | .body'
        xmpp-bridge watch --from Robot --contains error --first --timeout 600

        0 Ctrl-C ended it; with --first or --timeout, something was shown
        1 a room cannot be entered, stdout cannot be written, or nothing matched in time
        2 the command line or the settings are wrong
    """
    _add_settings(command)
    _add_filters(command)


def _add_log(command: argparse.ArgumentParser) -> None:
    """Show what was recorded.

    Shows what `xmpp-bridge record`, or any other bridge, has recorded in the configured rooms: one
    event a line, oldest first; on a terminal long ones are laid out. Times are shown in UTC; a time
    that is given without a zone is local, and may be 2026-01-31, 12:00, today, "yesterday 12:00",
    1h or "2 hours ago". With --report it is drawn on a page that you can attach to a ticket.

        --since TIME: what happened from then on
        --until TIME: what happened until then
        --limit EVENTS: only the newest N of these
        --follow: go on with what is recorded from now on; Ctrl-C ends it
        --json: one JSON object a line
        --stanzas: the stanzas, if they were recorded (BRIDGE_STORE_STANZAS)
        --as-scenario FROM..TO: print what happened in this time as a scenario file, for xmpp-bridge
            expect
        --env-file PATH: the file with the settings, and no other

        xmpp-bridge log --since yesterday --kind leave
        xmpp-bridge log --since '2 hours ago' --report incident.html --pseudonyms
        xmpp-bridge log --json --since '2 hours ago' | jq -c .body
        xmpp-bridge log --as-scenario 16:20..16:40 > silent.room.toml

        0 something was shown or written; with --follow, Ctrl-C ended it
        1 there is nothing to show, or the store cannot be read
        2 the command line or the settings are wrong
    """
    _add_report(command)
    _add_filters(command)
    command.set_defaults(sandbox=False)


def _add_record(command: argparse.ArgumentParser) -> None:
    """Stay in the room and record what happens there.

    Stays in the room, with no agent, and records what happens there, so that any bridge can look it
    up later. It takes part under the nickname with `-record` after it, so that a bridge may be in
    the room at the same time. Where the store is a team's database, its role must be allowed to
    make the tables, unless they are there.

        xmpp-bridge record
        xmpp-bridge record --print-unit > unit

        0 Ctrl-C or SIGTERM ended it
        1 the account or every room refuses it for good
        2 the settings are wrong, or the store cannot be opened
        70 a mistake in the bridge
    """
    _add_settings(command)
    ending = """
        --print-unit: print a unit with which systemd starts it, and end
        --prepare-store: make the store or its tables if there are none, and end
    """
    add_options(command.add_mutually_exclusive_group(), ending)


def _add_explain(command: argparse.ArgumentParser) -> None:
    """Name what went wrong on a bot's own stream, from its debug log.

    Reads debug logs of a bot, a client or a server, and names what went wrong between it and its
    server: refused messages, a refused join, the end of the stream, requests that were never
    answered. It finds the format by itself and passes other lines over. The last line is the
    verdict. With --report the streams are drawn on a page, too.

        [FILES...]: a log; - or none for standard input
        --account JID: only the streams of this account
        --nickname NAME: only the streams of this occupant
        --command TEXT: how messages begin that the bot should answer
        --all: notes too, and streams without findings
        --json: one JSON object

        xmpp-bridge explain bot.log
        xmpp-bridge explain bot.log --report stream.html
        journalctl --user -u mybot | xmpp-bridge explain --command '!ping'

        0 no error was found
        1 an error was found
        2 nothing could be read, no stream is the one asked for, or the command line is wrong
    """
    _add_report(command)


def _add_tap(command: argparse.ArgumentParser) -> None:
    """Stand between a bot and its server, and say what goes wrong.

    The bot connects to tap, and tap to the server of the settings. What both say passes, and each
    error or warning that explain would name is a line on stderr as it happens; the last line is the
    verdict. With COMMAND it starts the bot so that it connects here, and ends with it; without, it
    says what to change in the bot.

        --env-file PATH: the file with the settings of the bot, and no other
        --to DOMAIN: the server of this domain, whatever XMPP_SERVICE names
        --listen HOST:PORT: listen there (default: 127.0.0.1:5222; with COMMAND any free port)
        --login: let the bot log in to tap, which logs in to the server with the settings' password
        --component: the bot is a component (XEP-0114), without TLS
        --command TEXT: how messages begin that the bot should answer
        --once: end at the first error
        --for DURATION: end after this time, such as 90s, 2m or 1h
        --json: one JSON object at the end; the bot's stdout goes to stderr
        [PROGRAM...]: the bot, after --

        xmpp-bridge tap --env-file bot.env -- python bot.py
        xmpp-bridge tap --to example.org --listen 127.0.0.1:5222

        0 no error was found
        1 an error was found
        2 the bot never came, or the settings or the command line are wrong
    """
    _add_report(command)


def _add_expect(command: argparse.ArgumentParser) -> None:
    """Run scenario files, which are tests of a bot in a room.

    Plays each scenario in a room of its own, in the sandbox or at the server that --env-file names,
    and says what came instead of what was expected. With --report all are drawn on a page, failed
    ones first. pytest runs them.

        FILE: a scenario file, *.room.toml, or a folder

        xmpp-bridge expect ping.room.toml --junit-xml=report.xml
        xmpp-bridge expect --report tests.html scenarios/

        0 all scenarios passed
        1 a scenario failed
        2 a file or an option is wrong
    """
    # These options may also stand behind FILE, where pytest's options stand.
    ours = argparse.ArgumentParser("xmpp-bridge expect", add_help=False, allow_abbrev=False)
    command.set_defaults(ours=ours)
    for parser in (command, ours):
        add_options(parser, "--env-file PATH: the file with the settings of a real server")
        _add_report(parser)
    more = command.add_argument(
        "more", nargs=argparse.REMAINDER, help="more files; options of pytest"
    )
    more.required = False  # Python 3.11 would name it with FILE if both are missing


def _add_sandbox(command: argparse.ArgumentParser) -> None:
    """A small local XMPP server to try things out with.

    A small local XMPP server with a room whose resident answers, and any further room that is
    joined. For trying out and for tests; use Prosody or ejabberd for anything else. Ctrl-C ends it.

        --tls: require STARTTLS, with a certificate of its own, and take more mechanisms under it
        --account NAME:PASSWORD...: a further account; may be given again
        --fault NAME[:KEY=VALUE,...]...: something that goes wrong: drop, kick, silence,
            duplicate-nickname, late-reflection, lost-reflection, refused-login; the keys are room,
            nickname and seconds; may be given again

        xmpp-bridge sandbox > .env
        (in another terminal: xmpp-bridge client)
        xmpp-bridge sandbox --account robot:secret --fault late-reflection:seconds=3

        0 Ctrl-C or SIGTERM ended it
        2 an option is wrong, or --tls lacks its extra
    """


def _add_register(command: argparse.ArgumentParser) -> None:
    """Tell a coding agent's program how to start this bridge.

    Registers this bridge in a client's configuration file, and keeps a copy of the file. The entry
    has the path of this command and the path of your settings file; no password. First the command
    is started once, to see that it answers and whether it gets into the room.

        --env-file PATH: the file with the settings; without it, the one that the bridge would find
            now, unless that merely lies in the current directory
        --approve-send: let the agent speak in the room without asking you each time; nothing else

        xmpp-bridge register codex

        0 the client has the entry
        1 a file cannot be changed, or the bridge does not answer
        2 there is no settings file to register, or the command line is wrong
    """
    _add_entry(command)


def _add_unregister(command: argparse.ArgumentParser) -> None:
    """Undo `register`.

    Takes out of a client's configuration what `register` put there.

        xmpp-bridge unregister codex

        0 the client does not have the entry
        1 a file cannot be changed
        2 the command line is wrong
    """
    _add_entry(command)


def _add_completion(command: argparse.ArgumentParser) -> None:
    """Switch completion on in a shell.

    Prints the code after which Tab completes commands, options, rooms, kinds and scenario files.
    It takes the extra completion.

        SHELL bash|zsh|fish: which shell

        bash: eval "$(xmpp-bridge completion bash)"
        zsh: eval "$(xmpp-bridge completion zsh)"
        fish: xmpp-bridge completion fish | source

        0 the code was printed
        2 the extra is missing, or the command line is wrong
    """


# What several commands share.


def _add_settings(command: argparse.ArgumentParser) -> None:
    add_options(command, "--env-file PATH: the file with the settings, and no other")
    add_options(command, "--sandbox: bring a small XMPP server along; no settings needed")


def _add_room(command: argparse.ArgumentParser) -> None:
    room = "its JID, or the part of it before the @; without it the default room"
    add_options(command, f"--room ROOM: {room}")


def _add_filters(command: argparse.ArgumentParser) -> None:
    """Add the options that `bridge.commands.filters` reads: each narrows what is shown."""
    group = command.add_argument_group(
        "filters", "A room, sender or kind may be given again, for one more of them."
    )
    add_options(
        group,
        f"""
        --room ROOM...: its JID, or the part of it before the @
        --from SENDER...: a nickname, an occupant JID or a real JID
        --contains TEXT: in body, subject or status, whatever the case
        --pattern RE2: a regular expression, found in body, subject or status
        --kind KINDS...: one of {", ".join(KINDS)}, or several with commas between; without it all
            but connection, and no chat states
        """,
    )


def _add_report(command: argparse.ArgumentParser) -> None:
    add_options(
        command,
        """
        --report FILE: write a page that a browser opens, or its data if FILE ends with .json
        --pseudonyms: on the page, replace nicknames, JIDs and hosts one for one, messages by their
            length
        """,
    )


def _add_toolsets(command: argparse._ActionsContainer) -> None:
    named = "llm, samples, one that a package offers, or MODULE:ATTRIBUTE"
    add_options(command, f"--toolset NAME...: a further set of tools: {named}; may be given again")


def _add_entry(command: argparse.ArgumentParser) -> None:
    command.set_defaults(module="register", name="xmpp")
    command.add_argument("client", choices=KEYS, help="which program")
    add_options(command, "--name ENTRY: name of the entry (default: xmpp)")
    add_options(command, "--print: show what would be done, and do nothing")


COMMANDS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "serve": _add_serve,
    "client": _add_client,
    "init": _add_init,
    "check": _add_check,
    "send": _add_send,
    "diagnose": _add_diagnose,
    "settings": _add_settings_command,
    "watch": _add_watch,
    "record": _add_record,
    "log": _add_log,
    "explain": _add_explain,
    "tap": _add_tap,
    "expect": _add_expect,
    "sandbox": _add_sandbox,
    "register": _add_register,
    "unregister": _add_unregister,
    "completion": _add_completion,
}
"""The function for each command, in the order of the first page."""
