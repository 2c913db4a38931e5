"""A real Prosody with a configuration, data and logs of its own."""

from functools import partial
from pathlib import Path

from tests.servers.certificates import Certificate
from tests.servers.newer import found
from tests.servers.process import ENDS_ROOMS, Program, running
from tests.servers.server import Account, XmppServer


def missing_prosody() -> str | None:
    """The program we cannot find, or None when all are there."""
    return None if found("prosody") else "prosody"


_ENDS_ROOMS = """
local modules = require "core.modulemanager";
module:add_timer(0.1, function ()
  local cue = io.open("{cue}");
  if not cue then return 0.1; end
  cue:close();
  modules.unload("{muc}", "muc");
  os.remove("{cue}");
end);
"""


def _configure(
    directory: Path,
    server: XmppServer,
    certificate: Certificate,
    *,
    debugged: bool = False,
    ends_rooms: bool = False,
) -> Program:
    data = directory / "data"
    configuration = directory / "prosody.cfg.lua"
    level = "debug" if debugged else "info"
    more = '"stanza_debug"' * debugged
    if ends_rooms:
        more = '"ends_rooms"'
        module = _ENDS_ROOMS.format(cue=directory / ENDS_ROOMS, muc=server.muc)
        (directory / "mod_ends_rooms.lua").write_text(module, encoding="utf-8")
    configuration.write_text(
        # `limits` is not loaded: it throttles merely by being there. MAM and stream management are,
        # as on servers in the field.
        f"""
run_as_root = true
pidfile = "{directory}/prosody.pid"
data_path = "{data}"
certificates = "{directory}"
plugin_paths = {{ "{directory}" }}
log = {{ {{ levels = {{ min = "{level}" }}, to = "file", filename = "{directory}/prosody.log" }} }}

interfaces = {{ "127.0.0.1" }}
c2s_ports = {{ {server.starttls_port} }}
c2s_direct_tls_ports = {{ {server.direct_tls_port} }}
s2s_ports = {{}}
http_ports = {{}}
https_ports = {{}}

modules_enabled = {{
    "roster", "saslauth", "tls", "disco", "ping", "version", "time", "uptime", "private",
    "blocklist", "carbons", "mam", "smacks", "register", {more}
}}
modules_disabled = {{ "s2s" }}
allow_registration = false
c2s_require_encryption = true
authentication = "internal_hashed"
default_iteration_count = 4096
storage = "internal"
ssl = {{ certificate = "{certificate.chain}", key = "{certificate.key}" }}

VirtualHost "{server.domain}"
Component "{server.muc}" "muc"
    modules_enabled = {{ "muc_mam" }}
    muc_room_locking = false
    enforce_registered_nickname = true
    restrict_room_creation = false
""",
        encoding="utf-8",
    )
    for account in (server.bot, server.witness, server.robot):
        _add(account, data)
    return Program(["prosody", "--config", str(configuration), "-F"])


def _add(account: Account, data: Path) -> None:
    """Write the account where Prosody keeps it, without a run of prosodyctl for each.

    `internal_hashed` turns a plain password into salted hashes at the first login.
    """
    folder = data / account.domain / "accounts"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{account.username}.dat").write_text(
        f'return {{ ["password"] = "{account.password}"; }};\n', encoding="utf-8"
    )


running_prosody = partial(running, "prosody", _configure)
"""Prosody, up and serving."""

running_debugged_prosody = partial(running, "prosody", partial(_configure, debugged=True))
"""The same, with every stanza in its log."""

running_ending_prosody = partial(running, "prosody", partial(_configure, ends_rooms=True))
"""The same, and it unloads its room service on a cue (`ServerProcess.end_rooms`)."""
