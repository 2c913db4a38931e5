import re

import pytest

from bridge.sandbox.server import ACCOUNT, LOBBY, Sandbox
from bridge.sandbox.stanza import PART_LIMIT
from bridge.sandbox.stream import DEPTH_LIMIT, STANZA_LIMIT
from tests.sandbox.wire import HEADER, Wire, element, logged_in

END = "</stream:stream>"


@pytest.mark.parametrize(
    ("sent", "condition"),
    [
        (HEADER.replace("to='localhost'", "to='example.org'"), "host-unknown"),
        (HEADER.replace("to='localhost'", ""), "host-unknown"),
        (HEADER.replace("etherx", "other"), "invalid-namespace"),
        ("<html>", "invalid-namespace"),
        ("GET / HTTP/1.1\r\n\r\n", "not-well-formed"),
        (b"\x16\x03\x01\x02\x00\x01", "not-well-formed"),
        (HEADER + "<message></presence>", "not-well-formed"),
        ("<!DOCTYPE a [<!ENTITY lol 'lol'>]>" + HEADER, "restricted-xml"),
        (HEADER + "<message to='localhost'/>", "not-authorized"),
        (HEADER + "<iq type='get' id='1'><ping xmlns='urn:xmpp:ping'/></iq>", "not-authorized"),
        (HEADER + "<message>".ljust(STANZA_LIMIT, "x") + "</message>", "policy-violation"),
    ],
)
async def test_what_may_not_begin_a_stream_ends_it_with_an_error(
    sent: str | bytes, condition: str
) -> None:
    async with Sandbox() as address, Wire.to(address) as wire:
        wire.send(sent)
        heard = await wire.rest()
    assert heard.startswith("<?xml version='1.0'?><stream:stream ")
    assert heard.count("<stream:stream ") == 1
    error = f"<stream:error><{condition} xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>"
    assert heard.endswith(f"{error}</stream:error>{END}")


@pytest.mark.parametrize(
    ("sent", "condition"),
    [
        ("<a xmlns='urn:a'/>", "unsupported-stanza-type"),
        ("<message>\x1b</message>", "not-well-formed"),
        ("<a>" * (DEPTH_LIMIT + 1) + "</a>" * (DEPTH_LIMIT + 1), "policy-violation"),
        ("<message to='x'>".ljust(STANZA_LIMIT, "x") + "</message>", "policy-violation"),
        ("<message><x xmlns='}'/></message>", "not-well-formed"),
    ],
)
async def test_who_is_logged_in_is_bound_by_the_same_rules(sent: str, condition: str) -> None:
    async with Sandbox() as address, logged_in(address) as wire:
        wire.send(sent)
        assert f"<stream:error><{condition} " in await wire.rest()


async def test_only_scram_is_offered_and_no_tls() -> None:
    async with Sandbox() as address, Wire.to(address) as wire:
        wire.send(HEADER)
        features = await wire.until("</stream:features>")
        mechanisms = re.findall("<mechanism>(.*?)</mechanism>", features)
        assert mechanisms == ["SCRAM-SHA-256", "SCRAM-SHA-1"]  # some libraries know the older alone
        assert "starttls" not in features


@pytest.mark.parametrize(
    ("sent", "condition"),
    [
        (element("auth", "\0debug\0secret", " mechanism='PLAIN'"), "invalid-mechanism"),
        (
            "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='SCRAM-SHA-256'>?</auth>",
            "incorrect-encoding",
        ),
    ],
)
async def test_a_failed_login_says_why_and_may_be_tried_again(sent: str, condition: str) -> None:
    async with Sandbox() as address, Wire.to(address) as wire:
        await wire.open()
        wire.send(sent)
        assert f"<{condition}/>" in await wire.until("</failure>")
        await wire.authenticate(ACCOUNT, address.password)


async def test_nothing_is_passed_on_before_a_resource_is_bound() -> None:
    async with Sandbox() as address, Wire.to(address) as wire:
        await wire.open()
        await wire.authenticate(ACCOUNT, address.password)
        await wire.open()
        wire.send("<message to='localhost'/>")
        assert "<not-authorized " in await wire.rest()


async def test_a_resource_that_is_taken_goes_to_the_newcomer() -> None:
    async with Sandbox() as address, Wire.to(address) as old, Wire.to(address) as new:
        await old.log_in(address, "desk")
        await old.join(LOBBY, "old")
        await new.log_in(address, "desk")
        assert "<stream:error><conflict " in await old.rest()
        await new.join(LOBBY, "old")


async def test_a_resource_is_cut_to_the_length_that_one_may_have() -> None:
    async with Sandbox() as address, Wire.to(address) as wire:
        jid = await wire.log_in(address, "d" * (PART_LIMIT + 1))
        assert jid == f"{ACCOUNT}@localhost/{'d' * PART_LIMIT}"


async def test_the_end_of_the_stream_is_answered_with_its_end() -> None:
    async with Sandbox() as address, logged_in(address) as wire:
        wire.send(END)
        assert await wire.rest() == END
