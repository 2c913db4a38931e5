"""Running the tool that a call asks for: whatever comes of it is an outcome, save cancellation."""

import asyncio
import logging

from bridge.escaping import one_line
from bridge.mcp import wirelog
from bridge.mcp.calls import Call, Crashed, Failed, Outcome, Succeeded
from bridge.mcp.context import Context
from bridge.mcp.toolset import ToolError

log = logging.getLogger(__name__)


def run_plain(call: Call, context: Context | None) -> Outcome:
    """Run a tool that answers in the turn that read its call."""
    try:
        return Succeeded(call.run(*_given(context), **call.arguments))
    except ToolError as error:
        return Failed(error)
    except Exception as error:  # noqa: BLE001 - a broken tool must not take the others along
        return _crashed(call, error)


async def run_waiting(call: Call, context: Context | None) -> Outcome:
    """Run a tool that waits for something, within its deadline."""
    try:
        async with asyncio.timeout(call.tool.deadline) as deadline:
            return Succeeded(await call.run(*_given(context), **call.arguments))
    except ToolError as error:
        return Failed(error)
    except TimeoutError as error:
        if not deadline.expired():
            return _crashed(call, error)
        return Failed(
            ToolError(
                f"{call.tool.name} took longer than {call.tool.deadline:g} s and was given up",
                condition="remote-server-timeout",
                hint="Call it again; the server's log may say what it waited for.",
            )
        )
    except asyncio.CancelledError as error:
        # Something it waited for was cancelled, and not the call itself: it is owed a reply.
        if (task := asyncio.current_task()) and task.cancelling():
            raise
        return _crashed(call, error)
    except Exception as error:  # noqa: BLE001 - a broken tool must not take the others along
        return _crashed(call, error)


def _given(context: Context | None) -> tuple[Context, ...]:
    return () if context is None else (context,)


def _crashed(call: Call, error: BaseException) -> Crashed:
    log.error(
        "the tool %s broke: %s",
        call.tool.name,
        in_words(error),
        exc_info=error if log.isEnabledFor(logging.DEBUG) else None,
    )
    return Crashed(f"the tool {call.tool.name} broke ({type(error).__name__}); see the log")


def in_words(error: BaseException) -> str:
    """Return what went wrong, for one line of the log."""
    return f"{type(error).__name__}: {one_line(str(error), wirelog.LOGGED_CHARACTERS)}"
