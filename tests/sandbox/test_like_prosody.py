"""What the sandbox shares with Prosody and where it differs: deeds, and what comes of the last.

Both show the kind of each stanza, who it is from, its type, then what it says in alphabetical
order. The types of errors but `auth`, and the code 100, are left out; docs/commands.md has the
differences, too.
"""

import pytest

from tests.sandbox.company import (
    asks,
    changes,
    company,
    configures,
    discovers,
    enters,
    leaves,
    lists,
    owns,
    pings,
    says,
    sends,
    shows,
)
from tests.servers.server import XmppServer

Deeds = tuple[tuple[str, str], ...]
Told = tuple[str, ...]

OWNER = ("owner", enters("Owner"))
OPEN = ("owner", configures(whois="anyone", publicroom="1"))
GUEST = ("guest", enters("Guest"))
THIRD = ("third", enters("Third"))
BOTH: Deeds = (OWNER, OPEN, GUEST)
ALL: Deeds = (*BOTH, THIRD)
MODERATED: Deeds = (OWNER, OPEN, ("owner", configures(moderatedroom="1")), GUEST)
MEMBERS: Deeds = (OWNER, OPEN, ("owner", configures(membersonly="1")))
SECRET: Deeds = (OWNER, OPEN, ("owner", configures(roomsecret="sesame")))
ADMIN: Deeds = (*ALL, ("owner", changes("affiliation='admin' jid='{guest}'")))

BOUNCE = (
    "<error type='cancel'><service-unavailable "
    "xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"
)
REFUSAL = (
    "<error type='modify'><not-acceptable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"
)
VOICE = (
    "<x xmlns='jabber:x:data' type='submit'>"
    "<field var='FORM_TYPE'><value>http://jabber.org/protocol/muc#request</value></field>"
    "<field var='muc#role'><value>participant</value></field></x>"
)

SAME: dict[str, tuple[Deeds, Told]] = {
    "who makes a room owns it": (
        (OWNER,),
        (
            "owner: presence Owner 110 201 is owner owner/moderator",
            "owner: message room groupchat",
        ),
    ),
    "who comes later takes part": (
        BOTH,
        (
            "owner: presence Guest is guest none/participant",
            "guest: presence Owner is owner owner/moderator",
            "guest: presence Guest 110 is guest none/participant",
            "guest: message room groupchat",
        ),
    ),
    "a taken nickname": (
        (*BOTH, ("third", enters("Guest"))),
        ("third: presence Guest error conflict",),
    ),
    "an empty nickname": (
        (OWNER, OPEN, ("guest", shows("", ""))),
        ("guest: presence room error jid-malformed",),
    ),
    "entering again": (
        (*BOTH, GUEST),
        (
            "owner: presence Guest is guest none/participant",
            "guest: presence Owner is owner owner/moderator",
            "guest: presence Guest 110 is guest none/participant",
            "guest: message room groupchat",
        ),
    ),
    "presence without having entered": (
        (OWNER, OPEN, ("guest", shows("Guest", ""))),
        ("guest: presence Guest error item-not-found",),
    ),
    "a change of presence": (
        (*BOTH, ("guest", shows("Guest", "<show>dnd</show>"))),
        (
            "owner: presence Guest is guest none/participant show 'dnd'",
            "guest: presence Guest 110 is guest none/participant show 'dnd'",
        ),
    ),
    "leaving": (
        (*BOTH, ("guest", leaves("Guest", "<status>bye</status>"))),
        (
            "owner: presence Guest unavailable is guest none/none status 'bye'",
            "guest: presence Guest unavailable 110 is guest none/none status 'bye'",
        ),
    ),
    "another error from an occupant is passed on": (
        (*BOTH, ("guest", sends(REFUSAL, "Owner", "error"))),
        ("owner: message Guest error not-acceptable",),
    ),
    "leaving a room that is not there": (
        (("guest", leaves("Guest")),),
        ("guest: presence Guest error item-not-found",),
    ),
    "leaving where one is not": ((*BOTH, ("third", leaves("Third"))), ()),
    "coming back as the owner": (
        (*BOTH, ("owner", leaves("Owner")), OWNER),
        (
            "owner: presence Guest is guest none/participant",
            "owner: presence Owner 110 is owner owner/moderator",
            "owner: message room groupchat",
            "guest: presence Owner is owner owner/moderator",
        ),
    ),
    "the form for the owner": (
        (
            *BOTH,
            ("owner", owns("get", "")),
        ),
        ("owner: iq room result publicroom=1",),
    ),
    "a room that everybody has left is new": (
        (OWNER, OPEN, ("owner", leaves("Owner")), GUEST),
        (
            "guest: presence Guest 110 201 is guest owner/moderator",
            "guest: message room groupchat",
        ),
    ),
    "a room that lasts": (
        (
            OWNER,
            OPEN,
            ("owner", configures(persistentroom="1")),
            ("owner", leaves("Owner")),
            GUEST,
        ),
        (
            "guest: presence Guest 110 is guest none/participant",
            "guest: message room groupchat",
        ),
    ),
    "another nickname": (
        (*BOTH, ("guest", shows("Visitor", ""))),
        (
            "owner: presence Guest unavailable 303 is guest nick Visitor none/participant",
            "owner: presence Visitor is guest none/participant",
            "guest: presence Guest unavailable 110 303 is guest nick Visitor none/participant",
            "guest: presence Visitor 110 is guest none/participant",
        ),
    ),
    "another nickname, which is taken": (
        (*BOTH, ("guest", shows("Owner", ""))),
        ("guest: presence Owner error conflict",),
    ),
    "another nickname of a moderator": (
        (*BOTH, ("owner", shows("Boss", ""))),
        (
            "owner: presence Owner unavailable 110 303 is owner nick Boss owner/moderator",
            "owner: presence Boss 110 is owner owner/moderator",
            "guest: presence Owner unavailable 303 is owner nick Boss owner/moderator",
            "guest: presence Boss is owner owner/moderator",
        ),
    ),
    "the nickname that was given up": (
        (
            *BOTH,
            ("guest", shows("Visitor", "")),
            ("owner", leaves("Owner")),
            ("third", enters("Guest")),
        ),
        (
            "guest: presence Guest is third none/participant",
            "third: presence Visitor is guest none/participant",
            "third: presence Guest 110 is third none/participant",
            "third: message room groupchat",
        ),
    ),
    "a message": (
        (*BOTH, ("guest", says("hello"))),
        (
            "owner: message Guest groupchat body 'hello'",
            "guest: message Guest groupchat body 'hello'",
        ),
    ),
    "a message without a body": (
        (*BOTH, ("guest", sends("<x xmlns='urn:x'/>"))),
        (
            "owner: message Guest groupchat",
            "guest: message Guest groupchat",
        ),
    ),
    "a message from outside": (
        (OWNER, OPEN, ("guest", says("hello"))),
        ("guest: message room error not-acceptable",),
    ),
    "a message to a room that is not there": (
        (("guest", says("hello")),),
        ("guest: message room error item-not-found",),
    ),
    "a message to all that goes to one": (
        (*BOTH, ("guest", sends("<body>x</body>", "Owner"))),
        ("guest: message Owner error bad-request",),
    ),
    "no history": (
        (
            OWNER,
            OPEN,
            ("owner", says("earlier")),
            ("guest", enters("Guest", "<history maxstanzas='0'/>")),
        ),
        (
            "owner: presence Guest is guest none/participant",
            "guest: presence Owner is owner owner/moderator",
            "guest: presence Guest 110 is guest none/participant",
            "guest: message room groupchat",
        ),
    ),
    "some history": (
        (
            OWNER,
            OPEN,
            ("owner", says("one")),
            ("owner", says("two")),
            ("guest", enters("Guest", "<history maxstanzas='1'/>")),
        ),
        (
            "owner: presence Guest is guest none/participant",
            "guest: presence Owner is owner owner/moderator",
            "guest: presence Guest 110 is guest none/participant",
            "guest: message Owner groupchat body 'two' delay",
            "guest: message room groupchat",
        ),
    ),
    "a private message": (
        (*ALL, ("guest", says("psst", "Owner"))),
        ("owner: message Guest chat body 'psst'",),
    ),
    "a private message to oneself": (
        (*BOTH, ("guest", says("psst", "Guest"))),
        ("guest: message Guest chat body 'psst'",),
    ),
    "a private message to nobody": (
        (*BOTH, ("guest", says("psst", "Nobody"))),
        ("guest: message Nobody error item-not-found",),
    ),
    "a private message from outside": (
        (*BOTH, ("third", says("psst", "Owner"))),
        ("third: message Owner error not-acceptable",),
    ),
    "a subject": (
        (*BOTH, ("owner", sends("<subject>Tea</subject>"))),
        (
            "owner: message Owner groupchat subject 'Tea'",
            "guest: message Owner groupchat subject 'Tea'",
        ),
    ),
    "a subject for who comes later": (
        (OWNER, OPEN, ("owner", sends("<subject>Tea</subject>")), GUEST),
        (
            "owner: presence Guest is guest none/participant",
            "guest: presence Owner is owner owner/moderator",
            "guest: presence Guest 110 is guest none/participant",
            "guest: message Owner groupchat delay subject 'Tea'",
        ),
    ),
    "a subject by a participant": (
        (*BOTH, ("guest", sends("<subject>Tea</subject>"))),
        ("guest: message room error auth forbidden",),
    ),
    "a subject by a participant who may": (
        (
            *BOTH,
            ("owner", configures(changesubject="1")),
            ("guest", sends("<subject>Tea</subject>")),
        ),
        (
            "owner: message Guest groupchat subject 'Tea'",
            "guest: message Guest groupchat subject 'Tea'",
        ),
    ),
    "a subject with a body is none": (
        (
            *BOTH,
            ("guest", sends("<subject>Tea</subject><body>hello</body>")),
        ),
        (
            "owner: message Guest groupchat body 'hello' subject 'Tea'",
            "guest: message Guest groupchat body 'hello' subject 'Tea'",
        ),
    ),
    "an empty subject": (
        (*BOTH, ("owner", sends("<subject/>"))),
        (
            "owner: message Owner groupchat",
            "guest: message Owner groupchat",
        ),
    ),
    "self-ping inside": ((*BOTH, ("guest", pings("Guest"))), ("guest: iq Guest result",)),
    "self-ping outside": (
        (*BOTH, ("third", pings("Third"))),
        ("third: iq Third error not-acceptable",),
    ),
    "self-ping under another nickname": (
        (*BOTH, ("guest", pings("Nobody"))),
        ("guest: iq Nobody error item-not-found",),
    ),
    "self-ping where no room is": (
        (("guest", pings("Guest")),),
        ("guest: iq Guest error item-not-found",),
    ),
    "a question to an occupant comes to them": (
        (*BOTH, ("guest", asks("get", "<query xmlns='jabber:iq:version'/>", "Owner"))),
        (
            "owner: iq Guest get",
            "guest: iq Owner error feature-not-implemented",
        ),
    ),
    "a kick": (
        (*BOTH, ("owner", changes("nick='Guest' role='none'", "noise"))),
        (
            "owner: presence Guest unavailable 307 by Owner is guest none/none reason 'noise'",
            "owner: iq room result",
            "guest: presence Guest unavailable 110 307 by Owner is guest none/none reason 'noise'",
        ),
    ),
    "a kick without a reason": (
        (*ALL, ("owner", changes("nick='Guest' role='none'"))),
        (
            "owner: presence Guest unavailable 307 by Owner is guest none/none",
            "owner: iq room result",
            "guest: presence Guest unavailable 110 307 by Owner is guest none/none",
            "third: presence Guest unavailable 307 by Owner is guest none/none",
        ),
    ),
    "a kick by a participant": (
        (*ALL, ("guest", changes("nick='Third' role='none'"))),
        ("guest: iq room error not-allowed",),
    ),
    "a kick of the owner": (
        (*ADMIN, ("guest", changes("nick='Owner' role='none'"))),
        ("guest: iq room error not-allowed",),
    ),
    "a kick by an admin": (
        (*ADMIN, ("guest", changes("nick='Third' role='none'"))),
        (
            "owner: presence Third unavailable 307 by Guest is third none/none",
            "guest: presence Third unavailable 307 by Guest is third none/none",
            "guest: iq room result",
            "third: presence Third unavailable 110 307 by Guest is third none/none",
        ),
    ),
    "a kick of nobody": (
        (*BOTH, ("owner", changes("nick='Nobody' role='none'"))),
        ("owner: iq room error item-not-found",),
    ),
    "a kick from outside": (
        (*BOTH, ("third", changes("nick='Guest' role='none'"))),
        ("third: iq room error not-allowed",),
    ),
    "entering again after a kick": (
        (
            *BOTH,
            ("owner", changes("nick='Guest' role='none'")),
            GUEST,
        ),
        (
            "owner: presence Guest is guest none/participant",
            "guest: presence Owner is owner owner/moderator",
            "guest: presence Guest 110 is guest none/participant",
            "guest: message room groupchat",
        ),
    ),
    "a ban": (
        (*BOTH, ("owner", changes("jid='{guest}' affiliation='outcast'", "noise"))),
        (
            "owner: presence Guest unavailable 301 by Owner is guest outcast/none reason 'noise'",
            "owner: iq room result",
            (
                "guest: presence Guest unavailable 110 301 by Owner is guest outcast/none reason "
                "'noise'"
            ),
        ),
    ),
    "a ban by nickname": (
        (*BOTH, ("owner", changes("nick='Guest' affiliation='outcast'"))),
        (
            "owner: presence Guest unavailable 301 by Owner is guest outcast/none",
            "owner: iq room result",
            "guest: presence Guest unavailable 110 301 by Owner is guest outcast/none",
        ),
    ),
    "a ban by a participant": (
        (*ALL, ("guest", changes("jid='{third}' affiliation='outcast'"))),
        ("guest: iq room error not-allowed",),
    ),
    "a ban of somebody absent": (
        (OWNER, OPEN, ("owner", changes("jid='{guest}' affiliation='outcast'"))),
        (
            "owner: message room 301 is guest outcast/None",
            "owner: iq room result",
        ),
    ),
    "a ban of the owner": (
        (*ADMIN, ("guest", changes("jid='{owner}' affiliation='outcast'"))),
        ("guest: iq room error not-allowed",),
    ),
    "a ban of oneself": (
        (OWNER, OPEN, ("owner", changes("jid='{owner}' affiliation='outcast'"))),
        ("owner: iq room error conflict",),
    ),
    "an outcast may not enter": (
        (
            OWNER,
            OPEN,
            ("owner", changes("jid='{guest}' affiliation='outcast'")),
            GUEST,
        ),
        ("guest: presence Guest error auth forbidden",),
    ),
    "an outcast is forgiven": (
        (
            OWNER,
            OPEN,
            ("owner", changes("jid='{guest}' affiliation='outcast'")),
            ("owner", changes("jid='{guest}' affiliation='none'")),
            GUEST,
        ),
        (
            "owner: presence Guest is guest none/participant",
            "guest: presence Owner is owner owner/moderator",
            "guest: presence Guest 110 is guest none/participant",
            "guest: message room groupchat",
        ),
    ),
    "voice is taken": (
        (*BOTH, ("owner", changes("nick='Guest' role='visitor'", "quiet"))),
        (
            "owner: presence Guest by Owner is guest none/visitor reason 'quiet'",
            "owner: iq room result",
            "guest: presence Guest 110 by Owner is guest none/visitor reason 'quiet'",
        ),
    ),
    "a visitor may not speak": (
        (
            *BOTH,
            ("owner", changes("nick='Guest' role='visitor'")),
            ("guest", says("hello")),
        ),
        ("guest: message room error auth forbidden",),
    ),
    "a visitor may whisper": (
        (
            *BOTH,
            ("owner", changes("nick='Guest' role='visitor'")),
            ("guest", says("hello", "Owner")),
        ),
        ("owner: message Guest chat body 'hello'",),
    ),
    "who enters a moderated room is a visitor": (
        MODERATED,
        (
            "owner: presence Guest is guest none/visitor",
            "guest: presence Owner is owner owner/moderator",
            "guest: presence Guest 110 is guest none/visitor",
            "guest: message room groupchat",
        ),
    ),
    "a visitor of a moderated room may not speak": (
        (*MODERATED, ("guest", says("hello"))),
        ("guest: message room error auth forbidden",),
    ),
    "voice is granted": (
        (*MODERATED, ("owner", changes("nick='Guest' role='participant'"))),
        (
            "owner: presence Guest by Owner is guest none/participant",
            "owner: iq room result",
            "guest: presence Guest 110 by Owner is guest none/participant",
        ),
    ),
    "who was granted voice speaks": (
        (
            *MODERATED,
            ("owner", changes("nick='Guest' role='participant'")),
            ("guest", says("hello")),
        ),
        (
            "owner: message Guest groupchat body 'hello'",
            "guest: message Guest groupchat body 'hello'",
        ),
    ),
    "a member of a moderated room speaks": (
        (
            *MODERATED,
            ("owner", changes("jid='{guest}' affiliation='member'")),
            ("guest", says("hello")),
        ),
        (
            "owner: message Guest groupchat body 'hello'",
            "guest: message Guest groupchat body 'hello'",
        ),
    ),
    "a moderator is made": (
        (*BOTH, ("owner", changes("nick='Guest' role='moderator'"))),
        (
            "owner: presence Guest by Owner is guest none/moderator",
            "owner: iq room result",
            "guest: presence Guest 110 by Owner is guest none/moderator",
        ),
    ),
    "a moderator of no rank makes no other": (
        (
            *ALL,
            ("owner", changes("nick='Guest' role='moderator'")),
            ("guest", changes("nick='Third' role='moderator'")),
        ),
        ("guest: iq room error not-allowed",),
    ),
    "a moderator of no rank takes voice": (
        (
            *ALL,
            ("owner", changes("nick='Guest' role='moderator'")),
            ("guest", changes("nick='Third' role='visitor'")),
        ),
        (
            "owner: presence Third by Guest is third none/visitor",
            "guest: presence Third by Guest is third none/visitor",
            "guest: iq room result",
            "third: presence Third 110 by Guest is third none/visitor",
        ),
    ),
    "a role that is none": (
        (*BOTH, ("owner", changes("nick='Guest' role='king'"))),
        ("owner: iq room error not-acceptable",),
    ),
    "a member is made": (
        (*BOTH, ("owner", changes("jid='{guest}' affiliation='member'"))),
        (
            "owner: presence Guest by Owner is guest member/participant",
            "owner: iq room result",
            "guest: presence Guest 110 by Owner is guest member/participant",
        ),
    ),
    "a member is made of somebody absent": (
        (
            OWNER,
            OPEN,
            ("owner", changes("jid='{guest}' affiliation='member'")),
        ),
        (
            "owner: message room is guest member/None",
            "owner: iq room result",
        ),
    ),
    "an admin is made, who moderates": (
        (
            *BOTH,
            ("owner", changes("jid='{guest}' affiliation='admin'")),
        ),
        (
            "owner: presence Guest admin/moderator by Owner is guest",
            "owner: iq room result",
            "guest: presence Guest 110 admin/moderator by Owner is guest",
        ),
    ),
    "an admin is made a member again": (
        (
            *ADMIN,
            ("owner", changes("jid='{guest}' affiliation='member'")),
        ),
        (
            "owner: presence Guest by Owner is guest member/participant",
            "owner: iq room result",
            "guest: presence Guest 110 by Owner is guest member/participant",
            "third: presence Guest by Owner is guest member/participant",
        ),
    ),
    "an admin makes a member": (
        (*ADMIN, ("guest", changes("jid='{third}' affiliation='member'"))),
        (
            "owner: presence Third by Guest is third member/participant",
            "guest: presence Third by Guest is third member/participant",
            "guest: iq room result",
            "third: presence Third 110 by Guest is third member/participant",
        ),
    ),
    "an admin makes no admin": (
        (*ADMIN, ("guest", changes("jid='{third}' affiliation='admin'"))),
        ("guest: iq room error not-allowed",),
    ),
    "a participant makes no member": (
        (
            *ALL,
            ("guest", changes("jid='{third}' affiliation='member'")),
        ),
        ("guest: iq room error not-allowed",),
    ),
    "another owner is made": (
        (*BOTH, ("owner", changes("jid='{guest}' affiliation='owner'"))),
        (
            "owner: presence Guest by Owner is guest owner/moderator",
            "owner: iq room result",
            "guest: presence Guest 110 by Owner is guest owner/moderator",
        ),
    ),
    "the last owner stays": (
        (OWNER, OPEN, ("owner", changes("jid='{owner}' affiliation='admin'"))),
        ("owner: iq room error conflict",),
    ),
    "one of two owners goes": (
        (
            *BOTH,
            ("owner", changes("jid='{guest}' affiliation='owner'")),
            ("owner", changes("jid='{owner}' affiliation='none'")),
        ),
        (
            "owner: presence Owner 110 by Owner is owner none/participant",
            "owner: iq room result",
            "guest: presence Owner by Owner is owner none/participant",
        ),
    ),
    "an affiliation that is none": (
        (OWNER, OPEN, ("owner", changes("jid='{guest}' affiliation='king'"))),
        ("owner: iq room error not-acceptable",),
    ),
    "an affiliation of a full JID": (
        (
            OWNER,
            OPEN,
            ("owner", changes("jid='{guest}/x' affiliation='member'")),
        ),
        ("owner: iq room error jid-malformed",),
    ),
    "an affiliation and a role at once": (
        (
            *BOTH,
            ("owner", changes("nick='Guest' jid='{guest}' affiliation='member' role='visitor'")),
        ),
        ("owner: iq room error bad-request",),
    ),
    "an item that changes nothing": (
        (OWNER, OPEN, ("owner", changes("nick='Owner'"))),
        ("owner: iq room error bad-request",),
    ),
    "the list of owners": (
        (OWNER, OPEN, ("owner", lists("affiliation='owner'"))),
        ("owner: iq room result is owner owner/None",),
    ),
    "the list of members": (
        (
            OWNER,
            OPEN,
            ("owner", changes("jid='{guest}' affiliation='member'")),
            ("owner", changes("jid='{third}' affiliation='member'")),
            ("owner", lists("affiliation='member'")),
        ),
        ("owner: iq room result is guest is third member/None member/None",),
    ),
    "the list of outcasts": (
        (
            OWNER,
            OPEN,
            ("owner", changes("jid='{guest}' affiliation='outcast'")),
            ("owner", lists("affiliation='outcast'")),
        ),
        ("owner: iq room result is guest outcast/None",),
    ),
    "the list of nobody": (
        (OWNER, OPEN, ("owner", lists("affiliation='admin'"))),
        ("owner: iq room result",),
    ),
    "the list of members for a participant": (
        (*BOTH, ("guest", lists("affiliation='member'"))),
        ("guest: iq room error auth forbidden",),
    ),
    "the list of owners for an admin": (
        (*ADMIN, ("guest", lists("affiliation='owner'"))),
        ("guest: iq room error auth forbidden",),
    ),
    "the list of members for an admin": (
        (*ADMIN, ("guest", lists("affiliation='member'"))),
        ("guest: iq room result",),
    ),
    "the list of moderators": (
        (*BOTH, ("owner", lists("role='moderator'"))),
        ("owner: iq room result is owner nick Owner owner/moderator",),
    ),
    "the list of participants": (
        (*ALL, ("owner", lists("role='participant'"))),
        (
            (
                "owner: iq room result is guest is third nick Guest nick Third none/participant "
                "none/participant"
            ),
        ),
    ),
    "the list of participants for one": (
        (*ALL, ("guest", lists("role='participant'"))),
        ("guest: iq room error auth forbidden",),
    ),
    "the list of kings": (
        (OWNER, OPEN, ("owner", lists("affiliation='king'"))),
        ("owner: iq room error bad-request",),
    ),
    "a room for members takes in no others": (
        (*MEMBERS, GUEST),
        ("guest: presence Guest error auth registration-required",),
    ),
    "a room for members takes in a member": (
        (
            *MEMBERS,
            ("owner", changes("jid='{guest}' affiliation='member'")),
            GUEST,
        ),
        (
            "owner: presence Guest is guest member/participant",
            "guest: presence Owner is owner owner/moderator",
            "guest: presence Guest 110 is guest member/participant",
            "guest: message room groupchat",
        ),
    ),
    "a room for members takes in no outcast": (
        (
            *MEMBERS,
            ("owner", changes("jid='{guest}' affiliation='outcast'")),
            GUEST,
        ),
        ("guest: presence Guest error auth registration-required",),
    ),
    "who is no member any more is out": (
        (
            *MEMBERS,
            ("owner", changes("jid='{guest}' affiliation='member'")),
            GUEST,
            ("owner", changes("jid='{guest}' affiliation='none'", "over")),
        ),
        (
            "owner: presence Guest unavailable 321 by Owner is guest none/none reason 'over'",
            "owner: iq room result",
            "guest: presence Guest unavailable 110 321 by Owner is guest none/none reason 'over'",
        ),
    ),
    "a room with a password, without it": (
        (*SECRET, GUEST),
        ("guest: presence Guest error auth not-authorized",),
    ),
    "a room with a password, with another": (
        (
            *SECRET,
            ("guest", enters("Guest", "<password>please</password>")),
        ),
        ("guest: presence Guest error auth not-authorized",),
    ),
    "a room with a password, with it": (
        (
            *SECRET,
            ("guest", enters("Guest", "<password>sesame</password>")),
        ),
        (
            "owner: presence Guest is guest none/participant",
            "guest: presence Owner is owner owner/moderator",
            "guest: presence Guest 110 is guest none/participant",
            "guest: message room groupchat",
        ),
    ),
    "a member needs the password": (
        (
            *SECRET,
            ("owner", changes("jid='{guest}' affiliation='member'")),
            GUEST,
        ),
        ("guest: presence Guest error auth not-authorized",),
    ),
    "a password that was taken off": (
        (*SECRET, ("owner", configures(roomsecret="")), GUEST),
        (
            "owner: presence Guest is guest none/participant",
            "guest: presence Owner is owner owner/moderator",
            "guest: presence Guest 110 is guest none/participant",
            "guest: message room groupchat",
        ),
    ),
    "a room becomes moderated": (
        (*BOTH, ("owner", configures(moderatedroom="1"))),
        (
            "owner: iq room result",
            "owner: message room groupchat 104",
            "guest: message room groupchat 104",
        ),
    ),
    "a configuration that changes nothing": (
        (*BOTH, ("owner", configures(moderatedroom="0"))),
        ("owner: iq room result",),
    ),
    "a configuration of what is unknown": (
        (*BOTH, ("owner", configures(colour="red"))),
        ("owner: iq room result",),
    ),
    "a configuration that is called off": (
        (
            *BOTH,
            ("owner", configures(kind="cancel", moderatedroom="1")),
        ),
        ("owner: iq room result",),
    ),
    "a configuration by a participant": (
        (*BOTH, ("guest", configures(moderatedroom="1"))),
        ("guest: iq room error auth forbidden",),
    ),
    "a form of another kind": (
        (OWNER, OPEN, ("owner", configures("request", moderatedroom="1"))),
        ("owner: iq room error bad-request",),
    ),
    "a form that is no submission": (
        (OWNER, OPEN, ("owner", configures(kind="result"))),
        ("owner: iq room error bad-request",),
    ),
    "a new room is accepted as it is": (
        (
            OWNER,
            OPEN,
            (
                "owner",
                owns("set", "<x xmlns='jabber:x:data' type='submit'/>"),
            ),
        ),
        ("owner: iq room result",),
    ),
    "the form for a participant": (
        (
            *BOTH,
            ("guest", owns("get", "")),
        ),
        ("guest: iq room error auth forbidden",),
    ),
    "a new room as service discovery shows it": (
        (OWNER, OPEN, ("guest", discovers())),
        (
            (
                "guest: iq room result conference nonanonymous occupants=1 open public temporary "
                "unmoderated unsecured"
            ),
        ),
    ),
    "a configured room as service discovery shows it": (
        (
            *BOTH,
            (
                "owner",
                configures(
                    roomname="Tea",
                    roomdesc="A room",
                    roomsecret="x",
                    persistentroom="1",
                    publicroom="0",
                    moderatedroom="1",
                    membersonly="true",
                ),
            ),
            ("owner", discovers()),
        ),
        (
            (
                "owner: iq room result conference Tea description=A room hidden membersonly "
                "moderated nonanonymous occupants=1 passwordprotected persistent"
            ),
        ),
    ),
    "a room that is not there": (
        (("guest", discovers()),),
        ("guest: iq room error item-not-found",),
    ),
    "the end of a room": (
        (
            *BOTH,
            (
                "owner",
                owns("set", "<destroy><reason>over</reason></destroy>"),
            ),
        ),
        (
            "owner: presence Owner unavailable 110 destroy is owner owner/none reason 'over'",
            "owner: iq room result",
            "guest: presence Guest unavailable 110 destroy is guest none/none reason 'over'",
        ),
    ),
    "no end of a room by a participant": (
        (
            *BOTH,
            (
                "guest",
                owns("set", "<destroy/>"),
            ),
        ),
        ("guest: iq room error auth forbidden",),
    ),
    "a room that has ended is new": (
        (
            OWNER,
            OPEN,
            ("owner", configures(moderatedroom="1")),
            (
                "owner",
                owns("set", "<destroy/>"),
            ),
            GUEST,
        ),
        (
            "guest: presence Guest 110 201 is guest owner/moderator",
            "guest: message room groupchat",
        ),
    ),
    "several items": (
        (
            *BOTH,
            (
                "owner",
                changes(
                    "jid='{guest}' affiliation='member'/><item jid='{third}' affiliation='member'"
                ),
            ),
        ),
        (
            "owner: presence Guest by Owner is guest member/participant",
            "owner: iq room result",
            "guest: presence Guest 110 by Owner is guest member/participant",
        ),
    ),
    "disco items": ((*BOTH, ("guest", discovers("items"))), ("guest: iq room result",)),
}

DIFFERENT: dict[str, tuple[Deeds, Told, Told]] = {
    "who enters a new room sees the JID of moderators alone": (
        (OWNER, GUEST),
        (
            "owner: presence Guest is guest none/participant",
            "guest: presence Owner owner/moderator",
            "guest: presence Guest 110 is guest none/participant",
            "guest: message room groupchat",
        ),
        (
            "owner: presence Guest is guest none/participant",
            "guest: presence Owner is owner owner/moderator",
            "guest: presence Guest 110 is guest none/participant",
            "guest: message room groupchat",
        ),
    ),
    "history names who said it": (
        (OWNER, OPEN, ("owner", says("earlier")), GUEST),
        (
            "owner: presence Guest is guest none/participant",
            "guest: presence Owner is owner owner/moderator",
            "guest: presence Guest 110 is guest none/participant",
            "guest: message Owner groupchat body 'earlier' delay is owner owner/moderator",
            "guest: message room groupchat",
        ),
        (
            "owner: presence Guest is guest none/participant",
            "guest: presence Owner is owner owner/moderator",
            "guest: presence Guest 110 is guest none/participant",
            "guest: message Owner groupchat body 'earlier' delay",
            "guest: message room groupchat",
        ),
    ),
    "those who stay are told who is no member": (
        (*BOTH, ("owner", configures(membersonly="1"))),
        (
            "owner: iq room result",
            "owner: message room groupchat 104",
            "guest: presence Guest unavailable 110 322 is guest none/none",
        ),
        (
            "owner: presence Guest unavailable 322 is guest none/none",
            "owner: iq room result",
            "owner: message room groupchat 104",
            "guest: presence Guest unavailable 110 322 is guest none/none",
        ),
    ),
    "a new room is hidden": (
        (OWNER, ("guest", discovers())),
        (
            (
                "guest: iq room result conference hidden occupants=1 open semianonymous temporary"
                " unmoderated unsecured"
            ),
        ),
        (
            (
                "guest: iq room result conference nonanonymous occupants=1 open public temporary "
                "unmoderated unsecured"
            ),
        ),
    ),
    "a room that lasted and has ended": (
        (
            OWNER,
            ("owner", configures(persistentroom="1")),
            (
                "owner",
                owns("set", "<destroy/>"),
            ),
            GUEST,
        ),
        ("guest: presence Guest error gone",),
        (
            "guest: presence Guest 110 201 is guest owner/moderator",
            "guest: message room groupchat",
        ),
    ),
    "one account under one nickname twice": (
        (*BOTH, ("twin", enters("Guest"))),
        (
            "owner: presence Guest is guest is guest none/participant none/participant",
            "guest: presence Guest 110 is guest is guest none/participant none/participant",
            "twin: presence Owner is owner owner/moderator",
            "twin: presence Guest 110 is guest is guest none/participant none/participant",
            "twin: message room groupchat",
        ),
        ("twin: presence Guest error conflict",),
    ),
    "a password sets that of a new room": (
        (("owner", enters("Owner", "<password>x</password>")), ("owner", discovers())),
        (
            (
                "owner: iq room result conference hidden occupants=1 open passwordprotected "
                "semianonymous temporary unmoderated"
            ),
        ),
        (
            (
                "owner: iq room result conference nonanonymous occupants=1 open public temporary "
                "unmoderated unsecured"
            ),
        ),
    ),
    "an error from an occupant puts them out": (
        (
            *BOTH,
            (
                "guest",
                sends(
                    BOUNCE,
                    "Owner",
                    "error",
                ),
            ),
        ),
        (
            (
                "owner: presence Guest unavailable 333 is guest none/none status 'Kicked: service"
                " unavailable'"
            ),
            (
                "guest: presence Guest unavailable 110 333 is guest none/none status 'Kicked: "
                "service unavailable'"
            ),
        ),
        ("owner: message Guest error service-unavailable",),
    ),
    "a request for voice": (
        (
            *MODERATED,
            (
                "guest",
                sends(
                    VOICE,
                    "",
                    "normal",
                ),
            ),
        ),
        ("owner: message room normal",),
        ("guest: message room error bad-request",),
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
        ("guest: message room error bad-request",),
    ),
    "history of some seconds": (
        (
            OWNER,
            OPEN,
            ("owner", says("earlier")),
            ("guest", enters("Guest", "<history seconds='0'/>")),
        ),
        (
            "owner: presence Guest is guest none/participant",
            "guest: presence Owner is owner owner/moderator",
            "guest: presence Guest 110 is guest none/participant",
            "guest: message Owner groupchat body 'earlier' delay is owner owner/moderator",
            "guest: message room groupchat",
        ),
        (
            "owner: presence Guest is guest none/participant",
            "guest: presence Owner is owner owner/moderator",
            "guest: presence Guest 110 is guest none/participant",
            "guest: message Owner groupchat body 'earlier' delay",
            "guest: message room groupchat",
        ),
    ),
    "presence to the room": (
        (*BOTH, ("guest", "<presence to='{room}'><show>dnd</show></presence>")),
        (
            "owner: presence Guest is guest none/participant show 'dnd'",
            "guest: presence Guest 110 is guest none/participant show 'dnd'",
        ),
        ("guest: presence room error jid-malformed",),
    ),
    "a blank nickname": (
        (OWNER, ("guest", enters(" "))),
        ("guest: presence   error not-allowed",),
        ("guest: presence   error jid-malformed",),
    ),
}
"""What Prosody tells, and what the sandbox tells."""


@pytest.fixture(params=["prosody", "sandbox"])
def server(request: pytest.FixtureRequest) -> XmppServer:
    found: XmppServer = request.getfixturevalue(request.param)
    return found


async def told(server: XmppServer, deeds: Deeds) -> Told:
    """What everybody is told of the last deed."""
    async with company(server, {who for who, _ in deeds}) as present:
        for who, deed in deeds:
            present.told()
            await present.does(who, deed)
        return present.told()


@pytest.mark.parametrize("name", SAME)
async def test_both_behave_alike(name: str, server: XmppServer) -> None:
    deeds, expected = SAME[name]
    assert await told(server, deeds) == expected


@pytest.mark.parametrize("name", DIFFERENT)
async def test_a_difference_is_as_it_is_listed(name: str, server: XmppServer) -> None:
    deeds, *expected = DIFFERENT[name]
    assert await told(server, deeds) == expected[server.name == "sandbox"]
