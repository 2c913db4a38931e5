import hashlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement

import pytest

from bridge.wire.names import SASL
from bridge.wire.scram import ChannelBinding, ScramError, proofs
from bridge.xmpp.link.sasl import LoginRefusedError
from bridge.xmpp.model.faults import ConnectionFailedError
from tests.xmpp.login import PASSWORD, login, settings

Answer = tuple[str, bytes | str | None]
"""The name of an element and what it carries; text is a condition."""


class ServerSide:
    def __init__(self, *answers: Answer | Callable[[str], Answer]) -> None:
        self._answers: Sequence[Answer | Callable[[str], Answer]] = answers
        self.heard: list[Element] = []

    async def exchange(self, element: Element) -> Element:
        text = b64decode(element.text or "").decode()
        answer = self._answers[len(self.heard)]
        self.heard.append(element)
        name, content = answer(text) if callable(answer) else answer
        reply = Element(f"{{{SASL}}}{name}")
        if isinstance(content, bytes):
            reply.text = b64encode(content).decode()
        elif content is not None:
            SubElement(reply, f"{{{SASL}}}{content}")
            SubElement(reply, f"{{{SASL}}}text").text = "says the server"
        return reply


class ScramServer:
    """The server's side of SCRAM, with few rounds."""

    def __init__(self, hash_name: str) -> None:
        self.hash_name = hash_name
        self._salted = hashlib.pbkdf2_hmac(hash_name, PASSWORD.encode(), b"salt", 16)
        self._said = ""

    def challenge(self, first: str) -> Answer:
        bare = first.removeprefix("n,,")
        challenge = f"r={bare.partition(',r=')[2]}server,s={b64encode(b'salt').decode()},i=16"
        self._said = f"{bare},{challenge}"
        return "challenge", challenge.encode()

    def verifier(self, final: str) -> bytes:
        without_proof, _, proof = final.rpartition(",p=")
        signed = f"{self._said},{without_proof}".encode()
        expected, signature = proofs(self.hash_name, self._salted, signed)
        assert b64decode(proof) == expected
        return b"v=" + b64encode(signature)

    def success(self, final: str) -> Answer:
        return "success", self.verifier(final)


@pytest.mark.parametrize(
    ("offered", "chosen", "hash_name"),
    [
        (["PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256"], "SCRAM-SHA-256", "sha256"),
        (["SCRAM-SHA-256", "SCRAM-SHA-512", "SCRAM-SHA-1"], "SCRAM-SHA-512", "sha512"),
        (["DIGEST-MD5", " SCRAM-SHA-1\n", "SCRAM-SHA-1-PLUS"], "SCRAM-SHA-1", "sha1"),
    ],
)
async def test_the_best_offer_logs_in(offered: list[str], chosen: str, hash_name: str) -> None:
    scram = ScramServer(hash_name)
    server = ServerSide(scram.challenge, scram.success)
    assert await login(server, *offered) == (chosen, None)
    assert server.heard[0].get("mechanism") == chosen


@pytest.mark.parametrize("then", ["success", "challenge"])
async def test_the_proof_may_come_as_one_more_challenge_and_nothing_be_asked_after_it(
    then: str,
) -> None:
    scram = ScramServer("sha256")
    server = ServerSide(
        scram.challenge, lambda final: ("challenge", scram.verifier(final)), (then, b"")
    )
    if then == "success":
        await login(server, "SCRAM-SHA-256")
        assert not server.heard[-1].text
    else:
        with pytest.raises(ScramError, match="goes on asking"):
            await login(server, "SCRAM-SHA-256")


@pytest.mark.parametrize("answer", [("success", None), ("success", b"v=AAAA"), ("success", b"x")])
async def test_a_success_without_the_right_proof_is_refused(answer: Answer) -> None:
    server = ServerSide(ScramServer("sha256").challenge, answer)
    with pytest.raises(ScramError):
        await login(server, "SCRAM-SHA-256")


async def test_a_refusal_has_the_servers_condition_and_words_and_is_not_followed_by_plain() -> None:
    server = ServerSide(ScramServer("sha256").challenge, ("failure", "not-authorized"))
    with pytest.raises(ConnectionFailedError) as refusal:
        await login(server, "SCRAM-SHA-256", "PLAIN")
    assert refusal.value.fault.condition == "not-authorized"
    assert "says the server" in refusal.value.fault.message
    assert len(server.heard) == 2


async def test_plain_sends_the_password_as_saslprep_has_it() -> None:
    server = ServerSide(("success", None))
    assert await login(server, "PLAIN") == ("PLAIN", None)
    assert b64decode(server.heard[0].text or "") == b"\0bot\0correct-horse"
    account = settings("\N{ROMAN NUMERAL NINE}", "a\N{NO-BREAK SPACE}b\N{SOFT HYPHEN}")
    prepared = ServerSide(("success", None))
    await login(prepared, "PLAIN", account=account)
    assert b64decode(prepared.heard[0].text or "") == b"\0IX\0a b"


@pytest.mark.parametrize(
    ("offered", "says"),
    [
        (["PLAIN"], {"genuine": False}),
        (["PLAIN"], {"bindings": None}),
        (["SCRAM-SHA-256-PLUS", "PLAIN"], {"bindings": None}),
        ([], {"genuine": False}),
        ([], {"bindings": None}),
    ],
)
async def test_without_a_safe_mechanism_nothing_is_sent(
    offered: list[str], says: dict[str, Any]
) -> None:
    """Not in a login without a word on bindings either."""
    server = ServerSide()
    with pytest.raises(ConnectionFailedError) as refusal:
        await login(server, *offered, **says)
    assert refusal.value.fault.condition == "invalid-mechanism"
    assert (", ".join(offered) or "none") in refusal.value.fault.message
    assert server.heard == []


END_POINT = ChannelBinding("tls-server-end-point", b"digest")
UNIQUE = ChannelBinding("tls-unique", b"finished")
BOTH = ("SCRAM-SHA-1-PLUS", "SCRAM-SHA-1")


@pytest.mark.parametrize(
    ("offered", "named", "bindings"),
    [
        (BOTH, ["tls-exporter"], [END_POINT, UNIQUE]),
        (BOTH, ["tls-exporter", "tls-telepathy"], []),
        (BOTH, [], [END_POINT]),
        ((BOTH[0], "PLAIN"), ["tls-exporter"], [END_POINT]),
    ],
)
async def test_a_binding_that_we_have_not_is_named_where_the_certificate_was_not_checked(
    offered: Sequence[str], named: list[str], bindings: list[ChannelBinding]
) -> None:
    server = ServerSide()
    with pytest.raises(ConnectionFailedError) as refusal:
        await login(server, *offered, named=named, bindings=bindings, genuine=False)
    assert refusal.value.fault.condition == "unsupported-channel-binding-type"
    assert (", ".join(named) or "does not name") in refusal.value.fault.message
    assert "XMPP_TLS_CA_FILE" in refusal.value.fault.hint
    assert server.heard == []


async def test_a_binding_that_we_have_not_is_named_where_no_login_goes_without() -> None:
    server = ServerSide()
    with pytest.raises(ConnectionFailedError) as refusal:
        await login(server, BOTH[0], named=["tls-exporter"], bindings=[END_POINT])
    assert refusal.value.fault.condition == "unsupported-channel-binding-type"
    assert server.heard == []


@pytest.mark.parametrize(
    ("offered", "named", "bindings", "genuine", "header", "flag"),
    [
        (BOTH, [], [END_POINT, UNIQUE], True, "p=tls-unique,,", "p"),
        (BOTH[1:], [], [END_POINT], True, "y,,", "y"),
        (BOTH, [], [END_POINT], True, "n,,", "n"),
        (BOTH, [], None, True, "n,,", "n"),
        (BOTH[1:], [], None, True, "n,,", "n"),
        # A binding is never given up for a better hash.
        ((BOTH[0], "SCRAM-SHA-512"), [END_POINT.type], [END_POINT], True, "p=tls-server-", "p"),
        (("SCRAM-SHA-512", "scram-sha-1-plus"), [END_POINT.type], [END_POINT], True, "y,,", "y"),
        # Without a checked certificate, no second login could be trusted.
        (BOTH, ["tls-exporter", END_POINT.type], [END_POINT], False, "p=tls-server-", ""),
        (BOTH, [], [END_POINT, UNIQUE], False, "p=tls-unique,,", ""),
        # The server knows whether it offered more than what came here.
        (BOTH[1:], ["tls-exporter"], [END_POINT], False, "y,,", ""),
        (BOTH[1:], [], [], False, "y,,", ""),
    ],
)
async def test_a_login_is_bound_or_says_that_it_could_be_and_a_refusal_says_how(
    offered: Sequence[str],
    named: list[str],
    bindings: list[ChannelBinding] | None,
    genuine: bool,
    header: str,
    flag: str,
) -> None:
    server = ServerSide(("failure", "not-authorized"))
    with pytest.raises(LoginRefusedError) as refused:
        await login(server, *offered, named=named, bindings=bindings, genuine=genuine)
    assert b64decode(server.heard[0].text or "").decode().startswith(header)
    assert refused.value.flag == flag
    advised = "a check tries once more" in refused.value.fault.hint
    assert advised is (flag in {"p", "y"})
    assert "a check tries once more" not in refused.value.refusal.hint
