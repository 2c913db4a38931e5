from dataclasses import dataclass
from typing import Annotated

import pytest

from bridge.mcp.schema import SchemaError
from bridge.mcp.toolset import Completes, PromptArgument, prompt, resource


@dataclass(frozen=True)
class Weather:
    degrees: float


def cities() -> list[str]:
    return ["Rome"]


def test_a_typed_function_is_a_resource_named_after_it() -> None:
    @resource("sample://weather", title="Weather")
    def weather_now() -> Weather:
        """How it is outside.

        In one place.
        """
        return Weather(21.5)

    assert (weather_now.uri, weather_now.name, weather_now.title) == (
        "sample://weather",
        "weather-now",
        "Weather",
    )
    assert weather_now.description == "How it is outside.\n\nIn one place."
    assert weather_now.function() == Weather(21.5)


def test_the_arguments_of_a_prompt_are_those_of_its_function_as_the_wire_spells_them() -> None:
    @prompt("ask", title="Ask")
    def ask(
        city_name: Annotated[str, "where", Completes(cities)], from_: Annotated[str, "who"] = ""
    ) -> str:
        """Ask about the weather."""
        return f"{from_}: what about {city_name}?"

    assert (ask.name, ask.title, ask.description) == ("ask", "Ask", "Ask about the weather.")
    assert ask.arguments == (
        PromptArgument("cityName", "where", required=True, completes=Completes(cities)),
        PromptArgument("from", "who", required=False, completes=None),
    )
    assert ask.function(**ask.signature.bind({"cityName": "Rome"})) == ": what about Rome?"


def test_a_collaborator_is_no_argument() -> None:
    @prompt("ask", title="Ask")
    def ask(weather: Weather, /, city: str) -> str:
        return f"{city}: {weather.degrees}"

    assert [one.name for one in ask.arguments] == ["city"]
    assert ask.description == ""


def test_a_type_that_the_wire_cannot_say_is_its_authors_error() -> None:
    def ask(when: complex) -> str:
        return str(when)

    with pytest.raises(SchemaError):
        prompt("ask", title="Ask")(ask)
