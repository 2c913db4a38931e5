from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from bridge.mcp.errors import ArgumentError, ToolError
from bridge.samples.weather import MAX_LOCATION, current_weather
from bridge.settings.load import load
from bridge.settings.table import Configuration
from tests.samples.open_meteo import GEO, MET, OpenMeteoServer, running_open_meteo


@pytest_asyncio.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenMeteoServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    async with running_open_meteo() as running:
        yield running


def configured(server: OpenMeteoServer) -> Configuration:
    nowhere = Path("/")
    return load(server.environment, cwd=nowhere, package_root=nowhere, searching=False)


async def told(server: OpenMeteoServer, location: str) -> dict[str, object]:
    weather: dict[str, object] = (await current_weather(configured(server), location=location)).data
    return weather


async def failure(server: OpenMeteoServer, location: str = "Paris") -> ToolError:
    with pytest.raises(ToolError) as caught:
        await told(server, location)
    return caught.value


async def test_the_weather_is_asked_for_as_is_documented_and_told_with_a_word_on_how_to_tell_it(
    server: OpenMeteoServer,
) -> None:
    result = await current_weather(configured(server), location="  Paris , France")
    assert result.data == {
        "place": "Paris, Île-de-France, France",
        "observedAt": "2026-11-22T02:30:00.000Z",
        "temperatureCelsius": 7.5,
        "precipitationMm": 0.2,
        "windKmh": 18.4,
        "weatherCode": 61,
        "source": "Open-Meteo.com",
    }
    assert "person" in result.prompt
    assert "Paris" not in result.prompt
    (geo_path, geo), (met_path, met) = server.asked
    assert (geo_path, met_path) == (GEO, MET)
    assert geo == {"name": "Paris", "count": "100", "language": "en", "format": "json"}
    assert (met["latitude"], met["longitude"]) == ("48.85", "2.35")
    assert met["timeformat"] == "unixtime"
    assert met["current"].split(",")[0] == "temperature_2m"


APART = {
    "paris": "Paris, Île-de-France, France",
    "Paris, texas": "Paris, Texas, United States",
    "Paris, US": "Paris, Texas, United States",
    "Springfield": "Springfield, Missouri, United States",
    "Portland, Maine": "Portland, Maine, United States",
    "London, canada": "London, Ontario, Canada",
}


async def test_a_region_or_a_country_tells_places_of_one_name_apart(
    server: OpenMeteoServer,
) -> None:
    assert {location: (await told(server, location))["place"] for location in APART} == APART


@pytest.mark.parametrize("location", ["Nowhere", "Nowhere, US", "Paris, Mars", "Paris, Texas, US"])
async def test_a_place_that_is_not_known_is_refused(server: OpenMeteoServer, location: str) -> None:
    error = await failure(server, location)
    assert isinstance(error, ArgumentError)
    assert error.condition == "item-not-found"
    assert error.message == f"No place called '{location}' is known."
    assert "Paris, Texas" in error.hint


async def test_what_is_not_known_of_the_weather_is_null(server: OpenMeteoServer) -> None:
    current = server.forecast["current"]
    server.forecast["current"] = {
        "time": current["time"],
        "wind_speed_10m": None,
        "temperature_2m": "mild",
        "precipitation": 0.2,
    }
    weather = await told(server, "Paris")
    assert weather["windKmh"] is weather["temperatureCelsius"] is weather["weatherCode"] is None
    assert weather["precipitationMm"] == 0.2


async def test_what_nobody_could_see_in_a_name_is_written_out(server: OpenMeteoServer) -> None:
    server.places["results"] = [
        {**server.places["results"][0], "admin1": "\u202eall\u200b", "country": "F" * 999}
    ]
    weather = await told(server, "Paris")
    assert weather["place"] == f"Paris, \\u{{202E}}all\\u{{200B}}, {'F' * MAX_LOCATION}"


Change = Callable[[OpenMeteoServer], object]
WRONG: dict[str, Change] = {
    "a place that is none": lambda s: s.places["results"].append("Paris"),
    "places that are no list": lambda s: s.places.update(results="Paris"),
    "no latitude": lambda s: s.places["results"][0].pop("latitude"),
    "no current weather": lambda s: s.forecast.pop("current"),
    "a latitude that is no number": lambda s: s.places["results"][0].update(latitude="91"),
    "no time": lambda s: s.forecast["current"].pop("time"),
    "a time beyond all calendars": lambda s: s.forecast["current"].update(time=1e300),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
async def test_a_value_of_another_kind_than_documented_makes_a_bad_reply(
    server: OpenMeteoServer, change: Change
) -> None:
    change(server)
    error = await failure(server)
    assert error.condition == "undefined-condition"
    assert "cannot be used" in error.message
