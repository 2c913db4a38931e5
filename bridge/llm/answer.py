"""A model's answer, as the value that was asked for. Pure."""

import json
from collections.abc import Iterator
from typing import NoReturn

from bridge.mcp.schema import MismatchError, Reader

MAX_TEXT_CHARACTERS = 256 * 1024
"""Of all that a model says: some think aloud before they answer."""

MAX_ANSWER_BYTES = 16 * 1024
"""Of the JSON in it: a result made of that is no longer than a page of the room."""

_THOUGHT = "</think>"
"""What ends the thoughts of models that show them."""


def read_answer(text: str, read: Reader) -> object:
    """Return the value in `text`, as `read` checks it; raises `MismatchError` saying what is wrong.

    Models wrap what they were asked for: a fence around the JSON, words before and after it,
    are let pass.
    """
    if len(text) > MAX_TEXT_CHARACTERS:
        raise MismatchError(
            f"the answer has {len(text):,} characters; the most is {MAX_TEXT_CHARACTERS:,}"
        )
    return read(_json_in(text.rpartition(_THOUGHT)[2]), "answer")


def _json_in(text: str) -> object:
    reason = "it is empty"
    for candidate in _candidates(text):
        try:
            value = json.loads(candidate, parse_constant=_refuse)
        except json.JSONDecodeError as error:
            reason = f"{error.msg} at character {error.pos}"
        except RecursionError:
            reason = "it is nested too deeply"
        except ValueError as error:  # `int` refuses thousands of digits; `_refuse`
            reason = str(error).partition(";")[0]
        else:
            if (size := len(candidate.encode("utf-8", "replace"))) > MAX_ANSWER_BYTES:
                raise MismatchError(
                    f"the answer has {size:,} bytes of JSON; the most is {MAX_ANSWER_BYTES:,}"
                )
            return value
    raise MismatchError(f"the answer is not JSON: {reason}")


def _candidates(text: str) -> Iterator[str]:
    """Yield what may be the JSON: all of it, what stands in a fence, what stands in braces."""
    if whole := text.strip():
        yield whole
    for fenced in text.split("```")[1::2]:
        yield fenced.partition("\n")[2]
    start, end = text.find("{"), text.rfind("}")
    if 0 <= start < end:
        yield text[start : end + 1]


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
