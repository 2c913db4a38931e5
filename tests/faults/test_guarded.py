"""An ejabberd that does not let everybody in: CAPTCHAs, a closed service, barred addresses."""

from collections.abc import Iterator

import pytest

from bridge.xmpp.model.events import Phase, RoomError
from tests.faults.scene import scene
from tests.servers.certificates import Authority
from tests.servers.ejabberd import MAX_AUTH_FAILURES, missing_ejabberd, running_guarded_ejabberd
from tests.servers.process import ServerProcess
from tests.support.prerequisites import do_without
from tests.xmpp.probing import check, failed

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def guarded(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    if (program := missing_ejabberd()) is not None:
        do_without(f"{program} is not installed")
    with running_guarded_ejabberd(tmp_path_factory.mktemp("guarded"), authority) as process:
        yield process


async def test_a_room_that_may_not_be_created_is_told_in_the_servers_words_with_both_readings(
    guarded: ServerProcess,
) -> None:
    told = failed(await check(guarded.server.environment()), "join")
    assert '"Room creation is ' in told.detail
    assert "MUC_ROOM" in told.hint
    assert "may not create it" in told.hint


async def test_a_room_that_wants_a_captcha_solved_is_a_fault_of_its_own(
    guarded: ServerProcess, authority: Authority
) -> None:
    async with scene(guarded, authority) as stage, stage.witness() as wilma:
        form = await wilma.muc.get_room_config(stage.room)
        form.set_values({"captcha_protected": "1"})
        await wilma.muc.set_room_config(stage.room, form)
        async with stage.participant() as eyes:
            fault, changed, _ = await eyes.fault()
            assert (fault.condition, changed.phase) == ("captcha-required", Phase.FAILED)
            assert "https://captcha.example/captcha/" in fault.message
            (refused,) = (it.event for it in eyes.records if isinstance(it.event, RoomError))
            assert refused.condition == "captcha-required"
        # Members are not asked.
        await wilma.muc.set_affiliation(stage.room, "member", jid=guarded.server.bot.jid)
        async with stage.participant() as eyes:
            await eyes.joined()


async def test_an_address_that_is_barred_after_failed_logins_is_told_apart_from_a_wrong_password(
    guarded: ServerProcess,
) -> None:
    wrong = guarded.server.environment(XMPP_PASSWORD="not-the-password")
    for _ in range(MAX_AUTH_FAILURES - 1):
        assert (await check(wrong)).condition == "not-authorized"
    # First at the login, where the count is full; then before anything is asked.
    for stage, environment in (("sasl", wrong), ("tls", guarded.server.environment())):
        report = await check(environment)
        assert report.condition == "policy-violation"
        told = failed(report, stage)
        assert '"Too many (4) failed authentications from this IP address' in told.detail
        assert "wait" in told.hint
