"""Resources and prompts: typed functions with a docstring, like tools. Pure.

A resource is read without arguments and returns a dataclass, which its reader gets as JSON. A
prompt takes text arguments and returns the text that a person hands to a model::

    @resource("bridge://status", title="Status")
    def status(link: RoomLink, /) -> Status:
        '''How things stand.'''

Parameters before the `/` are collaborators, handed in by type.
"""

import inspect
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from bridge.mcp.signature import Signature

JSON_TYPE = "application/json"
"""What every resource here is."""


class Resource(NamedTuple):
    """Something that can be read and watched."""

    uri: str
    name: str
    title: str
    description: str
    function: Callable[..., Any]
    signature: Signature


class Completes(NamedTuple):
    """In an `Annotated` argument of a prompt: where its values can be looked up.

    `values` is called with the prompt's collaborators and returns all of them; what begins with
    what was typed is offered.
    """

    values: Callable[..., list[str]]


class PromptArgument(NamedTuple):
    """One text that a person fills in."""

    name: str
    description: str | None
    required: bool
    completes: Completes | None


class Prompt(NamedTuple):
    """A request to a model, written out by us for a person to send."""

    name: str
    title: str
    description: str
    arguments: tuple[PromptArgument, ...]
    function: Callable[..., str]
    signature: Signature


def resource(uri: str, *, title: str) -> Callable[[Callable[..., Any]], Resource]:
    """Make a resource of the function below it."""

    def make(function: Callable[..., Any]) -> Resource:
        return Resource(
            uri=uri,
            name=function.__name__.replace("_", "-"),
            title=title,
            description=inspect.getdoc(function) or "",
            function=function,
            signature=Signature.of(function),
        )

    return make


def prompt(name: str, *, title: str) -> Callable[[Callable[..., str]], Prompt]:
    """Make a prompt of the function below it."""

    def make(function: Callable[..., str]) -> Prompt:
        signature = Signature.of(function)
        hints = typing.get_type_hints(function, include_extras=True)
        arguments = []
        for parameter in signature.parameters:
            notes = getattr(hints[parameter.name], "__metadata__", ())
            arguments.append(
                PromptArgument(
                    name=parameter.wire,
                    description=next((note for note in notes if isinstance(note, str)), None),
                    required=parameter.required,
                    completes=next((note for note in notes if isinstance(note, Completes)), None),
                )
            )
        description = inspect.getdoc(function) or ""
        return Prompt(name, title, description, tuple(arguments), function, signature)

    return make
