"""What a stage of a connection finds out on its way, in words, for whoever wants to know. Pure."""

from collections.abc import Callable
from typing import TypeAlias

from bridge.xmpp.faults import Stage

Tell: TypeAlias = Callable[[str], None]
"""Takes one finding: a few words, some of which a stranger may have written."""

TellOf: TypeAlias = Callable[[Stage, str], None]
"""Takes one finding of a stage."""


def unheard(finding: str) -> None:
    """Let a finding go: most connections have nobody who asks."""
    del finding


def unheard_of(stage: Stage, finding: str) -> None:
    """Let a stage's finding go."""
    del stage, finding
