from pathlib import Path

from tests.e2e.company import in_company
from tests.faults.scene import configure
from tests.faults.scripted_server import NICKNAME
from tests.servers.server import XmppServer


async def test_a_server_and_a_room_tell_what_they_are_and_what_we_are_there(
    real_server: XmppServer, tmp_path: Path
) -> None:
    async with in_company(real_server, tmp_path) as (bridge, owner):
        status, room = await bridge.status(), owner.room
        told = await bridge.call("xmppInfo", target="server", features=True)
        assert (told["target"], told["address"]) == ("server", real_server.domain)
        assert [(it["category"], it["type"]) for it in told["identities"]] == [("server", "im")]
        assert {"feature": "urn:xmpp:ping"} in told["features"]
        assert told["software"]["name"].lower() == real_server.name
        assert 0 <= told["uptimeSeconds"] < 86_400
        binds = real_server.name == "ejabberd" and real_server.version >= (24,)
        assert told["connection"] == {
            **{name: status[name] for name in ("jid", "service", "tls", "sasl")},
            # Only ejabberd 24 offers a channel binding that Python's TLS 1.3 has.
            **({"channelBinding": "tls-server-end-point"} if binds else {}),
            "streamManagement": True,
            "resumable": True,
        }
        assert {"room", "rooms", "self", "notes"}.isdisjoint(told)

        before = await bridge.call("xmppInfo", target="room")
        for name in ("membersOnly", "persistent", "passwordProtected"):
            assert before["room"][name] is False
        assert (before["room"]["archived"], before["room"]["occupants"]) == (True, 2)
        assert before["room"]["anonymity"] == "semi-anonymous"
        assert (before["self"]["nickname"], before["self"]["self"]) == (NICKNAME, True)
        assert (before["self"]["role"], before["self"]["affiliation"]) == ("participant", "none")
        await owner.muc.set_affiliation(room, "member", jid=real_server.bot.jid)
        await configure(
            owner,
            membersonly="1",
            moderatedroom="1",
            persistentroom="1",
            publicroom="0",
            whois="anyone",
            roomname="The Lobby",
        )
        after = await bridge.call("xmppInfo", target=room)
        assert after["room"] == before["room"] | {
            "membersOnly": True,
            "moderated": True,
            "persistent": True,
            "public": False,
            "anonymity": "non-anonymous",
            "title": "The Lobby",
        }
        assert after["self"]["affiliation"] == "member"
        assert "connection" not in after
        await owner.muc.destroy(room)
