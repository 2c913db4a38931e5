"""An account that logs in, and what a server offers it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol
from xml.etree.ElementTree import Element, SubElement

from bridge.settings.table import Settings
from bridge.settings.values import Secret
from bridge.wire.names import SASL, SASL_CB
from bridge.wire.scram import ChannelBinding
from bridge.xmpp.link.offer import offer_in
from bridge.xmpp.link.sasl import log_in
from tests.xmpp.place import PLACE

PASSWORD = "correct-horse"


def settings(username: str = "bot", password: str = PASSWORD) -> Settings:
    return Settings(
        username=username, domain=PLACE.domain, password=Secret(password), rooms=(PLACE.room,)
    )


def features(*mechanisms: str, bindings: Sequence[str] = ()) -> Element:
    made = Element("features")
    if bindings:
        named = SubElement(made, f"{{{SASL_CB}}}sasl-channel-binding")
        for each in bindings:
            SubElement(named, f"{{{SASL_CB}}}channel-binding", {"type": each})
    listed = SubElement(made, f"{{{SASL}}}mechanisms")
    for each in mechanisms:
        SubElement(listed, f"{{{SASL}}}mechanism").text = each
    return made


class Exchanging(Protocol):
    @property
    def exchange(self) -> Callable[[Element], Awaitable[Element]]:
        """Answer an element."""


async def login(
    server: Exchanging,
    *mechanisms: str,
    account: Settings | None = None,
    named: Sequence[str] = (),
    bindings: Sequence[ChannelBinding] | None = (),
    genuine: bool = True,
) -> tuple[str, str | None]:
    """Log in where these mechanisms are offered, with these names of channel bindings.

    `bindings` are those that we have; `genuine` says that the certificate was checked.
    """
    return await log_in(
        account or settings(),
        PLACE,
        offer_in(features(*mechanisms, bindings=named)),
        server.exchange,
        bindings=bindings,
        genuine=genuine,
    )
