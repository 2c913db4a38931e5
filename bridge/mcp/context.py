"""What a running tool or prompt can send to its caller, and ask its caller. Pure.

For this, a function has a `Context` as its last parameter before the `/`::

    async def fetch(room: RoomLink, context: Context, /, since: str) -> Page:
        context.progress(1, 3, "asked the server")
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from bridge.mcp.asking import STATE_SECONDS, Elicitation, Question, elicitation, read_elicitation
from bridge.mcp.errors import ToolError
from bridge.mcp.jsonrpc import Json, Object
from bridge.mcp.schema import MismatchError, Schema

Form = TypeVar("Form")


class Context(NamedTuple):
    """Sends progress, log messages and questions from one call to its caller.

    Progress and log messages are sent only if the caller asked for them.
    """

    send_progress: Callable[[float, float | None, str | None], None]
    log: Callable[[str, Json], None]
    """Send a log message, if the caller wants messages of this level (RFC 5424's names)."""
    can_ask: Callable[[str], bool]
    """Whether the caller takes a question of this method, such as `sampling/createMessage`.

    Only a client that declared the capability takes a question; the caller of a bare call takes
    none.
    """
    ask: Callable[[Mapping[str, Question], float], Awaitable[Mapping[str, Object]]]
    """Ask the caller all these questions at once, and return the answers under the same names.

    Raises `ToolError` when the caller takes no such question, refuses one, gives no answer within
    this many seconds, or is gone. If the call ends meanwhile, by its deadline or by a cancellation,
    its questions are cancelled. Under 2026-07-28 the call ends here (`InputRequired`, not to be
    caught), and runs again from its beginning once the client has answered: so ask before you act,
    and give each question the same name in every run.
    """

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress; a value that does not grow is not sent (MCP, "Progress")."""
        self.send_progress(done, total, message)

    async def elicit(
        self, message: str, form: type[Form] | Schema, *, name: str = "form", consent: bool = False
    ) -> Elicitation[Any]:
        """Ask the caller's user to fill in a form, see `bridge.mcp.asking.elicitation`.

        With `consent` an answer counts only for this call with these arguments, and only once.
        Raises like `ask`, and `ToolError` for an answer that does not fit the form.
        """
        question = elicitation(message, form, consent=consent)
        answers = await self.ask({name: question}, STATE_SECONDS)
        try:
            return read_elicitation(answers[name], form)
        except MismatchError as error:
            raise ToolError(
                f"What the client's user answered does not fit what was asked: {error}",
                condition="not-acceptable",
                hint="Call again, and fill in the form as it is shown.",
            ) from error
