from bridge.xmpp.muc.membership import Membership


def enter(membership: Membership) -> None:
    """Be in the room without having joined it."""
    membership.occupant = f"{membership.jid}/{membership.place.nickname}"
    membership.inside = True
