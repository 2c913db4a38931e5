"""What the sandbox shares with Prosody and where it differs: deeds, and what comes of each.

Both show the kind of each stanza, who it is from, its type, then what it says in alphabetical
order. The types of errors but `auth`, and the code 100, are left out; docs/commands.md has the
differences, too.
"""

import asyncio
from collections.abc import Iterable, Sequence

import pytest

from tests.sandbox.company import (
    affiliates,
    asks,
    changes,
    company,
    configures,
    discovers,
    enters,
    gives,
    leaves,
    lists,
    owns,
    pings,
    says,
    sends,
    shows,
)
from tests.servers.server import XmppServer

Deed = tuple[str, str]
"""Who does something, and the stanza that does it."""
Told = tuple[str, ...]
"""What everybody is told, each line with who is told it: `me` is who did it.

The order counts for each of them.
"""

OWNER = ("owner", enters("Owner"))
OPEN = ("owner", configures(whois="anyone", publicroom="1"))
GUEST = ("guest", enters("Guest"))
THIRD = ("third", enters("Third"))
GUEST_LEAVES = ("guest", leaves("Guest"))
ALONE = (OWNER, OPEN)
BOTH = (*ALONE, GUEST)
ALL = (*BOTH, THIRD)
SET_UP = {OPEN, THIRD}
"""What is not compared: their configurations differ, and who is there comes in any order."""
UNTOLD = {("third", leaves("Third"))}
"""What tells nobody anything."""

SUBJECT = "<subject>Tea</subject>"
REFUSAL = (
    "<error type='modify'><not-acceptable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"
)
BOUNCE = (
    "<error type='cancel'><service-unavailable "
    "xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"
)
PING = "<ping xmlns='urn:xmpp:ping'/>"
INVITATION = "<x xmlns='http://jabber.org/protocol/muc#user'><invite to='{third}'/></x>"
VOICE = (
    "<x xmlns='jabber:x:data' type='submit'>"
    "<field var='FORM_TYPE'><value>http://jabber.org/protocol/muc#request</value></field>"
    "<field var='muc#role'><value>participant</value></field></x>"
)


def result(shown: str = "") -> Told:
    return (f"me: iq room result {shown}".strip(),)


def refusal(condition: str, stanza: str = "iq room") -> Told:
    return (f"me: {stanza} error {condition}",)


CONVERSATIONS: dict[str, tuple[Deed, ...]] = {
    "coming and going": (
        ("guest", pings("Guest")),
        ("guest", discovers()),
        ("guest", says("hello")),
        GUEST_LEAVES,
        OWNER,
        OPEN,
        ("guest", shows("Guest", "")),
        ("guest", shows("", "")),
        ("guest", says("hello")),
        GUEST,
        GUEST,
        ("third", enters("Guest")),
        ("third", leaves("Third")),
        ("guest", shows("Guest", "<show>dnd</show>")),
        ("guest", leaves("Guest", "<status>bye</status>")),
        GUEST,
        ("guest", "<presence type='unavailable'><status>off</status></presence>"),
        GUEST,
        ("owner", leaves("Owner")),
        OWNER,
    ),
    "stanzas that break the rules": (
        *BOTH,
        ("guest", f"<iq to='{{room}}' type='get'>{PING}</iq>"),
        ("guest", f"<iq to='{{room}}/Owner' type='get'>{PING}</iq>"),
        ("guest", f"<iq to='{{room}}' id='q'>{PING}</iq>"),
        ("guest", f"<iq to='{{room}}' id='q' type='ask'>{PING}</iq>"),
        ("guest", f"<iq to='{{room}}' id='q' type='get'>{PING}{PING}</iq>"),
        ("guest", "<iq to='{room}' id='q' type='set'/>"),
        ("guest", says("hello")),
    ),
    "a room that everybody has left": (*ALONE, ("owner", leaves("Owner")), GUEST),
    "a room that lasts": (
        *ALONE,
        ("owner", configures(persistentroom="1")),
        ("owner", leaves("Owner")),
        GUEST,
    ),
    "questions and nicknames": (
        *BOTH,
        ("guest", pings("Guest")),
        ("third", pings("Third")),
        ("guest", pings("Nobody")),
        ("guest", discovers("items")),
        ("guest", asks("get", "<query xmlns='jabber:iq:version'/>", "Owner")),
        ("guest", shows("Owner", "")),
        ("guest", shows("Visitor", "")),
        ("owner", shows("Boss", "")),
        ("owner", leaves("Boss")),
        ("third", enters("Guest")),
    ),
    "messages": (
        *BOTH,
        ("guest", says("hello")),
        ("guest", says("salut").replace("<message", "<message xml:lang='fr'")),
        ("guest", says("psst", "Owner").replace("<message", "<message xml:lang='fr'")),
        ("guest", sends("<x xmlns='urn:x'/>")),
        ("guest", sends("<body>x</body>", "Owner")),
        ("guest", says("psst", "Guest")),
        ("guest", says("psst", "Nobody")),
        ("third", says("psst", "Owner")),
        THIRD,
        ("guest", says("psst", "Owner")),
        ("guest", sends(REFUSAL, "Owner", "error")),
    ),
    "history": (
        *ALONE,
        ("owner", says("first")),
        ("owner", says("earlier")),
        ("guest", enters("Guest", "<history maxstanzas='0'/>")),
        GUEST_LEAVES,
        ("guest", enters("Guest", "<history maxstanzas='1'/>")),
        GUEST_LEAVES,
        ("guest", enters("Guest", "<history maxchars='0'/>")),
    ),
    "subjects": (
        *BOTH,
        ("guest", sends(SUBJECT)),
        ("owner", sends(SUBJECT)),
        GUEST_LEAVES,
        GUEST,
        ("owner", configures(changesubject="1")),
        ("guest", sends(SUBJECT)),
        ("guest", sends(f"{SUBJECT}<body>hello</body>")),
        ("owner", sends("<subject/>")),
    ),
    "kicks": (
        *BOTH,
        ("third", gives("Guest", "none")),
        THIRD,
        ("guest", gives("Third", "none")),
        ("owner", gives("Nobody", "none")),
        ("owner", gives("Guest", "none", "noise")),
        ("third", leaves("Third")),
        GUEST,
        ("owner", gives("Guest", "none")),
    ),
    "bans": (
        *ALL,
        ("guest", affiliates("third", "outcast")),
        ("owner", affiliates("owner", "outcast")),
        ("owner", affiliates("guest", "outcast", "noise")),
        ("third", leaves("Third")),
        ("owner", affiliates("third", "outcast")),
        ("owner", affiliates("third", "none")),
        GUEST,
        ("owner", affiliates("guest", "none")),
        GUEST,
        ("owner", changes("nick='Guest' affiliation='outcast'")),
    ),
    "voice": (
        *BOTH,
        ("owner", gives("Guest", "visitor", "quiet")),
        ("guest", says("hello")),
        ("guest", says("hello", "Owner")),
        ("owner", gives("Guest", "moderator")),
        THIRD,
        ("guest", gives("Third", "moderator")),
        ("guest", gives("Third", "visitor")),
        ("owner", gives("Guest", "king")),
        ("owner", changes("nick='Guest' jid='{guest}' affiliation='member' role='visitor'")),
        ("owner", changes("nick='Owner'")),
    ),
    "a moderated room": (
        *ALONE,
        ("owner", configures(moderatedroom="1")),
        GUEST,
        ("guest", says("hello")),
        ("owner", gives("Guest", "participant")),
        ("guest", says("hello")),
        GUEST_LEAVES,
        ("guest", enters("Guest", "<history maxstanzas='0'/>")),
        ("owner", affiliates("guest", "member")),
        ("guest", says("hello")),
    ),
    "affiliations": (
        *BOTH,
        (
            "owner",
            changes("jid='{guest}' affiliation='member'/><item jid='{third}' affiliation='member'"),
        ),
        ("owner", affiliates("guest", "member")),
        ("guest", lists("affiliation='member'")),
        ("owner", affiliates("third", "member")),
        ("owner", lists("affiliation='member'")),
        ("owner", lists("affiliation='owner'")),
        ("owner", lists("affiliation='admin'")),
        ("owner", lists("affiliation='king'")),
        ("owner", affiliates("guest", "king")),
        ("owner", changes("jid='{guest}/x' affiliation='member'")),
        ("owner", affiliates("owner", "admin")),
        ("owner", affiliates("guest", "owner")),
        ("owner", affiliates("owner", "none")),
    ),
    "lists of roles, and admins": (
        *ALL,
        ("owner", lists("role='moderator'")),
        ("owner", lists("role='participant'")),
        ("guest", lists("role='participant'")),
        ("guest", affiliates("third", "member")),
        ("owner", affiliates("guest", "admin")),
        ("guest", gives("Owner", "none")),
        ("guest", affiliates("owner", "outcast")),
        ("guest", affiliates("third", "admin")),
        ("guest", lists("affiliation='owner'")),
        ("guest", lists("affiliation='member'")),
        ("guest", affiliates("third", "member")),
        ("guest", gives("Third", "none")),
        ("owner", affiliates("guest", "member")),
    ),
    "a room for members": (
        *ALONE,
        ("owner", configures(membersonly="1")),
        GUEST,
        ("owner", affiliates("guest", "outcast")),
        GUEST,
        ("owner", affiliates("guest", "member")),
        GUEST,
        ("owner", affiliates("guest", "none", "over")),
    ),
    "a password": (
        *ALONE,
        ("owner", configures(roomsecret="sesame")),
        GUEST,
        ("guest", enters("Guest", "<password>please</password>")),
        ("guest", enters("Guest", "<password>sesame</password>")),
        GUEST_LEAVES,
        ("owner", affiliates("guest", "member")),
        GUEST,
        ("owner", configures(roomsecret="")),
        GUEST,
    ),
    "configuring": (
        *BOTH,
        ("owner", owns("get", "")),
        ("guest", owns("get", "")),
        ("guest", configures(moderatedroom="1")),
        ("owner", configures("request", moderatedroom="1")),
        ("owner", configures(kind="result")),
        ("owner", owns("set", "<x xmlns='jabber:x:data' type='submit'/>")),
        ("owner", configures(moderatedroom="0")),
        ("owner", configures(colour="red")),
        ("owner", configures(kind="cancel", moderatedroom="1")),
        ("guest", discovers()),
        ("owner", configures(moderatedroom="1")),
        GUEST_LEAVES,
        (
            "owner",
            configures(
                roomname="Tea",
                roomdesc="A room",
                roomsecret="x",
                persistentroom="1",
                publicroom="0",
                membersonly="true",
            ),
        ),
        ("owner", discovers()),
    ),
    "the end of a room": (
        *BOTH,
        ("owner", configures(moderatedroom="1")),
        ("guest", owns("set", "<destroy/>")),
        ("owner", owns("set", "<destroy><reason>over</reason></destroy>")),
        GUEST,
    ),
}
"""Of which both tell the same, deed by deed."""

SAID_EARLIER = (*ALONE, ("owner", says("earlier")))
PUBLIC = "conference nonanonymous occupants=1 open public temporary unmoderated unsecured"
ARRIVAL = (
    "guest: presence Owner is owner owner/moderator",
    "guest: presence Guest 110 is guest none/participant",
    "guest: message room groupchat",
    "owner: presence Guest is guest none/participant",
)
WITH_HISTORY = (*ARRIVAL[:2], "guest: message Owner groupchat body 'earlier' delay", *ARRIVAL[2:])
DIFFERENCES: dict[str, tuple[tuple[Deed, ...], Told]] = {
    "who enters a new room sees the JID of moderators alone": ((OWNER, GUEST), ARRIVAL),
    "history names who said it": ((*SAID_EARLIER, GUEST), WITH_HISTORY),
    "those who stay are told who is no member": (
        (*BOTH, ("owner", configures(membersonly="1"))),
        (
            "guest: presence Guest unavailable 110 322 is guest none/none",
            "owner: presence Guest unavailable 322 is guest none/none",
            *result(),
            "owner: message room groupchat 104",
        ),
    ),
    "a new room is hidden": ((OWNER, ("guest", discovers())), result(PUBLIC)),
    "a password sets that of a new room": (
        (("owner", enters("Owner", "<password>x</password>")), ("owner", discovers())),
        result(PUBLIC),
    ),
    "a room that lasted and has ended": (
        (
            OWNER,
            ("owner", configures(persistentroom="1")),
            ("owner", owns("set", "<destroy/>")),
            GUEST,
        ),
        ("me: presence Guest 110 201 is guest owner/moderator", "me: message room groupchat"),
    ),
    "one account under one nickname twice": (
        (*BOTH, ("twin", enters("Guest"))),
        refusal("conflict", "presence Guest"),
    ),
    "an error from an occupant puts them out": (
        (*BOTH, ("guest", sends(BOUNCE, "Owner", "error"))),
        ("owner: message Guest error service-unavailable",),
    ),
    "a request for voice": (
        (
            *ALONE,
            ("owner", configures(moderatedroom="1")),
            GUEST,
            ("guest", sends(VOICE, "", "normal")),
        ),
        refusal("bad-request", "message room"),
    ),
    "an invitation": (
        (*BOTH, ("guest", sends(INVITATION, "", "normal"))),
        refusal("bad-request", "message room"),
    ),
    "presence to the room": (
        (*BOTH, ("guest", "<presence to='{room}'><show>dnd</show></presence>")),
        refusal("jid-malformed", "presence room"),
    ),
    "a blank nickname": ((OWNER, ("guest", enters(" "))), refusal("jid-malformed", "presence  ")),
}
"""What the sandbox tells of the last deed, and Prosody does not."""


def by_person(told: Iterable[str], me: str = "") -> list[str]:
    named = (f"{me}{line.removeprefix('me')}" if line.startswith("me:") else line for line in told)
    return sorted(named, key=lambda line: line.partition(":")[0])


async def told(server: XmppServer, deeds: Sequence[Deed]) -> list[list[str]]:
    """What everybody is told of each deed."""
    differences = []
    async with company(server, {who for who, _ in deeds}) as present:
        for who, deed in deeds:
            await present.does(who, deed)
            differences.append(by_person(present.told()))
    return differences


@pytest.mark.parametrize("name", CONVERSATIONS)
async def test_the_sandbox_tells_what_prosody_tells(
    name: str, prosody: XmppServer, sandbox: XmppServer
) -> None:
    deeds = CONVERSATIONS[name]
    judge, judged = await asyncio.gather(told(prosody, deeds), told(sandbox, deeds))
    for deed, expected, heard in zip(deeds, judge, judged, strict=True):
        if deed not in SET_UP:
            assert heard == expected, deed
            assert heard or deed in UNTOLD, deed


BANS = ("owner", lists("affiliation='outcast'"))
MEMBERS = ("owner", lists("affiliation='member'"))


async def test_the_lists_have_reasons_as_those_of_prosody_13_have(
    prosody: XmppServer, sandbox: XmppServer
) -> None:
    deeds = (
        *BOTH,
        ("owner", affiliates("guest", "outcast", "noise")),
        BANS,
        ("owner", affiliates("guest", "member")),
        MEMBERS,
        ("owner", affiliates("guest", "member", "better")),
        MEMBERS,
        ("owner", affiliates("guest", "none")),
        ("owner", affiliates("guest", "outcast")),
        BANS,
    )
    each = await asyncio.gather(told(prosody, deeds), told(sandbox, deeds))
    judge, listed = (
        [heard for deed, heard in zip(deeds, it, strict=True) if deed in {BANS, MEMBERS}]
        for it in each
    )
    assert listed == [
        ["owner: iq room result is guest outcast/None reason 'noise'"],
        ["owner: iq room result is guest member/None reason 'noise'"],
        ["owner: iq room result is guest member/None reason 'better'"],
        ["owner: iq room result is guest outcast/None"],
    ]
    if prosody.version < (13,):
        listed = [[line.partition(" reason")[0] for line in heard] for heard in listed]
    assert judge == listed


@pytest.mark.parametrize("name", DIFFERENCES)
async def test_a_difference_is_as_it_is_listed(
    name: str, prosody: XmppServer, sandbox: XmppServer
) -> None:
    deeds, expected = DIFFERENCES[name]
    (*_, judge), (*_, heard) = await asyncio.gather(told(prosody, deeds), told(sandbox, deeds))
    assert heard == by_person(expected, deeds[-1][0])
    assert heard != judge
