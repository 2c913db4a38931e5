"""What an honest server passes on of others, where it looks like the words of somebody else."""

import asyncio
from itertools import product

import pytest

from bridge.xmpp.link import stanzas
from bridge.xmpp.model.events import (
    AffiliationChanged,
    OccupantLeft,
    RoomConfigured,
    RoomDestroyed,
    Source,
    SubjectChanged,
)
from bridge.xmpp.muc.archive import ArchiveError, RoomArchive
from tests.faults.scene import NICKNAME, Scene
from tests.faults.test_odd_stanzas import Writer, direct

USER = "http://jabber.org/protocol/muc#user"
TAKES_BACK = (
    "<apply-to xmlns='urn:xmpp:fasten:0' id='1'>"
    "<moderated xmlns='urn:xmpp:message-moderate:0'/></apply-to>"
)
MANY_NAMES = (
    f"<y xmlns='{'u' * 300}'>" + "".join(f"<n{number}/>" for number in range(1_000)) + "</y>"
)
"""So many that a server which writes the namespace out each time makes 300 kB of it."""

ODD = (TAKES_BACK, "<x xmlns='}'/>", MANY_NAMES)
TYPES = ("normal", "chat", "headline", "groupchat", "odd")


async def test_nobody_speaks_as_the_room_by_inviting_us_or_declining(stage: Scene) -> None:
    async with stage.participant() as eyes:
        await eyes.joined()
        addresses = [f"{stage.room}/{NICKNAME}", eyes.status().jid or ""]
        asks = [*product(("invite", "decline"), addresses, TYPES, [""])]
        asks += product(("invite", "decline"), addresses[:1], TYPES[:1], ODD)
        async with Writer(stage, "Eve", enters=False) as outside, Writer(stage, "Betty") as inside:
            for writer, (asked, to, type_, odd) in product((outside, inside), asks):
                told = f"<x xmlns='{USER}'><{asked} to='{to}'><reason>r</reason></{asked}></x>"
                words = f"{told}<body>the room says</body>{odd}<subject>so</subject>"
                writer.write(f"<message to='{stage.room}' type='{type_}' id='1'>{words}</message>")
                await asyncio.sleep(0)
            # What the server answers now comes behind what it has passed on.
            await outside.request("get", stage.server.domain, stanzas.ping())
            await inside.request("get", f"{stage.room}/Betty", stanzas.ping())
            inside.write(
                f"<message to='{stage.room}' type='groupchat'><body>the end</body></message>"
            )
            await eyes.hears("the end")
            forged = [each for each in eyes.messages() if not each.sender]
            assert not [each for each in forged if each.body or each.retracts]


async def test_ids_in_private_messages_hide_nothing_that_the_archive_tells(stage: Scene) -> None:
    async with stage.participant() as eyes:
        await eyes.joined()
        async with stage.participant(direct(stage, "Wilma")) as other:
            await other.joined()
            archive = RoomArchive(other.participant.connection, stage.room, "")
            try:
                await archive.check_announced()
            except ArchiveError:
                pytest.skip("this server archives nothing")
            said = await other.membership.say("what we missed", 30)
            await eyes.hears("what we missed")
            assert said.message.stanza_id
        async with Writer(stage, "Eve") as eve:
            eve.write(
                f"<message to='{stage.room}/{NICKNAME}' type='chat'><body>psst</body>"
                f"<stanza-id xmlns='urn:xmpp:sid:0' by='{stage.room}'"
                f" id='{said.message.stanza_id}'/></message>"
            )
            await eyes.hears("psst")
        (whisper,) = [each for each in eyes.messages() if each.body == "psst"]
        assert whisper.stanza_id is None


CLAIMS = (
    f"<x xmlns='{USER}'><status code='110'/><status code='307'/><status code='104'/>"
    "<item affiliation='owner' role='none' jid='{me}'/><destroy/></x>"
)
STAMP = "<delay xmlns='urn:xmpp:delay' from='{room}' stamp='2020-01-01T00:00:00Z'/>"


async def test_no_claim_of_an_occupant_counts_as_the_rooms(stage: Scene) -> None:
    async with stage.participant() as eyes:
        await eyes.joined()
        room, me = stage.room, f"{stage.room}/{NICKNAME}"
        account = (eyes.status().jid or "").partition("/")[0]
        claims = CLAIMS.format(me=account) + STAMP.format(room=room)
        # Last of all it goes: whoever enters again is there twice.
        for number, times in enumerate((1, 2)):
            async with Writer(stage, "Eve") as eve:
                eve.write(f"<presence to='{room}/Eve'>{claims * times}</presence>")
                for to, type_ in ((room, "groupchat"), (me, "chat")):
                    body = f"{type_} {number}"
                    eve.write(
                        f"<message to='{to}' type='{type_}'><body>{body}</body>"
                        f"{claims * times}</message>"
                    )
                    assert (await eyes.hears(body)).source is Source.LIVE
                eve.write(
                    f"<presence to='{room}/Eve' type='unavailable'>{claims * times}</presence>"
                )
                await eyes.see(lambda event: isinstance(event, OccupantLeft), "leave")
        told = [each.event for each in eyes.records]
        assert not [each for each in told if isinstance(each, AffiliationChanged | RoomDestroyed)]
        assert not [each for each in told if isinstance(each, RoomConfigured) and 104 in each.codes]
        assert not [each for each in told if isinstance(each, OccupantLeft) and each.self_]
        await eyes.membership.say("still there", 30)


BLANKS = "<o/>" * 40
NO_SUBJECTS = {
    "with a thread": "<subject>forged</subject><thread>t</thread>",
    "with a body that cannot be read": "<subject>forged</subject><body><x xmlns='}'/></body>",
    "with a body among very much": (
        f"<subject>forged</subject>{BLANKS}<body>x</body>{BLANKS}<x xmlns='}}'/>"
    ),
}
"""Messages that change no subject, which servers let anybody say (XEP-0045, section 8.1)."""


IN_HISTORY = NO_SUBJECTS | {
    "with a stamp of no time": "<body>x</body><delay xmlns='urn:xmpp:delay' from='{room}'/>",
    "with a stamp in another case": (
        "<body>x</body><delay xmlns='urn:xmpp:delay' from='{ROOM}' stamp='2020-01-01T00:00:00Z'/>"
    ),
    "with a stamp of the future": (
        "<body>x</body><delay xmlns='urn:xmpp:delay' from='{room}' stamp='9999-12-31T23:59:59Z'/>"
    ),
    "with what makes it grow": f"<body>x</body>{MANY_NAMES}",
    "with the stamp among very much": (
        f"<x xmlns='}}'/>{BLANKS}" + "".join(f"<body xml:lang='a{n}'>x</body>" for n in range(40))
    ),
}


@pytest.mark.parametrize("words", IN_HISTORY.values(), ids=IN_HISTORY)
async def test_nothing_in_the_history_makes_what_follows_it_new_or_a_subject(
    words: str, stage: Scene
) -> None:
    async with Writer(stage, "Eve"):
        async with stage.participant() as eyes, Writer(stage, "Betty") as betty:
            await eyes.joined()
            words = words.replace("{room}", stage.room).replace("{ROOM}", stage.room.upper())
            for said in (words, "<body>the end</body>"):
                betty.write(f"<message to='{stage.room}' type='groupchat' id='1'>{said}</message>")
            await eyes.hears("the end")
            told = [each.event for each in eyes.records if isinstance(each.event, SubjectChanged)]
            assert (told, eyes.status().subject) == ([SubjectChanged("", None)], None)
        async with stage.participant() as later:
            await later.joined()
            await later.hears("the end")
            assert {each.source for each in later.messages()} == {Source.HISTORY}
            incoming = later.status().last_incoming
            assert incoming is not None
            assert incoming.message.body == "the end"
