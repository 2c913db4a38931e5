"""Whether our nickname in a room is ours alone, and who chose it, as the room shows.

A room may let several sessions of one account share a nickname (XEP-0045, section 7.2.9). Prosody
lists all of them in our own presence. ejabberd sends us the presence of another session as if it
were our own, without the code 110. If the other session was there before us, ejabberd sends nothing
about it.
"""

from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.model.events import Event, NicknameChanged, OccupantChanged, OccupantJoined


class OwnNickname:
    """Our nickname in one stay in a room."""

    def __init__(self) -> None:
        self.is_marked = False
        """Whether our presence is surely our own: it has the code 110, or our account's JID."""
        self.is_shared = False
        """Whether another session of our account was seen under the nickname."""
        self.is_spoken_under = False
        """Whether a message came under the nickname that is not proved to be ours."""
        self.was_changed = False
        """Whether the room gave us this nickname instead of another."""
        self._has_code = False

    def begin(self, me: OccupantJoined, account: str) -> None:
        """Begin a stay with our own presence; `account` is our bare JID."""
        address = (me.jid or "").partition("/")[0]
        self._has_code = 110 in me.codes
        self.is_marked = self._has_code or prepared(address) == prepared(account)
        self.is_shared = self.is_spoken_under = self.was_changed = False

    def see(self, event: Event, happened: Event | None) -> None:
        """Take an event, and as `happened` what it changes in the room; None if nothing."""
        match event:
            case NicknameChanged(self_=True):
                self.was_changed = True
            case OccupantJoined(self_=True, codes=codes, sessions=sessions):
                self.was_changed |= 210 in codes
                # Some rooms leave the code out when they change our role. Everything else in our
                # presence can be changed only by a session of ours, and this session never does.
                same = happened is None or (
                    isinstance(happened, OccupantChanged)
                    and happened.former_role is happened.former_affiliation is None
                )
                unmarked = self._has_code and 110 not in codes
                self.is_shared |= sessions > 1 or (unmarked and same)
