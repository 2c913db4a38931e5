"""Data, with the server's word on how to tell it to a person. Pure."""

from typing import Generic, NamedTuple, TypeVar

Data = TypeVar("Data", covariant=True)


class Interpret(NamedTuple, Generic[Data]):
    """What a tool returns whose data wants some telling.

    Under MCP the data is the structured content, and as text the first part of the content; the
    prompt is a second part for the assistant. In the older dialect and under bare JSON-RPC they
    are two parts, of the types `json` and `interpret`. The output schema is that of the data.
    """

    data: Data
    """A dataclass."""
    prompt: str
    """Ours: nothing goes into it that came from outside."""
