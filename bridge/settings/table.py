"""The table of settings, with one row for each variable, and the configuration that results.

The body of `Configuration` is the table: each row declares a variable, and is an attribute with its
value in the loaded configuration. Loading, `--help`, what `xmppCheck` lists, `.env.example`,
docs/settings.md and packaging/server.json come from it (`tests/settings/documents.py` writes the
files). Adding a setting is adding a row.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from bridge.settings import values
from bridge.settings.database_url import DatabaseUrl, store
from bridge.settings.sources import Candidate, Problem
from bridge.settings.values import Secret, Service

SEND_RATES = range(1, 6001)
"""Messages a minute; 6,000 is a hundred a second, beyond which no room keeps up."""

HISTORIES = range(100, 1_000_001)
"""Events kept in memory; fewer than 100 would not cover one burst, a million is about a GB."""

STORE_DAYS = range(1, 36_501)
"""Days for which recorded events are kept; the most is a hundred years."""

STORE_SIZES = range(10, 1_000_001)
"""MiB that a store may take; in fewer than 10 the empty tables would take a noticeable part."""

Value = TypeVar("Value")

Who: TypeAlias = Literal["anybody", "ignored", "refused"]
"""Who may set a variable. It matters for a file that was found only by lying in the current
directory, and so may be a stranger's. There, the variable is

- `anybody`: taken,
- `ignored`: ignored with a warning; used for a path to write to, an address, and code,
- `refused`: an error if the process environment has a secret, since the variable decides where that
  secret is sent; without such a secret the variable is taken."""


@dataclass(eq=False)
class Variable(Generic[Value]):
    """A row of the table: one variable."""

    name: str
    parse: Callable[[str], Value]
    """Turns the text into the value; raises `FlawError`. It gets the text without blanks around it,
    but a secret with them."""

    meaning: str
    """What the documents say of it, in Markdown."""

    default: str | None = None
    """The default as text; None if the value is None while the variable is unset."""

    who: Who = "anybody"
    secret: bool = False
    """Whether its value is shown nowhere."""

    participant: Literal["", "yes", "decides"] = ""
    """`yes`: a wrong value prevents connecting. `decides`: the same, and the first file that sets
    such a variable is the file that is used."""

    required: str = ""
    """Describes a right value, for the error when the variable is unset; empty if it may be
    unset."""

    example: str = ""
    """A value for the documents, if there is no default."""

    otherwise: str = ""
    """The documents' words for the default, if it is no fixed value."""

    strictest: Callable[[Iterable[Any]], Any] = max
    """Chooses the value in effect from all values that are set for a restriction."""

    unreadable: str = ""
    """The value that replaces a wrong value of a restriction: its author wanted to restrict."""

    effect: str = ""
    """The text of the warning about a restriction; `{}` in it is the value in effect. A variable
    with this text is a restriction."""

    credential: str = "[?#]|:.*@"
    """A regular expression that finds what may be a credential, such as `user:password@host` or
    `?password=`. A wrong value that has it is not shown."""

    @property
    def is_restriction(self) -> bool:
        """Whether the strictest value of all files is in effect, whichever file is used."""
        return bool(self.effect)

    @property
    def plain_meaning(self) -> str:
        """What it means, without Markdown."""
        return re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", self.meaning).replace("`", "")

    def __get__(self, configuration: "Configuration", owner: object) -> Value:
        value: Value = configuration.loaded[self.name]
        return value


class Settings(NamedTuple):
    """The settings of the participant, complete and valid.

    Each field has the name of a row. The values may be parts of what the user wrote: if
    XMPP_USERNAME is a JID, `username` is its local part and `domain` its domain.
    """

    username: str
    """Local part of the account's JID, as the user wrote it."""

    domain: str
    """In lower case, an IPv6 address in brackets (RFC 7622 §3.2)."""

    password: Secret
    rooms: tuple[str, ...]
    """Bare JIDs, their domains in lower case: at least one, at most `MAX_ROOMS`, no room twice."""

    nickname: str = "McpDebug"
    service: Service | None = None
    """None: SRV records of the domain, then domain:5222."""

    room_password: Secret | None = None
    """The password of the default room. Another room is not sent it: its owner could set a password
    there only to learn this one."""

    tls_ca_file: Path | None = None
    """Absolute path of further trust anchors, PEM; it could be opened when settings were read."""

    tls_verify: bool = True
    allow_plaintext: bool = False

    @property
    def room(self) -> str:
        """The default room: the first."""
        return self.rooms[0]

    def password_of(self, room: str) -> Secret | None:
        """Return the password that is sent to `room`; None if none is sent."""
        return self.room_password if room == self.room else None

    @property
    def jid(self) -> str:
        """Bare JID of the account."""
        return f"{self.username}@{self.domain}"


@dataclass(eq=False)
class Setting:
    """A variable whose value is in effect, in texts that fit one line."""

    variable: str
    value: Annotated[str, "*** where it is secret"]
    source: Annotated[str, "where it is set: the environment, or the path of a file in quotes"]
    """If several places set the same value of a restriction, all of them: `the environment and
    '/x'`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Configuration:
    """The result of `load`; the body of the class is the table of settings."""

    settings: Settings | None
    """None if one of the problems concerns the participant, and only then."""

    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    env_file: str | None
    """Absolute path of the file that is used."""

    trusted: bool
    """False if that file was found only by lying in the current directory."""

    candidates: tuple[Candidate, ...]
    loaded: Mapping[str, Any]
    """The value of each variable, or its default where it is unset or wrong."""

    in_effect: Mapping[str, Setting]
    """Each variable that is set and valid, in the order of the table."""

    # Formatted by hand: in each row, what loading needs comes before what people read.
    # fmt: off
    username = Variable("XMPP_USERNAME", values.account, who="refused", participant="decides",
        meaning="the account's JID, or its local part alone together with `XMPP_DOMAIN`",
        credential="[?#:]", example="bot@example.org",
        required="the account's JID (bot@example.org)")
    password = Variable("XMPP_PASSWORD", values.password, secret=True, participant="decides",
        meaning="the account's password; blanks at its ends count",
        required="the account's password")
    rooms = Variable("MUC_ROOM", values.rooms, who="refused", participant="decides",
        meaning="the room, as a bare JID; or several, comma-separated, at most "
        f"{values.MAX_ROOMS}: the first is the default room", example="room@conference.example.org",
        required="the bare JID of a room (room@conference.example.org)", credential="[?#:]")
    domain = Variable[str | None]("XMPP_DOMAIN", values.domain, who="refused",
        participant="decides", example="example.org",
        meaning="the XMPP domain, which the certificate is checked against too",
        otherwise="`XMPP_USERNAME`'s domain, else the host of `XMPP_SERVICE`")
    service = Variable[Service | None]("XMPP_SERVICE", values.service, who="refused",
        participant="decides", example="xmpps://xmpp.example.org",
        meaning="`xmpp://host[:port]`, STARTTLS on 5222, or `xmpps://host[:port]`, direct TLS on "
        "5223; an IPv6 address in brackets", otherwise="the domain's SRV records, then domain:5222")
    nickname = Variable("MCP_BOT_NICKNAME", values.nickname, default="McpDebug", participant="yes",
        meaning="the nickname")
    general_nickname = Variable("BOT_NICKNAME", values.nickname, default="McpDebug",
        participant="yes", meaning="the nickname if `MCP_BOT_NICKNAME` is unset")
    room_password = Variable[Secret | None]("MUC_PASSWORD", values.password, secret=True,
        participant="yes", example="open sesame",
        meaning="the room's password; with several rooms it is sent to the default room only, "
        "since the owner of another room could ask for a password only to learn this one")
    tls_ca_file = Variable[Path | None]("XMPP_TLS_CA_FILE", values.path, who="refused",
        participant="yes", example="ca.pem",
        meaning="certificates to trust in addition to the system's, PEM")
    tls_verify = Variable("NODE_TLS_REJECT_UNAUTHORIZED", values.certificate_checks, default="1",
        who="refused", participant="yes",
        meaning="`0` turns certificate checks off, for a test server only; then only SCRAM is used")
    allow_plaintext = Variable("XMPP_ALLOW_PLAINTEXT", values.switch, default="0", who="refused",
        participant="yes",
        meaning="`1` permits a connection without TLS where the server offers none, with SCRAM "
        "only; no password is ever sent in clear")

    read_only = Variable("BRIDGE_READ_ONLY", values.switch, default="0",
        strictest=max, unreadable="1", effect="no tool writes to a room",
        meaning="`1` withholds every tool that writes to the room")
    confirm_send = Variable("BRIDGE_CONFIRM_SEND", values.switch, default="0",
        strictest=max, unreadable="1", effect="a person is asked before each message",
        meaning="`1`: a person is shown each message and asked before it is sent, at the client, "
        "or at the terminal of `send` and `diagnose --say`; if there is no person to ask, no "
        "message is sent")
    send_rate = Variable("BRIDGE_SEND_RATE", values.whole_number(SEND_RATES), default="60",
        strictest=min, unreadable="60",
        effect="messages a minute that may be sent: {} at most",
        meaning="messages a minute that the agent may send, and all runs of `send` and "
        "`diagnose --say` together, 1 to 6,000; a message over the rate is refused")
    history = Variable("BRIDGE_HISTORY", values.whole_number(HISTORIES), default="10000",
        meaning="events kept in memory, 100 to 1,000,000")
    bot_logs = Variable("BRIDGE_BOT_LOGS", values.paths_by_name, default="", who="ignored",
        meaning="debug logs of bots, `NICKNAME=PATH` between commas: `xmppDiagnose` reads what the "
        "bot's [own stream](explain.md) says, in the newest 16 MiB", example="Robot=~/robot.log")

    tools = Variable("BRIDGE_TOOLS", values.names, default="",
        meaning="names of the bridge's own tools to serve, comma-separated, such as `xmppStatus`; "
        "sets of tools are not touched by it", otherwise="all", example="xmppStatus,xmppDiagnose")
    toolsets = Variable("BRIDGE_TOOLSETS", values.names, default="", who="ignored",
        meaning="further [sets of tools](toolsets.md), comma-separated: `samples`, `llm`, a set "
        "that an installed package offers, or `MODULE:ATTRIBUTE`", example="llm,samples")
    geocoding_url = Variable("OPEN_METEO_GEOCODING_URL", values.base_url, who="ignored",
        default="https://geocoding-api.open-meteo.com/v1",
        meaning="where the tool `current_weather` of the set `samples` asks for places")
    forecast_url = Variable("OPEN_METEO_FORECAST_URL", values.base_url, who="ignored",
        default="https://api.open-meteo.com/v1",
        meaning="where `current_weather` asks for the weather of a place")
    llm_base_url = Variable[str | None]("LLM_BASE_URL", values.base_url, who="ignored",
        meaning="where a [model](toolsets.md#tools-that-use-a-model) is asked, if the client "
        "offers none of its own: what was said in the room goes there; with a key it is `https`, "
        "unless it is on this machine; takes `pip install 'xmpp-debug-bridge[llm]'`",
        example="https://llm.example.org/v1")
    llm_api_key = Variable[Secret | None]("LLM_API_KEY", values.key, secret=True, who="ignored",
        meaning="the key that is sent to `LLM_BASE_URL`", example="key")
    llm_model = Variable[str | None]("LLM_MODEL", values.visible, who="ignored",
        meaning="the name of the model; with it and `LLM_BASE_URL`, the set `llm` is served "
        "without being named",
        example="model")

    log_level = Variable("LOG_LEVEL", values.log_level, default="INFO",
        meaning="level of the log on stderr: `DEBUG`, `INFO`, `WARNING`, `ERROR`, `CRITICAL`")
    log_file = Variable[Path | None]("BRIDGE_LOG_FILE", values.path, who="ignored",
        meaning="file that gets the same lines at `DEBUG`, each with its time, for a client that "
        "hides stderr: for its owner alone, at most 64 MiB, and one former file, `name.1`",
        example="~/xmpp-bridge.log")
    store = Variable[Path | DatabaseUrl | None]("BRIDGE_STORE", store, who="ignored",
        meaning="where what happens in the rooms is [recorded](store.md), for the next agent too: "
        "a file that several bridges may share, or the `postgresql://` URL of a "
        "[team's database](store.md#a-store-for-a-team), which takes "
        "`pip install 'xmpp-debug-bridge[postgresql]'`",
        example="~/.local/state/xmpp-bridge/rooms.db", credential="(?i)postgres|password|[?#]|:.*@",
        otherwise="`$XDG_STATE_HOME/xmpp-bridge/rooms.db`, if it is there")
    store_days = Variable("BRIDGE_STORE_DAYS", values.whole_number(STORE_DAYS), default="30",
        who="ignored", meaning="days for which the recorder keeps what it recorded")
    store_mb = Variable("BRIDGE_STORE_MB", values.whole_number(STORE_SIZES), default="1024",
        who="ignored", meaning="MiB that the recorder keeps; the oldest is deleted first")
    store_stanzas = Variable[bool | None]("BRIDGE_STORE_STANZAS", values.switch, who="ignored",
        meaning="whether the stanzas are recorded too, without their secrets: `0` never, `1` also "
        "in a team's database; they take a quarter of the store at most",
        example="0", otherwise="in a file of your own")

    env_path = Variable[str | None]("TIA_ENV_PATH", str, who="ignored",
        meaning="the `.env` file to use, for a bridge that an agent starts elsewhere; in the real "
        "environment only", example="~/.config/xmpp-bridge/.env")
    # fmt: on

    def rejected(self, name: str) -> bool:
        """Whether the value of a variable is wrong, so that its default is in effect."""
        return any(problem.variable == name for problem in self.problems)

    def source_of(self, variable: str) -> str:
        """Return where a variable is set, as in `Setting.source`; empty if it is not."""
        setting = self.in_effect.get(variable)
        return "" if setting is None else setting.source


TABLE: Sequence[Variable[Any]] = tuple(
    row for row in vars(Configuration).values() if isinstance(row, Variable)
)
"""The rows, in the order of the documents."""

VARIABLES = tuple(row.name for row in TABLE)
SECRETS = tuple(row.name for row in TABLE if row.secret)
"""The variables whose values are secret. They belong in the settings file, and are never shown."""
