from bridge.xmpp.muc.membership import Membership
from bridge.xmpp.muc.state import Step


def enter(membership: Membership) -> None:
    membership.occupant = f"{membership.jid}/{membership.place.nickname}"
    for step in (Step.ASK, Step.ADMISSION):
        membership._step(step)  # noqa: SLF001 - a join without a room
