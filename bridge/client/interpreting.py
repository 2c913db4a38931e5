"""Asks a model for a report on data with an instruction (`bridge.mcp.content.Interpret`).

The model has no tools, and its answer is only shown. So texts of strangers in the data can change
its answer, but nothing else.
"""

import logging
import secrets
from dataclasses import replace
from functools import partial

from bridge.client.commands import Interpreter
from bridge.client.formatting import Answer
from bridge.llm.model import ChatCompletions, endpoint
from bridge.llm.prompt import Material, write_prompt
from bridge.mcp.errors import ToolError
from bridge.settings.table import Configuration
from bridge.text import one_line, visible

TASK = "Report on the data below, as your instructions say. Answer in plain text."

log = logging.getLogger(__name__)


def interpreter_for(configuration: Configuration) -> Interpreter | None:
    """Return a function that asks the model in the settings; None if none can be used."""
    try:
        model = endpoint(configuration)
    except ToolError as error:
        log.warning("no model is asked: %s", one_line(error.message))
        return None
    return None if model is None else partial(_report, model)


async def _report(model: ChatCompletions, answer: Answer) -> Answer:
    """Return the model's report; if there is none, log why and return `answer` unchanged."""
    material = Material(TASK, [answer.data])
    try:
        prompt = write_prompt(answer.instruction, material, None, secrets.token_hex(8))
        said = (await model.complete(prompt)).strip()
        problem = "" if said else "its answer is empty"
    except ToolError as error:
        problem = one_line(error.message)
    if problem:
        log.warning("the model gave no report: %s", problem)
        return answer
    return replace(answer, value=None, text=visible(said))
