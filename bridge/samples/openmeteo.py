"""Asks Open-Meteo for places and their weather, and reads its replies.

Sources: https://open-meteo.com/en/docs/geocoding-api and https://open-meteo.com/en/docs. The type
of each value is checked; another one than documented is a bad reply.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from bridge.samples.web import Service
from bridge.toolkit import ArgumentError, Configuration, visible

MAX_SECONDS = 10.0
"""For each of the two questions; together they stay within the minute that clients allow."""

MAX_PLACES = 20
"""Places that are asked for; the most populous come first."""

MAX_NAMED = 8
"""Places that an error names."""

FAR_LARGER = 10
"""The largest place of a name is meant if it has so many times the people of the next one. Paris
and London have; no Springfield has more than twice the people of the next."""

CURRENT = (
    "temperature_2m",
    "apparent_temperature",
    "relative_humidity_2m",
    "precipitation",
    "weather_code",
    "wind_speed_10m",
    "wind_direction_10m",
)
"""What is asked of the present; in °C, %, mm, WMO code, km/h and degrees."""

CONDITIONS = {
    0: "clear sky",
    1: "mainly clear",
    2: "partly cloudy",
    3: "overcast",
    45: "fog",
    48: "fog that leaves rime",
    51: "light drizzle",
    53: "drizzle",
    55: "dense drizzle",
    56: "light freezing drizzle",
    57: "freezing drizzle",
    61: "light rain",
    63: "rain",
    65: "heavy rain",
    66: "light freezing rain",
    67: "freezing rain",
    71: "light snowfall",
    73: "snowfall",
    75: "heavy snowfall",
    77: "snow grains",
    80: "light showers",
    81: "showers",
    82: "violent showers",
    85: "light snow showers",
    86: "heavy snow showers",
    95: "thunderstorm",
    96: "thunderstorm with light hail",
    99: "thunderstorm with heavy hail",
}
"""The codes of WMO table 4677 that it uses, in words."""


@dataclass(frozen=True)
class Place:
    """A place in Open-Meteo's geocoding."""

    name: str
    regions: tuple[str, ...]
    """What it lies in, the smallest first, the country's name and code last."""
    latitude: float
    longitude: float
    population: int
    timezone: str

    @property
    def label(self) -> str:
        """Name, region and country, which tell it from places of the same name."""
        *within, country, code = self.regions
        return ", ".join(one for one in (self.name, *within[-1:], country or code) if one)


@dataclass(frozen=True)
class CurrentWeather:
    """The present weather of one place; null where it is not known."""

    place: Annotated[str, "name, region and country of the place that was found"]
    latitude: float
    longitude: float
    timezone: Annotated[str, "of the place"]
    observed_at: str
    conditions: Annotated[str, "in words"]
    temperature_celsius: float
    feels_like_celsius: float | None
    humidity_percent: float | None
    precipitation_mm: Annotated[float | None, "within the last quarter of an hour"]
    wind_kmh: float | None
    wind_from_degrees: Annotated[float | None, "where it comes from: 0 north, 90 east"]
    source: str = "Open-Meteo.com"


class OpenMeteo:
    """The geocoding and the forecast of Open-Meteo, at the addresses in the settings."""

    def __init__(self, configuration: Configuration, seconds: float = MAX_SECONDS) -> None:
        self._geocoding = Service(
            "Open-Meteo's geocoding", configuration.geocoding_url, "OPEN_METEO_GEOCODING_URL"
        )
        self._forecast = Service(
            "Open-Meteo's forecast", configuration.forecast_url, "OPEN_METEO_FORECAST_URL"
        )
        self._seconds = seconds

    async def places(self, name: str) -> list[Place]:
        """Return the places that a name without region may mean, the most populous first."""
        query = {"name": name, "count": str(MAX_PLACES), "language": "en", "format": "json"}
        reply = await self._geocoding.ask("search", query, seconds=self._seconds)
        # Without a match the member is left out.
        found = reply.get("results", []) if isinstance(reply, dict) else None
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise self._geocoding.bad_reply("`results` is no list of places")
        return [self._place(one) for one in found]

    async def weather(self, place: Place) -> CurrentWeather:
        """Return the present weather of a place."""
        query = {
            "latitude": str(place.latitude),
            "longitude": str(place.longitude),
            "current": ",".join(CURRENT),
            "temperature_unit": "celsius",
            "wind_speed_unit": "kmh",
            "precipitation_unit": "mm",
            "timeformat": "unixtime",
        }
        reply = await self._forecast.ask("forecast", query, seconds=self._seconds)
        current = reply.get("current") if isinstance(reply, dict) else None
        if not isinstance(current, dict):
            raise self._forecast.bad_reply("`current` is no object")
        values = {name: self._number(self._forecast, current, name) for name in ("time", *CURRENT)}
        at, temperature, code = values["time"], values["temperature_2m"], values["weather_code"]
        if at is None or temperature is None or not 0 <= at < 1e11:
            raise self._forecast.bad_reply("time or temperature is missing")
        return CurrentWeather(
            place=place.label,
            latitude=place.latitude,
            longitude=place.longitude,
            timezone=place.timezone,
            observed_at=f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S}.000Z",
            conditions="unknown" if code is None else CONDITIONS.get(int(code), "unknown"),
            temperature_celsius=temperature,
            feels_like_celsius=values["apparent_temperature"],
            humidity_percent=values["relative_humidity_2m"],
            precipitation_mm=values["precipitation"],
            wind_kmh=values["wind_speed_10m"],
            wind_from_degrees=values["wind_direction_10m"],
        )

    def _place(self, one: Mapping[str, object]) -> Place:
        latitude, longitude, population = (
            self._number(self._geocoding, one, name)
            for name in ("latitude", "longitude", "population")
        )
        name, timezone, *regions = (
            self._text(one, key)
            for key in (
                "name", "timezone", "admin4", "admin3", "admin2", "admin1", "country",
                "country_code",
            )
        )  # fmt: skip
        if latitude is None or longitude is None or not name:
            raise self._geocoding.bad_reply("a place lacks its name or its coordinates")
        if not (abs(latitude) <= 90 and abs(longitude) <= 180):
            raise self._geocoding.bad_reply("a place is nowhere on earth")
        return Place(name, tuple(regions), latitude, longitude, int(population or 0), timezone)

    def _text(self, one: Mapping[str, object], key: str) -> str:
        value = one.get(key)
        if value is not None and not isinstance(value, str):
            raise self._geocoding.bad_reply(f"`{key}` is no string")
        return visible(value or "")

    def _number(self, service: Service, one: Mapping[str, object], key: str) -> float | None:
        value = one.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise service.bad_reply(f"`{key}` is no number")
        # JSON has integers of any size, and writes infinity as 1e999.
        if not abs(value) <= sys.float_info.max:
            raise service.bad_reply(f"`{key}` is no number")
        return value


def choose_place(location: str, places: list[Place]) -> Place:
    """Return the place that `location` (`name[, region][, country]`) means.

    Of several of the same name, one that is `FAR_LARGER` than the next. Raises `ArgumentError` if
    no place fits, or several do.
    """
    _, *qualifiers = parts(location)
    fitting = [one for one in places if _lies_in(one, qualifiers)]
    name = parts(location)[0].casefold()
    # The service finds names in every language and answers with the English one.
    fitting = [one for one in fitting if one.name.casefold() == name] or fitting
    distinct = {one.label: one for one in sorted(fitting, key=lambda one: one.population)}
    candidates = sorted(distinct.values(), key=lambda one: one.population, reverse=True)
    if not candidates:
        raise _unknown(location, places)
    first, *others = candidates
    if others and first.population < max(1, FAR_LARGER * others[0].population):
        raise _ambiguous(location, candidates)
    return first


def parts(location: str) -> list[str]:
    """Return the parts between the commas; the first one is the name."""
    return [part.strip() for part in location.split(",")]


def _lies_in(place: Place, qualifiers: list[str]) -> bool:
    regions = {one.casefold() for one in place.regions}
    return all(one.casefold() in regions for one in qualifiers if one)


def _unknown(location: str, places: list[Place]) -> ArgumentError:
    near = "; ".join(one.label for one in places[:MAX_NAMED])
    return ArgumentError(
        f"No place called {visible(location)!r} is known.",
        condition="item-not-found",
        hint=f"There is: {near}."
        if near
        else "Give the name of a town, with region or country after a comma: Paris, Texas.",
    )


def _ambiguous(location: str, candidates: list[Place]) -> ArgumentError:
    named = "; ".join(one.label for one in candidates[:MAX_NAMED])
    further = len(candidates) - MAX_NAMED
    more = f"; and {further} more" if further > 0 else ""
    return ArgumentError(
        f"{visible(location)!r} may mean several places: {named}{more}.",
        condition="not-acceptable",
        hint="Say which, with region or country after a comma, as they stand here; ask the person "
        "if you do not know.",
    )
