"""What the sandbox shares with Prosody and where it differs: deeds, and what comes of each.

Both show the kind of each stanza, who it is from, its type, then what it says in alphabetical
order. The types of errors but `auth`, and the code 100, are left out; docs/commands.md has the
differences, too.
"""

from collections.abc import Iterable

import pytest

from tests.sandbox.company import (
    Company,
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
Step = tuple[str, str, Told]

OWNER = ("owner", enters("Owner"))
OPEN = ("owner", configures(whois="anyone", publicroom="1"))
GUEST = ("guest", enters("Guest"))
THIRD = ("third", enters("Third"))
GUEST_LEAVES = ("guest", leaves("Guest"))
BOTH = (OWNER, OPEN, GUEST)
ALL = (*BOTH, THIRD)

HISTORY = "message Owner groupchat body 'earlier' delay"
HELLO = "message Guest groupchat body 'hello'"
SUBJECT = "<subject>Tea</subject>"
REFUSAL = (
    "<error type='modify'><not-acceptable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"
)
BOUNCE = (
    "<error type='cancel'><service-unavailable "
    "xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"
)
A_NEW_ROOM = (
    "guest: presence Guest 110 201 is guest owner/moderator",
    "guest: message room groupchat",
)
VOICE = (
    "<x xmlns='jabber:x:data' type='submit'>"
    "<field var='FORM_TYPE'><value>http://jabber.org/protocol/muc#request</value></field>"
    "<field var='muc#role'><value>participant</value></field></x>"
)


def to(people: str, line: str) -> Told:
    """The same for each of them."""
    return tuple(f"{one}: {line}" for one in people.split())


def seen(nick: str, rest: str, own: str = "guest", others: str = "owner") -> Told:
    """A presence, which has the code 110 for whose it is."""
    return (f"{own}: presence {nick} 110 {rest}", *to(others, f"presence {nick} {rest}"))


def arrival(rank: str = "none/participant", *history: str) -> Told:
    """The guest comes to the owner, and is told the history and the subject."""
    return (
        "guest: presence Owner is owner owner/moderator",
        *seen("Guest", f"is guest {rank}"),
        *(f"guest: {line}" for line in history or ("message room groupchat",)),
    )


def result(shown: str = "") -> Told:
    return (f"me: iq room result {shown}".strip(),)


def refusal(condition: str, stanza: str = "iq room") -> Told:
    return (f"me: {stanza} error {condition}",)


def done(nick: str, rest: str, own: str = "guest", others: str = "owner") -> Told:
    """What was asked for is done, and shows in a presence."""
    return (*seen(nick, rest, own, others), *result())


def ranked(rank: str, who: str = "guest", by: str = "Owner", others: str = "owner") -> Told:
    """Somebody gets another affiliation and role."""
    return done(who.title(), f"by {by} is {who} {rank}", who, others)


def put_out(code: str, left: str, reason: str = "", others: str = "owner") -> Told:
    """The owner puts out the guest, who is left with this affiliation."""
    why = f" reason '{reason}'" if reason else ""
    return done("Guest unavailable", f"{code} by Owner is guest {left}/none{why}", others=others)


def absent(who: str, affiliation: str, code: str = "", present: str = "owner") -> Told:
    """Somebody who is not here gets an affiliation."""
    line = f"message room {code}is {who} {affiliation}/None"
    return (*to(present, line), *result())


CONVERSATIONS: dict[str, tuple[Deed | Step, ...]] = {
    "coming and going": (
        ("guest", pings("Guest"), refusal("item-not-found", "iq Guest")),
        ("guest", discovers(), refusal("item-not-found")),
        ("guest", says("hello"), refusal("item-not-found", "message room")),
        (*GUEST_LEAVES, refusal("item-not-found", "presence Guest")),
        (
            *OWNER,
            (
                "owner: presence Owner 110 201 is owner owner/moderator",
                "owner: message room groupchat",
            ),
        ),
        OPEN,
        ("guest", shows("Guest", ""), refusal("item-not-found", "presence Guest")),
        ("guest", shows("", ""), refusal("jid-malformed", "presence room")),
        ("guest", says("hello"), refusal("not-acceptable", "message room")),
        (*GUEST, arrival()),
        (*GUEST, arrival()),
        ("third", enters("Guest"), refusal("conflict", "presence Guest")),
        ("third", leaves("Third"), ()),
        (
            "guest",
            shows("Guest", "<show>dnd</show>"),
            seen("Guest", "is guest none/participant show 'dnd'"),
        ),
        (
            "guest",
            leaves("Guest", "<status>bye</status>"),
            seen("Guest unavailable", "is guest none/none status 'bye'"),
        ),
        GUEST,
        ("owner", leaves("Owner")),
        (
            *OWNER,
            (
                "owner: presence Guest is guest none/participant",
                *seen("Owner", "is owner owner/moderator", "owner", "guest"),
                "owner: message room groupchat",
            ),
        ),
    ),
    "a room that everybody has left": (
        OWNER,
        OPEN,
        ("owner", leaves("Owner")),
        (*GUEST, A_NEW_ROOM),
    ),
    "a room that lasts": (
        OWNER,
        OPEN,
        ("owner", configures(persistentroom="1")),
        ("owner", leaves("Owner")),
        (
            *GUEST,
            (
                "guest: presence Guest 110 is guest none/participant",
                "guest: message room groupchat",
            ),
        ),
    ),
    "nicknames": (
        *BOTH,
        ("guest", shows("Owner", ""), refusal("conflict", "presence Owner")),
        (
            "guest",
            shows("Visitor", ""),
            (
                *seen("Guest unavailable", "303 is guest nick Visitor none/participant"),
                *seen("Visitor", "is guest none/participant"),
            ),
        ),
        (
            "owner",
            shows("Boss", ""),
            (
                *seen(
                    "Owner unavailable", "303 is owner nick Boss owner/moderator", "owner", "guest"
                ),
                *seen("Boss", "is owner owner/moderator", "owner", "guest"),
            ),
        ),
        ("owner", leaves("Boss")),
        (
            "third",
            enters("Guest"),
            (
                "third: presence Visitor is guest none/participant",
                *seen("Guest", "is third none/participant", "third", "guest"),
                "third: message room groupchat",
            ),
        ),
    ),
    "messages": (
        *BOTH,
        ("guest", says("hello"), to("owner guest", HELLO)),
        ("guest", sends("<x xmlns='urn:x'/>"), to("owner guest", "message Guest groupchat")),
        ("guest", sends("<body>x</body>", "Owner"), refusal("bad-request", "message Owner")),
        ("guest", says("psst", "Guest"), to("guest", "message Guest chat body 'psst'")),
        ("guest", says("psst", "Nobody"), refusal("item-not-found", "message Nobody")),
        ("third", says("psst", "Owner"), refusal("not-acceptable", "message Owner")),
        THIRD,
        ("guest", says("psst", "Owner"), to("owner", "message Guest chat body 'psst'")),
        (
            "guest",
            sends(REFUSAL, "Owner", "error"),
            to("owner", "message Guest error not-acceptable"),
        ),
    ),
    "history": (
        OWNER,
        OPEN,
        ("owner", says("first")),
        ("owner", says("earlier")),
        ("guest", enters("Guest", "<history maxstanzas='0'/>"), arrival()),
        GUEST_LEAVES,
        (
            "guest",
            enters("Guest", "<history maxstanzas='1'/>"),
            arrival("none/participant", HISTORY, "message room groupchat"),
        ),
    ),
    "subjects": (
        *BOTH,
        ("guest", sends(SUBJECT), refusal("auth forbidden", "message room")),
        ("owner", sends(SUBJECT), to("owner guest", "message Owner groupchat subject 'Tea'")),
        GUEST_LEAVES,
        (*GUEST, arrival("none/participant", "message Owner groupchat delay subject 'Tea'")),
        ("owner", configures(changesubject="1")),
        ("guest", sends(SUBJECT), to("owner guest", "message Guest groupchat subject 'Tea'")),
        (
            "guest",
            sends(f"{SUBJECT}<body>hello</body>"),
            to("owner guest", f"{HELLO} subject 'Tea'"),
        ),
        ("owner", sends("<subject/>"), to("owner guest", "message Owner groupchat")),
    ),
    "questions": (
        *BOTH,
        ("guest", pings("Guest"), to("guest", "iq Guest result")),
        ("third", pings("Third"), refusal("not-acceptable", "iq Third")),
        ("guest", pings("Nobody"), refusal("item-not-found", "iq Nobody")),
        ("guest", discovers("items"), result()),
        (
            "guest",
            asks("get", "<query xmlns='jabber:iq:version'/>", "Owner"),
            ("owner: iq Guest get", "guest: iq Owner error feature-not-implemented"),
        ),
    ),
    "kicks": (
        *BOTH,
        ("third", gives("Guest", "none"), refusal("not-allowed")),
        THIRD,
        ("guest", gives("Third", "none"), refusal("not-allowed")),
        ("owner", gives("Nobody", "none"), refusal("item-not-found")),
        ("owner", gives("Guest", "none", "noise"), put_out("307", "none", "noise", "owner third")),
        ("third", leaves("Third")),
        (*GUEST, arrival()),
        ("owner", gives("Guest", "none"), put_out("307", "none")),
    ),
    "bans": (
        *ALL,
        ("guest", affiliates("third", "outcast"), refusal("not-allowed")),
        ("owner", affiliates("owner", "outcast"), refusal("conflict")),
        (
            "owner",
            affiliates("guest", "outcast", "noise"),
            put_out("301", "outcast", "noise", "owner third"),
        ),
        ("third", leaves("Third")),
        ("owner", affiliates("third", "outcast"), absent("third", "outcast", "301 ")),
        ("owner", affiliates("third", "none")),
        ("owner", lists("affiliation='outcast'"), result("is guest outcast/None")),
        (*GUEST, refusal("auth forbidden", "presence Guest")),
        ("owner", affiliates("guest", "none")),
        (*GUEST, arrival()),
        ("owner", changes("nick='Guest' affiliation='outcast'"), put_out("301", "outcast")),
    ),
    "voice": (
        *BOTH,
        (
            "owner",
            gives("Guest", "visitor", "quiet"),
            done("Guest", "by Owner is guest none/visitor reason 'quiet'"),
        ),
        ("guest", says("hello"), refusal("auth forbidden", "message room")),
        ("guest", says("hello", "Owner"), to("owner", "message Guest chat body 'hello'")),
        ("owner", gives("Guest", "moderator"), ranked("none/moderator")),
        THIRD,
        ("guest", gives("Third", "moderator"), refusal("not-allowed")),
        (
            "guest",
            gives("Third", "visitor"),
            ranked("none/visitor", "third", "Guest", "owner guest"),
        ),
        ("owner", gives("Guest", "king"), refusal("not-acceptable")),
        (
            "owner",
            changes("nick='Guest' jid='{guest}' affiliation='member' role='visitor'"),
            refusal("bad-request"),
        ),
        ("owner", changes("nick='Owner'"), refusal("bad-request")),
    ),
    "a moderated room": (
        OWNER,
        OPEN,
        ("owner", configures(moderatedroom="1")),
        (*GUEST, arrival("none/visitor")),
        ("guest", says("hello"), refusal("auth forbidden", "message room")),
        ("owner", gives("Guest", "participant"), ranked("none/participant")),
        ("guest", says("hello"), to("owner guest", HELLO)),
        GUEST_LEAVES,
        GUEST,
        ("owner", affiliates("guest", "member")),
        ("guest", says("hello"), to("owner guest", HELLO)),
    ),
    "affiliations": (
        *BOTH,
        ("owner", affiliates("guest", "member"), ranked("member/participant")),
        ("guest", lists("affiliation='member'"), refusal("auth forbidden")),
        ("owner", affiliates("third", "member"), absent("third", "member", present="owner guest")),
        (
            "owner",
            lists("affiliation='member'"),
            result("is guest is third member/None member/None"),
        ),
        ("owner", lists("affiliation='owner'"), result("is owner owner/None")),
        ("owner", lists("affiliation='admin'"), result()),
        ("owner", lists("affiliation='king'"), refusal("bad-request")),
        ("owner", affiliates("guest", "king"), refusal("not-acceptable")),
        ("owner", changes("jid='{guest}/x' affiliation='member'"), refusal("jid-malformed")),
        ("owner", affiliates("owner", "admin"), refusal("conflict")),
        ("owner", affiliates("guest", "owner"), ranked("owner/moderator")),
        ("owner", affiliates("owner", "none"), ranked("none/participant", "owner", others="guest")),
    ),
    "admins": (
        *ALL,
        ("guest", affiliates("third", "member"), refusal("not-allowed")),
        (
            "owner",
            affiliates("guest", "admin"),
            done("Guest", "admin/moderator by Owner is guest", others="owner third"),
        ),
        ("guest", gives("Owner", "none"), refusal("not-allowed")),
        ("guest", affiliates("owner", "outcast"), refusal("not-allowed")),
        ("guest", affiliates("third", "admin"), refusal("not-allowed")),
        ("guest", lists("affiliation='owner'"), refusal("auth forbidden")),
        ("guest", lists("affiliation='member'"), result()),
        (
            "guest",
            affiliates("third", "member"),
            ranked("member/participant", "third", "Guest", "owner guest"),
        ),
        (
            "guest",
            gives("Third", "none"),
            done("Third unavailable", "307 by Guest is third member/none", "third", "owner guest"),
        ),
        ("owner", affiliates("guest", "member"), ranked("member/participant")),
    ),
    "several items": (
        *BOTH,
        (
            "owner",
            changes("jid='{guest}' affiliation='member'/><item jid='{third}' affiliation='member'"),
            ranked("member/participant"),
        ),
    ),
    "roles": (
        *ALL,
        ("owner", lists("role='moderator'"), result("is owner nick Owner owner/moderator")),
        (
            "owner",
            lists("role='participant'"),
            result("is guest is third nick Guest nick Third none/participant none/participant"),
        ),
        ("guest", lists("role='participant'"), refusal("auth forbidden")),
    ),
    "a room for members": (
        OWNER,
        OPEN,
        ("owner", configures(membersonly="1")),
        (*GUEST, refusal("auth registration-required", "presence Guest")),
        ("owner", affiliates("guest", "outcast")),
        (*GUEST, refusal("auth registration-required", "presence Guest")),
        ("owner", affiliates("guest", "member"), absent("guest", "member")),
        (*GUEST, arrival("member/participant")),
        ("owner", affiliates("guest", "none", "over"), put_out("321", "none", "over")),
    ),
    "a password": (
        OWNER,
        OPEN,
        ("owner", configures(roomsecret="sesame")),
        (*GUEST, refusal("auth not-authorized", "presence Guest")),
        (
            "guest",
            enters("Guest", "<password>please</password>"),
            refusal("auth not-authorized", "presence Guest"),
        ),
        ("guest", enters("Guest", "<password>sesame</password>"), arrival()),
        GUEST_LEAVES,
        ("owner", affiliates("guest", "member")),
        (*GUEST, refusal("auth not-authorized", "presence Guest")),
        ("owner", configures(roomsecret="")),
        (*GUEST, arrival("member/participant")),
    ),
    "configuring": (
        *BOTH,
        ("owner", owns("get", ""), result("publicroom=1")),
        ("guest", owns("get", ""), refusal("auth forbidden")),
        ("guest", configures(moderatedroom="1"), refusal("auth forbidden")),
        ("owner", configures("request", moderatedroom="1"), refusal("bad-request")),
        ("owner", configures(kind="result"), refusal("bad-request")),
        ("owner", owns("set", "<x xmlns='jabber:x:data' type='submit'/>"), result()),
        ("owner", configures(moderatedroom="0"), result()),
        ("owner", configures(colour="red"), result()),
        ("owner", configures(kind="cancel", moderatedroom="1"), result()),
        (
            "guest",
            discovers(),
            result(
                "conference nonanonymous occupants=2 open public temporary unmoderated unsecured",
            ),
        ),
        (
            "owner",
            configures(moderatedroom="1"),
            (*result(), *to("owner guest", "message room groupchat 104")),
        ),
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
        (
            "owner",
            discovers(),
            result(
                "conference Tea description=A room hidden membersonly moderated nonanonymous "
                "occupants=1 passwordprotected persistent"
            ),
        ),
    ),
    "the end of a room": (
        *BOTH,
        ("owner", configures(moderatedroom="1")),
        ("guest", owns("set", "<destroy/>"), refusal("auth forbidden")),
        (
            "owner",
            owns("set", "<destroy><reason>over</reason></destroy>"),
            (
                "owner: presence Owner unavailable 110 destroy is owner owner/none reason 'over'",
                *result(),
                "guest: presence Guest unavailable 110 destroy is guest none/none reason 'over'",
            ),
        ),
        (*GUEST, A_NEW_ROOM),
    ),
}
"""What both tell alike."""

SAID_EARLIER = (OWNER, OPEN, ("owner", says("earlier")))
NAMED_HISTORY = arrival(
    "none/participant", f"{HISTORY} is owner owner/moderator", "message room groupchat"
)
DIFFERENCES: dict[str, tuple[tuple[Deed, ...], Told, Told]] = {
    "who enters a new room sees the JID of moderators alone": (
        (OWNER, GUEST),
        (
            "guest: presence Owner owner/moderator",
            *seen("Guest", "is guest none/participant"),
            "guest: message room groupchat",
        ),
        arrival(),
    ),
    "history names who said it": (
        (*SAID_EARLIER, GUEST),
        NAMED_HISTORY,
        arrival("none/participant", HISTORY, "message room groupchat"),
    ),
    "history of some seconds": (
        (*SAID_EARLIER, ("guest", enters("Guest", "<history seconds='0'/>"))),
        NAMED_HISTORY,
        arrival("none/participant", HISTORY, "message room groupchat"),
    ),
    "those who stay are told who is no member": (
        (*BOTH, ("owner", configures(membersonly="1"))),
        (
            *result(),
            "owner: message room groupchat 104",
            "guest: presence Guest unavailable 110 322 is guest none/none",
        ),
        (
            *seen("Guest unavailable", "322 is guest none/none"),
            *result(),
            "owner: message room groupchat 104",
        ),
    ),
    "a new room is hidden": (
        (OWNER, ("guest", discovers())),
        result("conference hidden occupants=1 open semianonymous temporary unmoderated unsecured"),
        result("conference nonanonymous occupants=1 open public temporary unmoderated unsecured"),
    ),
    "a password sets that of a new room": (
        (("owner", enters("Owner", "<password>x</password>")), ("owner", discovers())),
        result(
            "conference hidden occupants=1 open passwordprotected semianonymous temporary "
            "unmoderated"
        ),
        result("conference nonanonymous occupants=1 open public temporary unmoderated unsecured"),
    ),
    "a room that lasted and has ended": (
        (
            OWNER,
            ("owner", configures(persistentroom="1")),
            ("owner", owns("set", "<destroy/>")),
            GUEST,
        ),
        refusal("gone", "presence Guest"),
        A_NEW_ROOM,
    ),
    "one account under one nickname twice": (
        (*BOTH, ("twin", enters("Guest"))),
        (
            "owner: presence Guest is guest is guest none/participant none/participant",
            "twin: presence Owner is owner owner/moderator",
            *to(
                "guest twin",
                "presence Guest 110 is guest is guest none/participant none/participant",
            ),
            "twin: message room groupchat",
        ),
        refusal("conflict", "presence Guest"),
    ),
    "an error from an occupant puts them out": (
        (*BOTH, ("guest", sends(BOUNCE, "Owner", "error"))),
        seen("Guest unavailable", "333 is guest none/none status 'Kicked: service unavailable'"),
        to("owner", "message Guest error service-unavailable"),
    ),
    "a request for voice": (
        (
            OWNER,
            OPEN,
            ("owner", configures(moderatedroom="1")),
            GUEST,
            ("guest", sends(VOICE, "", "normal")),
        ),
        ("owner: message room normal",),
        refusal("bad-request", "message room"),
    ),
    "an invitation": (
        (
            *BOTH,
            (
                "guest",
                sends(
                    "<x xmlns='http://jabber.org/protocol/muc#user'><invite to='{third}'/></x>",
                    "",
                    "normal",
                ),
            ),
        ),
        (),
        refusal("bad-request", "message room"),
    ),
    "presence to the room": (
        (*BOTH, ("guest", "<presence to='{room}'><show>dnd</show></presence>")),
        seen("Guest", "is guest none/participant show 'dnd'"),
        refusal("jid-malformed", "presence room"),
    ),
    "a blank nickname": (
        (OWNER, ("guest", enters(" "))),
        refusal("not-allowed", "presence  "),
        refusal("jid-malformed", "presence  "),
    ),
}
"""What Prosody tells, and what the sandbox tells."""


def by_person(told: Iterable[str], me: str = "") -> list[str]:
    named = (f"{me}{line.removeprefix('me')}" if line.startswith("me:") else line for line in told)
    return sorted(named, key=lambda line: line.partition(":")[0])


@pytest.fixture(params=["prosody", "sandbox"])
def server(request: pytest.FixtureRequest) -> XmppServer:
    found: XmppServer = request.getfixturevalue(request.param)
    return found


async def told(present: Company, *deeds: Deed) -> list[str]:
    """What everybody is told of the last deed."""
    for who, deed in deeds:
        present.told()
        await present.does(who, deed)
    return by_person(present.told())


@pytest.mark.parametrize("name", CONVERSATIONS)
async def test_both_tell_the_same(name: str, server: XmppServer) -> None:
    conversation = CONVERSATIONS[name]
    async with company(server, {who for who, *_ in conversation}) as present:
        for who, deed, *expected in conversation:
            heard = await told(present, (who, deed))
            for lines in expected:
                assert heard == by_person(lines, who), (who, deed)


@pytest.mark.parametrize("name", DIFFERENCES)
async def test_a_difference_is_as_it_is_listed(name: str, server: XmppServer) -> None:
    deeds, *expected = DIFFERENCES[name]
    async with company(server, {who for who, _ in deeds}) as present:
        heard = await told(present, *deeds)
    assert heard == by_person(expected[server.name == "sandbox"], deeds[-1][0])
