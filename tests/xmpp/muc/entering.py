from bridge.xmpp.muc.membership import Membership
from bridge.xmpp.muc.state import State


def enter(membership: Membership) -> None:
    membership.occupant = f"{membership.jid}/{membership.place.nickname}"
    for state in (State.ENTERING, State.INSIDE):
        membership._become(state)  # noqa: SLF001 - a join without a room
