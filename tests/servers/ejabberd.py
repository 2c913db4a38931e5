"""A real ejabberd with a configuration, database and logs of its own."""

import re
from functools import partial
from pathlib import Path

from tests.servers.certificates import Certificate
from tests.servers.newer import found
from tests.servers.process import ENDS_ROOMS, Program, running
from tests.servers.server import XmppServer

MAX_AUTH_FAILURES = 4
"""Failed logins from one address after which a guarded ejabberd refuses that address."""


def missing_ejabberd() -> str | None:
    """The program we cannot find, or None when all are there."""
    if found("ejabberdctl", "sbin") is None:
        return "ejabberdctl"
    return None if found("erl") else "erl"


def _libraries() -> str:
    """Where ejabberd's Erlang code lies, which only its start script knows."""
    script = found("ejabberdctl", "sbin")
    if script is None:
        raise FileNotFoundError("ejabberdctl")
    setting = re.search(r"^ERL_LIBS='?([^'\n]*)", script.read_text(encoding="utf-8"), re.MULTILINE)
    return setting.group(1) if setting else "/usr/lib"


_GUARDED = """
captcha_cmd: "{directory}/captcha"
captcha_url: "https://captcha.example/captcha"
acl:
  makers:
    user: {maker}
access_rules:
  create:
    allow: makers
"""
_FAIL2BAN = f"""
  mod_fail2ban:
    c2s_auth_ban_lifetime: 3600
    c2s_max_auth_failures: {MAX_AUTH_FAILURES}
"""


_ENDS_ROOMS = """
spawn(fun Await() ->
    case filelib:is_file("{cue}") of
        true -> mnesia:dirty_delete(route, <<"{muc}">>), file:delete("{cue}");
        false -> timer:sleep(100), Await()
    end
end).
"""


def _configure(
    directory: Path,
    server: XmppServer,
    certificate: Certificate,
    *,
    throttled: bool = False,
    guarded: bool = False,
    debugged: bool = False,
    ends_rooms: bool = False,
) -> Program:
    spool = directory / "spool"
    spool.mkdir()
    create = "all"
    if guarded:
        create = "create"
        captcha = directory / "captcha"
        captcha.write_text("#!/bin/sh\nprintf '\\211PNG\\r\\n\\032\\n'\n", encoding="utf-8")
        captcha.chmod(0o755)
    configuration = directory / "ejabberd.yml"
    configuration.write_text(
        # No shaper unless told: tests measure our bridge and not a throttle.
        f"""
hosts: ["{server.domain}"]
loglevel: {"debug" if debugged else "info"}
certfiles: ["{certificate.combined}"]
auth_method: internal
auth_password_format: scram
disable_sasl_mechanisms: ["digest-md5", "X-OAUTH2"]
s2s_access: {"all" if ends_rooms else "none"}
shaper:
  normal:
    rate: 3000
    burst_size: 20000
shaper_rules:
  c2s_shaper:
    {"normal" if throttled else "none"}: all
{_GUARDED.format(directory=directory, maker=server.witness.username) if guarded else ""}
define_macro:
  TLS_OPTIONS: ["no_sslv3", "no_tlsv1", "no_tlsv1_1"]
listen:
  -
    port: {server.starttls_port}
    ip: "127.0.0.1"
    module: ejabberd_c2s
    max_stanza_size: 262144
    shaper: c2s_shaper
    access: all
    starttls_required: true
    protocol_options: TLS_OPTIONS
  -
    port: {server.direct_tls_port}
    ip: "127.0.0.1"
    module: ejabberd_c2s
    max_stanza_size: 262144
    shaper: c2s_shaper
    access: all
    tls: true
    protocol_options: TLS_OPTIONS
modules:
  mod_blocking: {{}}
  mod_caps: {{}}
  mod_carboncopy: {{}}
  mod_client_state: {{}}
  mod_disco: {{}}
  mod_last: {{}}
  mod_mam:
    assume_mam_usage: true
    default: always
  mod_muc:
    host: "{server.muc}"
    access: all
    access_create: {create}
    access_persistent: all
    access_mam: all
    max_user_conferences: 1000
    min_message_interval: {0.05 if debugged else 0}
    room_shaper: none
    default_room_options:
      mam: true
  mod_ping: {{}}
  mod_privacy: {{}}
  mod_private: {{}}
  mod_roster: {{}}
  mod_stream_mgmt: {{}}
  mod_time: {{}}
  mod_version: {{}}
  {"mod_auth_fast: {}" if server.version >= (24, 12) else ""}
{_FAIL2BAN if guarded else ""}
""",
        encoding="utf-8",
    )
    # `ejabberdctl register` takes 1.1 s an account; the server itself does it in a millisecond.
    # At each start, since a killed server may have lost what it had not written yet.
    ready = directory / "accounts-ready"
    accounts = directory / "accounts.erl"
    users = ", ".join(
        f'{{<<"{account.username}">>, <<"{account.password}">>}}'
        for account in (server.bot, server.witness, server.robot)
    )
    accounts.write_text(
        f'[ejabberd_auth:try_register(User, <<"{server.domain}">>, Password)'
        f" || {{User, Password}} <- [{users}]],\n"
        f'ok = file:write_file("{ready}", <<>>).\n'
        + _ENDS_ROOMS.format(cue=directory / ENDS_ROOMS, muc=server.muc)
        * ends_rooms,
        encoding="utf-8",
    )
    # The virtual machine itself and not ejabberdctl: without a node name there is no Erlang
    # distribution, so no epmd, no cookie and no port beyond the two above; any user may run it.
    command = [
        "erl",
        *("-noinput", "+K", "true"),
        # Its schedulers sleep at once where there is nothing to do, and do not spin first.
        *("+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"),
        *("-mnesia", "dir", f'"{spool}"'),
        # Unless told otherwise its log drops what goes beyond 500 entries a second, and begins
        # anew after 10 MB.
        *("-ejabberd", "log_burst_limit_count", "1000000"),
        *("-ejabberd", "log_rotate_size", "1000000000"),
        *("-s", "ejabberd"),
        *("-eval", f'ok = file:eval("{accounts}").'),
    ]
    environment = {
        "HOME": str(directory),
        "ERL_LIBS": _libraries(),
        "ERL_CRASH_DUMP_BYTES": "0",
        "EJABBERD_CONFIG_PATH": str(configuration),
        "EJABBERD_LOG_PATH": str(directory / "ejabberd.log"),
        "CONTRIB_MODULES_PATH": str(directory / "modules"),
    }
    return Program(command, environment, ready)


running_ejabberd = partial(running, "ejabberd", _configure)
"""ejabberd, up and serving."""

running_throttled_ejabberd = partial(running, "ejabberd", partial(_configure, throttled=True))
"""The same, but it reads from a client no faster than its default configuration has it."""

running_guarded_ejabberd = partial(running, "ejabberd", partial(_configure, guarded=True))
"""The same, but rooms may want a CAPTCHA solved (XEP-0158), only `witness` may create them, and an
address is barred after `MAX_AUTH_FAILURES` failed logins (`mod_fail2ban`)."""

running_debugged_ejabberd = partial(running, "ejabberd", partial(_configure, debugged=True))
"""The same, with every stanza in its log, and rooms that take messages only so fast."""

running_ending_ejabberd = partial(running, "ejabberd", partial(_configure, ends_rooms=True))
"""The same, and it stops its room service on a cue (`ServerProcess.end_rooms`)."""
