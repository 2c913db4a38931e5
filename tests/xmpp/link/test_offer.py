import pytest

from bridge.xmpp.link.offer import MAX_NAME_CHARACTERS, MAX_NAMES, Offer, offer_in
from tests.xmpp.elements import parsed

SASL2 = """
    <authentication xmlns='urn:xmpp:sasl:2'>
        <mechanism>SCRAM-SHA-256</mechanism><mechanism>PLAIN</mechanism>
        <inline>
            <bind xmlns='urn:xmpp:bind:0'><inline><feature var='urn:xmpp:sm:3'/></inline></bind>
            <fast xmlns='urn:xmpp:fast:0'><mechanism>HT-SHA-256-ENDP</mechanism></fast>
        </inline>
    </authentication>"""
BINDINGS = """
    <sasl-channel-binding xmlns='urn:xmpp:sasl-cb:0'>
        <channel-binding type='tls-exporter'/><channel-binding/>
    </sasl-channel-binding>"""
SASL = """
    <mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>
        <mechanism> SCRAM-SHA-1 </mechanism><mechanism>SCRAM-SHA-1</mechanism>
    </mechanisms>"""


def limits(inner: str) -> str:
    return f"<limits xmlns='urn:xmpp:stream-limits:0'>{inner}</limits>"


LIMITED = limits("<max-bytes>10000</max-bytes><idle-seconds> 60 </idle-seconds>")


def read(features: str, before: Offer = Offer()) -> Offer:  # noqa: B008 - it is frozen
    return offer_in(parsed(f"<features>{features}</features>"), before)


def test_everything_that_a_server_offers_is_read_from_both_of_its_lists_of_features() -> None:
    before = read(SASL + SASL2 + BINDINGS + limits("<max-bytes>512</max-bytes>"))
    offer = read(LIMITED, before)
    assert offer == Offer(
        mechanisms=("SCRAM-SHA-1",),
        channel_bindings=("tls-exporter",),
        sasl2=("SCRAM-SHA-256", "PLAIN"),
        bind2=True,
        fast=("HT-SHA-256-ENDP",),
        max_bytes=10_000,
        idle_seconds=60,
    )
    assert offer.unused == 'SASL2 "SCRAM-SHA-256, PLAIN", Bind 2, FAST "HT-SHA-256-ENDP"'
    assert offer.limits == "10,000 bytes a stanza and 60 s of silence"


@pytest.mark.parametrize(
    "features",
    ["", limits(""), limits("<max-bytes>many</max-bytes><idle-seconds>-1</idle-seconds>")],
)
def test_what_is_not_offered_is_not_told_of(features: str) -> None:
    offer = read(features)
    assert offer == Offer()
    assert offer.unused == offer.limits == ""


def test_the_names_are_bounded() -> None:
    odd = "".join(f"<mechanism>\u202e{number}{'x' * 999}</mechanism>" for number in range(99))
    offer = read(f"<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>{odd}</mechanisms>")
    assert len(offer.mechanisms) == MAX_NAMES
    assert {len(name) for name in offer.mechanisms} == {MAX_NAME_CHARACTERS}
