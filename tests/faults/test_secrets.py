"""What the bridge must never let out, whatever happens and however much it is asked to log."""

import re
from base64 import b64encode
from pathlib import Path

from bridge.settings.values import Secret
from bridge.xmpp.link.stanzas import xml_of
from bridge.xmpp.link.trace import REDACTED
from bridge.xmpp.model.events import Phase
from tests.e2e import noise
from tests.e2e.bridge_process import BridgeProcess
from tests.faults.relay import Way
from tests.faults.scene import NICKNAME, ON_PROSODY, Scene, configure, scene
from tests.servers.certificates import Authority
from tests.servers.process import ServerProcess

ROOM_PASSWORD = "open-sesame-1705"
WRONG_PASSWORD = "not-the-password-42"


def _shapes(stage: Scene) -> list[bytes]:
    """Every form in which a secret goes over a wire."""
    bot = stage.server.bot
    plain = [secret.encode() for secret in (bot.password, ROOM_PASSWORD, WRONG_PASSWORD)]
    logins = [b"\0" + bot.username.encode() + b"\0" + secret for secret in plain]
    # Without the last group, which depends on what follows.
    encoded = [b64encode(each)[: len(each) // 3 * 4] for each in (*plain, *logins)]
    return [*plain, *encoded]


def _assert_tight(bridge: BridgeProcess, stage: Scene) -> None:
    written = {
        "stdout": bridge.stdout,
        "stderr": bridge.stderr.encode(),
        **{str(file): file.read_bytes() for file in bridge.home.rglob("*") if file.is_file()},
    }
    assert written["stdout"]
    assert written["stderr"]
    for name, text in written.items():
        for secret in _shapes(stage):
            assert secret not in text, f"{secret!r} in {name}"


def _environment(stage: Scene, home: Path, password: str | None = None) -> dict[str, str]:
    soon = noise.at_start(home / "site", noise.COMES_BACK_SOON)
    return soon | stage.server.environment(
        XMPP_SERVICE=f"xmpp://127.0.0.1:{stage.relay.port}",
        XMPP_PASSWORD=password or stage.server.bot.password,
        MUC_ROOM=stage.room,
        MUC_PASSWORD=ROOM_PASSWORD,
        LOG_LEVEL="DEBUG",
        BRIDGE_STORE=str(home / "rooms.db"),
        BRIDGE_STORE_STANZAS="1",
    )


def _command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


@ON_PROSODY
async def test_no_secret_is_in_anything_it_writes_nor_in_its_arguments(
    server_process: ServerProcess, authority: Authority, tmp_path: Path
) -> None:
    async with scene(server_process, authority) as stage, stage.witness() as wilma:
        await configure(wilma, passwordprotectedroom="1", roomsecret=ROOM_PASSWORD)
        home = tmp_path / "right"
        async with BridgeProcess(home, _environment(stage, home)) as bridge:
            command_line = _command_line(bridge.process.pid)
            assert not [each for each in _shapes(stage) if each in command_line]
            await bridge.initialize()
            await bridge.joined()
            await bridge.call("xmppSend", message="hello")
            # Its answer goes through stdout, which is looked at below.
            trace = await bridge.call("xmppTrace", limit=500, maxBytes=45_000)
            assert not trace["more"]
            assert REDACTED in str(trace)
            stage.relay.refuse()
            await bridge.until(lambda it: it["phase"] == "waiting" and it.get("attempt", 0) > 1)
            await stage.relay.heal()
            await bridge.joined()
            await wilma.joined(NICKNAME)
            await configure(wilma, roomsecret="changed-meanwhile")
            await wilma.kick(NICKNAME)
            await bridge.until(lambda it: not it["connected"])
        _assert_tight(bridge, stage)

        home = tmp_path / "wrong"
        settings = _environment(stage, home, WRONG_PASSWORD)
        async with BridgeProcess(home, settings) as bridge:
            await bridge.until(lambda it: it["phase"] == "failed")
        _assert_tight(bridge, stage)


SECRET_ON_THE_WIRE = re.compile(
    rb"<(?:auth|challenge|response|success|password)\b[^>]*>([^<]+)<"
    rb"|<enabled\b[^>]*\bid=['\"]([^'\"]+)|\bprevid=['\"]([^'\"]+)"
)

FINAL = b64encode(b"c=").decode()[:2]
"""How the last message of SCRAM begins (RFC 5802, section 7), which has the proof."""


@ON_PROSODY
async def test_no_secret_that_was_on_the_wire_is_in_the_trace(
    server_process: ServerProcess, authority: Authority
) -> None:
    async with scene(server_process, authority, way="open") as stage, stage.witness() as wilma:
        await configure(wilma, passwordprotectedroom="1", roomsecret=ROOM_PASSWORD)
        stage.set(room_password=Secret(ROOM_PASSWORD))
        async with stage.participant() as eyes:
            await eyes.joined()
            stage.relay.reset()
            await eyes.phase(Phase.WAITING)
            await eyes.joined()
            trace = [xml_of(traced.xml) for traced in reversed(eyes.participant.trace)]
        wire = b"".join(bytes(stage.relay.passed[way]) for way in Way)
        secrets = {
            next(group for group in each.groups() if group is not None).decode()
            for each in SECRET_ON_THE_WIRE.finditer(wire)
        }
        # First, challenge, final and proof; the room's password; the session that was taken up.
        assert len(secrets) >= 6
        assert ROOM_PASSWORD in secrets
        assert any(each.startswith(FINAL) for each in secrets)
        told = "".join(trace)
        assert "previd" in told
        assert not [each for each in secrets if each in told]
