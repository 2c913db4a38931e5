"""What passes, byte for byte, and what is changed on the way."""

import re
from base64 import b64decode, b64encode
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.capture.stanza import FOOTER, HOLE, SIZE
from bridge.sandbox.scram import SaslLogin
from bridge.tap import relay
from bridge.tap.lane import MAX_HELD_BYTES
from bridge.tap.relay import OURS, Relay
from bridge.wire.scram import ScramClient
from tests.faults.odd_xml import odd_children
from tests.tap.tapping import STREAM

SASL = "urn:ietf:params:xml:ns:xmpp-sasl"
SERVER = STREAM.replace("to=", "from=")
MECHANISMS = f"<mechanisms xmlns='{SASL}'>%s</mechanisms>"
PROLOG = "<?xml version='1.0'?>\n"
SAID = (
    "<message to='r@c/n' xml:lang='en'><body>a &lt; b ü\n</body>"
    "<x xmlns=\"j:x\" a = 'b' /></message>"
)
HOST = "see-other-host xmlns='urn:ietf:params:xml:ns:xmpp-streams'"


class Wires:
    """A relay, and what came out of it."""

    def __init__(self, **options: SaslLogin) -> None:
        self.relay = Relay(**options)
        self.out = {True: b"", False: b""}
        self.seen: list[tuple[bool, Element]] = []
        self.steps: list[relay.Step] = []

    def say(self, sent: bool, data: str | bytes) -> "Wires":
        self.play(self.relay.receive(sent, data.encode() if isinstance(data, str) else data))
        return self

    def play(self, steps: object) -> None:
        for step in steps:  # type: ignore[attr-defined]
            if isinstance(step, relay.Passage):
                self.out[step.sent] += step.data
                if step.element is not None:
                    self.seen.append((step.sent, step.element))
            else:
                self.steps.append(step)

    def greet(self, features: str = "") -> "Wires":
        self.say(True, STREAM)
        return self.say(False, f"{SERVER}<stream:features>{features}</stream:features>")

    def log_in(self) -> "Wires":
        self.greet(MECHANISMS % "<mechanism>PLAIN</mechanism>")
        self.say(True, f"<auth xmlns='{SASL}' mechanism='PLAIN'>AGEAYg==</auth>")
        self.say(False, f"<success xmlns='{SASL}'/>")
        return self.greet()

    def tags(self) -> list[str]:
        return [element.tag for _, element in self.seen]

    def remarks(self) -> list[str]:
        return [each.name for each in self.steps if isinstance(each, relay.Remark)]

    def taken_out(self) -> list[str]:
        remarks = [each for each in self.steps if isinstance(each, relay.Remark)]
        return [each.words["what"] for each in remarks if each.name == "taken-out"]


def auth(mechanism: str, first: str) -> str:
    return (
        f"<auth xmlns='{SASL}' mechanism='{mechanism}'>{b64encode(first.encode()).decode()}</auth>"
    )


@settings(max_examples=20)
@given(st.lists(st.integers(1, 40), max_size=40), st.booleans())
def test_everything_passes_byte_for_byte_however_it_is_cut(cuts: list[int], sent: bool) -> None:
    wires = Wires().log_in()
    before = len(wires.out[sent])
    data = (
        f" \n{SAID}\n\n<r xmlns='urn:xmpp:sm:3'/>{SAID}<iq id='1' type='get'/> </stream:stream>\n"
    )
    rest = data.encode()
    for cut in cuts:
        wires.say(sent, rest[:cut])
        rest = rest[cut:]
    wires.say(sent, rest)
    assert wires.out[sent][before:] == data.encode()
    assert [element.tag for was_sent, element in wires.seen if was_sent is sent][-1] == FOOTER


@pytest.mark.parametrize("space", ["jabber:client", "jabber:component:accept"])
@pytest.mark.parametrize(
    "header", ["xmlns='{0}'", "xmlns:c='{0}' xmlns='other'", "xmlns:c='{0}' xmlns='{0}'"]
)
@pytest.mark.parametrize(
    "said",
    ["<c:message><c:body/></c:message>", "<message xmlns='{0}'><body/></message>"],
    ids=["prefixed", "declared"],
)
def test_the_rules_see_stanzas_without_the_namespace_of_stanzas(
    header: str, said: str, space: str
) -> None:
    header, said = header.format(space), said.format(space)
    if "xmlns:c" not in header:
        said = said.replace("c:", "")
    wires = Wires().say(True, f"<s:stream xmlns:s='u' {header}>{said}")
    assert [each.tag for each in wires.seen[-1][1].iter()] == ["message", "body"]
    assert wires.out[True].endswith(said.encode())


@pytest.mark.parametrize("sent", [False, True])
def test_odd_stanzas_that_servers_may_pass_on_pass_as_they_came(sent: bool) -> None:
    wires = Wires().log_in()
    before = wires.out[sent]
    odd = "".join(f"<message to='r@c'>{each}</message>{SAID}" for each in odd_children(1, 300))
    wires.say(sent, odd)
    assert wires.out[sent] == before + odd.encode()
    assert wires.tags().count("message") > 300


def test_a_prolog_and_a_header_pass_as_they_came() -> None:
    wires = Wires().say(True, PROLOG + STREAM)
    assert wires.out[True] == (PROLOG + STREAM).encode()


def test_a_stanza_is_held_until_it_is_whole_and_goes_out_at_the_end() -> None:
    wires = Wires().log_in()
    before = wires.out[True]
    wires.say(True, SAID[:30])
    assert wires.out[True] == before
    wires.play([wires.relay.close(True)])
    assert wires.out[True] == before + SAID[:30].encode()


def test_a_long_stanza_passes_in_parts_and_the_next_is_seen() -> None:
    wires = Wires().log_in()
    long = f"<message to='r@c'><body>{'x' * 2 * MAX_HELD_BYTES}</body></message>"
    wires.say(False, long[:-20])
    assert len(wires.out[False]) > MAX_HELD_BYTES
    wires.say(False, long[-20:-1])
    assert wires.relay.held == 0
    wires.say(False, long[-1:] + SAID)
    assert wires.out[False].endswith((long + SAID).encode())
    assert wires.tags().count(HOLE) == 1
    assert wires.tags()[-2:] == [HOLE, "message"]


def test_what_a_long_stanza_had_in_its_first_part_is_known_at_once() -> None:
    wires = Wires().log_in()
    wires.say(True, f"<message to='r@c'><body>{'x' * MAX_HELD_BYTES}")
    (_, hole) = wires.seen[-1]
    assert int(hole.get(SIZE, "0")) > MAX_HELD_BYTES


OFFERED = {
    "SASL2": "<authentication xmlns='urn:xmpp:sasl:2'><mechanism>PLAIN</mechanism><inline>"
    "<bind xmlns='urn:xmpp:bind:0'/><fast xmlns='urn:xmpp:fast:0'/></inline></authentication>",
    "compression": "<compression xmlns='http://jabber.org/features/compress'><method>zlib</method>"
    "</compression>",
}


@pytest.mark.parametrize("is_own", [False, True], ids=["passed", "own"])
@pytest.mark.parametrize("name", OFFERED)
@pytest.mark.parametrize(
    "where", ["{0}<a xmlns='u:a' b='&gt;'/>", "<a xmlns='u:a' b='/>'/>{0}", "{0}"]
)
def test_features_that_cannot_pass_are_taken_out_and_nothing_else(
    name: str, where: str, is_own: bool
) -> None:
    wires = (Wires(login=login()) if is_own else Wires()).greet(where.format(OFFERED[name]))
    kept = f"<stream:features>{where.format('')}</stream:features>"
    assert wires.out[False] == (SERVER + kept).encode()
    assert [name in what for what in wires.taken_out()] == [True]
    assert len(wires.seen[-1][1]) == where.count("<a")


def test_nested_features_of_such_names_stay() -> None:
    nested = f"<a xmlns='u:a'>{OFFERED['SASL2']}</a>"
    assert nested.encode() in Wires().greet(nested).out[False]


@pytest.mark.parametrize(
    ("came", "passed"),
    [
        (
            "<enabled xmlns='urn:xmpp:sm:3' id='i' location='[::1]:52' resume='true'/>",
            "<enabled xmlns='urn:xmpp:sm:3' id='i' resume='true'/>",
        ),
        (
            f"<stream:error><{HOST}>h:1</see-other-host></stream:error>",
            f"<stream:error><{HOST}></see-other-host></stream:error>",
        ),
    ],
)
def test_addresses_that_lead_past_tap_are_taken_out(came: str, passed: str) -> None:
    wires = Wires().log_in().say(False, came)
    assert wires.out[False].endswith(passed.encode())
    assert len(wires.taken_out()) == 1


@pytest.mark.parametrize(
    ("asked", "remark"),
    [
        ("<authenticate xmlns='urn:xmpp:sasl:2' mechanism='PLAIN'/>", "unoffered"),
        ("<compress xmlns='http://jabber.org/protocol/compress'/>", "taken-out"),
    ],
)
def test_a_client_that_asks_for_what_was_taken_out_is_refused(asked: str, remark: str) -> None:
    wires = Wires().greet()
    before = wires.out[True]
    wires.say(True, asked)
    assert wires.out[True] == before
    assert b"<failure" in wires.out[False]
    assert wires.remarks() == [remark]


PLUS = "<mechanism>SCRAM-SHA-1-PLUS</mechanism><mechanism>SCRAM-SHA-1</mechanism>"


def test_a_login_that_binds_the_channel_is_refused_and_named() -> None:
    wires = Wires().greet(MECHANISMS % PLUS)
    before = wires.out[True]
    wires.say(True, auth("SCRAM-SHA-1-PLUS", "p=tls-unique,,n=a,r=b"))
    assert (wires.remarks(), wires.out[True]) == (["binds"], before)
    failure = f"<failure xmlns='{SASL}'><invalid-mechanism/>{OURS}</failure>"
    assert wires.out[False].endswith(failure.encode())
    wires.say(True, auth("SCRAM-SHA-1", "n,,n=a,r=b"))
    assert wires.out[True] == before + auth("SCRAM-SHA-1", "n,,n=a,r=b").encode()


def test_a_login_that_binds_nothing_passes() -> None:
    wires = Wires().greet(MECHANISMS % PLUS).say(True, auth("SCRAM-SHA-1", "y,,n=a,r=b"))
    assert wires.remarks() == []
    assert wires.out[True].endswith(auth("SCRAM-SHA-1", "y,,n=a,r=b").encode())
    assert (MECHANISMS % PLUS).encode() in wires.out[False]


def test_nothing_that_came_before_tls_is_read_behind_it() -> None:
    wires = Wires().greet("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
    wires.say(True, "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/><iq id='injected'/>")
    wires.say(False, "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/><iq id='injected2'/>")
    assert isinstance(wires.steps[-1], relay.BeginTls)
    before = dict(wires.out)
    wires.greet()
    assert b"injected2" not in wires.out[False]
    assert wires.out[True] == before[True] + STREAM.encode()


def test_a_client_may_begin_its_new_stream_before_it_hears_of_its_success() -> None:
    wires = Wires().greet(MECHANISMS % "<mechanism>PLAIN</mechanism>")
    wires.say(True, auth("PLAIN", "\0a\0b") + STREAM + SAID[:9])
    wires.say(False, f"<success xmlns='{SASL}'/>{SERVER}<stream:features/>")
    wires.say(True, SAID[9:])
    assert wires.out[True].endswith((STREAM + SAID).encode())
    assert wires.tags()[-1] == "message"


@pytest.mark.parametrize("sent", [True, False])
@pytest.mark.parametrize(
    "broken", ["<a></b>", "<!-- x -->", "text", "<?x y?>", "\x16\x03\x01", "<a b=<c/>>"]
)
def test_what_cannot_be_read_after_the_login_passes_as_it_came(sent: bool, broken: str) -> None:
    wires = Wires().log_in()
    before = wires.out[sent]
    wires.say(sent, SAID + broken)
    wires.say(sent, SAID)
    wires.play([wires.relay.close(sent)])
    assert wires.out[sent] == before + (SAID + broken + SAID).encode()
    assert HOLE in wires.tags()


def test_what_a_server_sends_before_the_login_and_cannot_be_read_goes_no_further() -> None:
    wires = Wires().greet()
    before = wires.out[False]
    wires.say(False, "<stream:features><a></b></stream:features>")
    assert (wires.remarks(), wires.out[False]) == (["unreadable"], before)


def test_what_a_client_sends_before_the_login_is_the_servers_to_judge() -> None:
    assert Wires().say(True, "GET / HTTP/1.1\r\n\r\n").out[True] == b"GET / HTTP/1.1\r\n\r\n"


# With `--login`.


def login() -> SaslLogin:
    return SaslLogin(lambda: {"bot": "pw"})


def scram(wires: Wires, password: str, mechanism: str = "SCRAM-SHA-1", *, y: bool = False) -> str:
    """Log in to tap, and return what it answers to the proof."""
    client = ScramClient(mechanism, "bot", "nonce", could_bind=y)
    wires.say(True, auth(mechanism, client.first()))
    (challenge,) = re.findall(rb"<challenge[^>]*>([^<]*)<", wires.out[False])[-1:]
    client.challenge(b64decode(challenge).decode())
    final = b64encode(client.final(password).encode()).decode()
    before = len(wires.out[False])
    wires.say(True, f"<response xmlns='{SASL}'>{final}</response>")
    return wires.out[False][before:].decode()


OFFER = "".join(
    f"<mechanism>{name}</mechanism>"
    for name in ("SCRAM-SHA-512", "SCRAM-SHA-256-PLUS", "SCRAM-SHA-1", "PLAIN")
)


@pytest.mark.parametrize("secured", [True, False])
def test_tap_offers_what_the_server_offers_and_it_can(secured: bool) -> None:
    binding = "<sasl-channel-binding xmlns='urn:xmpp:sasl-cb:0'/>"
    wires = Wires(login=login())
    wires.relay.is_secured = secured
    wires.greet(MECHANISMS % OFFER + binding)
    offered = re.findall(r"<mechanism>([^<]*)<", wires.out[False].decode())
    assert offered == (["SCRAM-SHA-1", "PLAIN"] if secured else ["SCRAM-SHA-1"])
    assert b"sasl-cb" not in wires.out[False]
    assert "SCRAM-SHA-256-PLUS" in wires.relay.offer.mechanisms


@pytest.mark.parametrize("y", [True, False])
def test_a_client_that_proves_the_password_is_in_once_tap_is(y: bool) -> None:
    wires = Wires(login=login()).greet(MECHANISMS % OFFER)
    assert scram(wires, "pw", y=y) == ""
    assert wires.out[True] == STREAM.encode()
    (log_in,) = [each for each in wires.steps if isinstance(each, relay.LogIn)]
    wires.say(False, f"<challenge xmlns='{SASL}'>YQ==</challenge>")
    assert isinstance(wires.steps[-1], relay.LoginAnswer)
    wires.play(wires.relay.logged_in(log_in.success))
    assert wires.out[False].endswith(log_in.success.encode())
    wires.greet().say(True, SAID)
    assert wires.out[True].endswith((STREAM + SAID).encode())


@pytest.mark.parametrize(
    ("attempt", "condition"),
    [
        (auth("SCRAM-SHA-256", "n,,n=bot,r=b"), "invalid-mechanism"),
        (auth("SCRAM-SHA-1", "p=tls-unique,,n=bot,r=b"), "malformed-request"),
        (auth("SCRAM-SHA-1", "n,,n=other,r=b"), "not-authorized"),
        (auth("PLAIN", "\0bot\0pw"), "invalid-mechanism"),
        (f"<response xmlns='{SASL}'>YQ==</response>", "malformed-request"),
        (f"<abort xmlns='{SASL}'/>", "aborted"),
        (f"<auth xmlns='{SASL}' mechanism='SCRAM-SHA-1'>!</auth>", "incorrect-encoding"),
    ],
)
def test_a_login_that_is_wrong_never_reaches_the_server(attempt: str, condition: str) -> None:
    wires = Wires(login=login()).greet(MECHANISMS % OFFER).say(True, attempt)
    assert f"<{condition}/>{OURS}</failure>".encode() in wires.out[False]
    assert wires.out[True] == STREAM.encode()


def test_a_wrong_password_is_refused() -> None:
    wires = Wires(login=login()).greet(MECHANISMS % OFFER)
    assert "<not-authorized/>" in scram(wires, "wrong")


@given(st.binary(max_size=300), st.booleans(), st.booleans())
def test_no_bytes_break_it_or_are_lost(data: bytes, sent: bool, logged_in: bool) -> None:
    wires = Wires()
    if logged_in:
        wires.log_in()
    before = wires.out[sent]
    wires.say(sent, data)
    wires.play([wires.relay.close(sent)])
    if sent or logged_in:
        assert wires.out[sent] == before + data
