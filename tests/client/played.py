"""A person in front of the client, in the test's own process."""

from collections.abc import Iterator
from typing import Any

from bridge.client.arguments import Parameter
from bridge.client.formatting import Answer


class Played:
    """A person who gives these answers, one after the other."""

    interactive = False

    def __init__(self, *answers: str | BaseException) -> None:
        self.told: list[str] = []
        self.asked: list[Parameter] = []
        self._answers: Iterator[str | BaseException] = iter(answers)

    async def ask(self, parameter: Parameter) -> dict[str, Any]:
        self.asked.append(parameter)
        text = next(self._answers)
        if isinstance(text, BaseException):
            raise text
        return {parameter.name: parameter.read(text)} if text else {}

    async def line(self) -> str:
        raise EOFError

    def show(self, answer: Answer) -> None:
        raise AssertionError(answer)

    def tell(self, text: str) -> None:
        self.told.append(text)

    def close(self) -> None: ...
