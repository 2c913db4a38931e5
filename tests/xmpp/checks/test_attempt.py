"""What a connection shows that tries settings out."""

from dataclasses import replace

from bridge.wire.names import DISCO_INFO, DISCO_ITEMS, MUC
from bridge.xmpp.checks.attempt import try_out
from tests.faults.reaching import settings_for
from tests.faults.scripted_server import DOMAIN, HONEST, ScriptedServer, Wire

ITEMS = {
    DOMAIN: ["upload.localhost", "one.localhost", "two.localhost", "empty.localhost"],
    "one.localhost": ["a@one.localhost", "b@one.localhost", "c@one.localhost", "d@elsewhere"],
    "two.localhost": ["x@two.localhost"],
}


def answer_of(to: str, namespace: str) -> str:
    if namespace == DISCO_ITEMS:
        return "".join(f"<item jid='{jid}'/>" for jid in ITEMS.get(to, ()))
    return "" if to == "upload.localhost" else f"<feature var='{MUC}'/>"


async def test_the_rooms_of_every_room_service_are_listed() -> None:
    async def stand(wire: Wire) -> None:
        while True:
            asked = await wire.element("iq")
            to, namespace = asked.get("to", ""), asked[0].tag[1:].partition("}")[0]
            assert namespace in {DISCO_INFO, DISCO_ITEMS}
            wire.send(
                f"<iq type='result' id='{asked.get('id')}' from='{to}'>"
                f"<query xmlns='{namespace}'>{answer_of(to, namespace)}</query></iq>"
            )

    async with ScriptedServer(replace(HONEST, join=stand)) as server:
        attempt = await try_out(settings_for(server))
    assert attempt.fault is None
    assert attempt.services == ["one.localhost", "two.localhost", "empty.localhost"]
    assert [room.jid for room in attempt.rooms] == [
        "a@one.localhost",
        "x@two.localhost",
        "b@one.localhost",
        "c@one.localhost",
    ]
