"""What may be set, and what comes of it."""

from collections.abc import Mapping
from pathlib import Path

from bridge.frozen import dataclass
from bridge.settings.sources import Candidate, Problem
from bridge.settings.values import Secret, Service

SEND_RATES = range(1, 6001)
"""Messages a minute; 6,000 is a hundred a second, beyond which no room keeps up."""

SEND_RATE = 60
"""Where nobody sets one: faster than people talk, and slow enough to be stopped by them."""

HISTORIES = range(100, 1_000_001)
"""Events kept in memory; fewer than 100 would not cover one burst, a million is about a GB."""

GEOCODING_URL = "https://geocoding-api.open-meteo.com/v1"
"""Open-Meteo's own geocoding (https://open-meteo.com/en/docs/geocoding-api)."""

FORECAST_URL = "https://api.open-meteo.com/v1"
"""Open-Meteo's own forecasts (https://open-meteo.com/en/docs)."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All that the participant needs, complete and valid."""

    username: str
    """Local part of the account's JID, as the user wrote it."""

    domain: str
    """In lower case, an IPv6 address in brackets (RFC 7622 §3.2)."""

    password: Secret
    room: str
    """Bare JID, its domain in lower case."""

    nickname: str = "McpDebug"
    service: Service | None = None
    """None: SRV records of the domain, then domain:5222."""

    room_password: Secret | None = None
    tls_ca_file: Path | None = None
    """Absolute path of further trust anchors, PEM; it could be opened when settings were read."""

    tls_verify: bool = True
    allow_plaintext: bool = False

    @property
    def jid(self) -> str:
        """Bare JID of the account."""
        return f"{self.username}@{self.domain}"


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Everything that `load` found out."""

    settings: Settings | None
    """None exactly when one of the problems concerns the participant."""

    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    env_file: str | None
    """Absolute path of the file that is used."""

    trusted: bool
    """False if that file was found only by lying in the current directory."""

    candidates: tuple[Candidate, ...]
    set_by: Mapping[str, str]
    """Who says what holds of each variable that restricts: `the environment and '/home/me/.env'`.
    One that nobody set is not in there."""

    read_only: bool
    send_rate: int
    """Messages a minute, 1 to 6,000."""

    history: int
    """Events kept in memory, 100 to 1,000,000."""

    traffic_log: Path | None
    """Absolute path; not looked at yet."""

    toolsets: tuple[str, ...]
    """Each once, in the order written; not checked against what there is."""

    llm_base_url: str | None
    """`http` or `https`, with neither credentials nor query."""

    llm_api_key: Secret | None
    llm_model: str | None
    geocoding_url: str
    """Where Open-Meteo's geocoding is asked; the same form as `llm_base_url`."""

    forecast_url: str
    """Where Open-Meteo's forecasts are asked; likewise."""

    log_level: str
    """`DEBUG`, `INFO`, `WARNING`, `ERROR` or `CRITICAL`."""
