"""What a server may offer and answer to get at the password: mechanisms, order, PLAIN."""

from base64 import b64decode
from xml.etree.ElementTree import Element

import pytest

from bridge.wire.names import SASL
from bridge.wire.scram import ScramError
from bridge.xmpp.model.faults import ConnectionFailedError
from tests.xmpp.elements import parsed
from tests.xmpp.login import PASSWORD, login, settings

SUCCESS = f"<success xmlns='{SASL}'/>"
"""With nothing in it, which is all that PLAIN wants."""


class Hostile:
    def __init__(self, *answers: str) -> None:
        self.heard: list[Element] = []
        self._answers = list(answers)

    async def exchange(self, element: Element) -> Element:
        self.heard.append(element)
        return parsed(self._answers.pop(0))


NO_PLAIN = {
    "in small letters": ["plain"],
    "in mixed case": ["Plain"],
    "with a name behind": ["PLAIN SCRAM-SHA-256"],
    "with a comma": ["PLAIN,SCRAM-SHA-256"],
    "with a character that nobody sees": ["PLA\u200bIN"],
    "in letters that look like it": ["РLAIN"],  # noqa: RUF001 - a Cyrillic one
    "another mechanism": ["X-PLAIN", "PLAIN-PLUS", "OAUTHBEARER", "EXTERNAL", "ANONYMOUS", "LOGIN"],
    "SCRAM by other names": ["SCRAM-SHA-256-plus", "scram-sha-256", "SCRAM-MD5", "SCRAM-SHA-224"],
    "an empty name": ["", " "],
    "many": ["DIGEST-MD5"] * 1_000,
}


@pytest.mark.parametrize("attack", NO_PLAIN)
async def test_a_name_that_is_not_exactly_a_mechanism_of_ours_is_none(attack: str) -> None:
    server = Hostile()
    with pytest.raises(ConnectionFailedError):
        await login(server, *NO_PLAIN[attack])
    assert server.heard == []


@pytest.mark.parametrize(
    "answer",
    [
        f"<failure xmlns='{SASL}'><not-authorized/></failure>",
        f"<failure xmlns='{SASL}'><invalid-mechanism/></failure>",
        f"<failure xmlns='{SASL}'/>",
        SUCCESS,
        f"<challenge xmlns='{SASL}'/>",
    ],
)
async def test_no_answer_to_scram_makes_us_send_the_password(answer: str) -> None:
    """Genuine or not: PLAIN is for a server that offers nothing better."""
    server = Hostile(answer)
    with pytest.raises((ConnectionFailedError, ScramError)):
        await login(server, "PLAIN", "SCRAM-SHA-1")
    (auth,) = server.heard
    assert auth.get("mechanism") == "SCRAM-SHA-1"


async def test_a_challenge_after_plain_gets_nothing_more() -> None:
    server = Hostile(f"<challenge xmlns='{SASL}'>QQ==</challenge>", SUCCESS)
    with pytest.raises(ScramError, match="PLAIN, which has no challenge"):
        await login(server, "PLAIN")
    assert len(server.heard) == 1


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize(
    ("username", "password"),
    [
        ("bot\0admin", PASSWORD),
        ("bot", "\ue000"),
        ("bot", "\N{RIGHT-TO-LEFT OVERRIDE}"),
        ("\N{OBJECT REPLACEMENT CHARACTER}", PASSWORD),
        ("bot", "\ud800"),
    ],
)
async def test_names_and_passwords_that_could_be_read_as_something_else_go_nowhere(
    mechanism: str, username: str, password: str
) -> None:
    """A NUL would make two fields of one in PLAIN (RFC 4616, section 2)."""
    server = Hostile()
    with pytest.raises(ConnectionFailedError, match="SASLprep") as refusal:
        await login(server, mechanism, account=settings(username, password))
    assert server.heard == []
    assert PASSWORD not in str(refusal.value)


@pytest.mark.parametrize(
    ("username", "sent"),
    [
        ("a,r=forged", "a=2Cr=3Dforged"),
        ("a\N{FULLWIDTH COMMA}r\N{FULLWIDTH EQUALS SIGN}forged", "a=2Cr=3Dforged"),
        ("=2C", "=3D2C"),
    ],
)
async def test_a_name_gets_out_of_its_field_by_no_way_of_writing(username: str, sent: str) -> None:
    """SASLprep makes commas of what looks like one, so the escaping has to come after it."""
    server = Hostile(f"<failure xmlns='{SASL}'/>")
    with pytest.raises(ConnectionFailedError):
        await login(server, "SCRAM-SHA-256", account=settings(username))
    first = b64decode(server.heard[0].text or "").decode()
    assert first.startswith(f"n,,n={sent},r=")
    assert first.count(",") == 3


@pytest.mark.parametrize("content", ["ü", "QQ=", "Q Q==", "=", "----", "4p\n4p", "gICA", "AAAA"])
@pytest.mark.parametrize("name", ["challenge", "success"])
async def test_an_answer_that_is_none_is_a_broken_protocol(name: str, content: str) -> None:
    server = Hostile(f"<{name} xmlns='{SASL}'>{content}</{name}>")
    with pytest.raises(ScramError):
        await login(server, "SCRAM-SHA-256")
    assert len(server.heard) == 1
