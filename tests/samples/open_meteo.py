"""Open-Meteo on a loopback port, with a few places."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.llm.model_service import Asked, ModelService, Turn, model_service, replying

PLACES: list[dict[str, Any]] = [
    {
        "id": id_,
        "name": name,
        "latitude": latitude,
        "longitude": longitude,
        "feature_code": "PPL",
        "country_code": code,
        "timezone": "Etc/UTC",
        "population": population,
        "country": country,
        "admin1": region,
    }
    for id_, (name, latitude, longitude, code, population, country, region) in enumerate(
        [
            ("Paris", 48.85, 2.35, "FR", 2138551, "France", "Île-de-France"),
            ("Paris", 33.66, -95.55, "US", 24782, "United States", "Texas"),
            ("Springfield", 37.21, -93.29, "US", 166810, "United States", "Missouri"),
            ("Springfield", 42.10, -72.58, "US", 154341, "United States", "Massachusetts"),
            ("Springfield Gardens", 40.66, -73.76, "US", 900, "United States", "New York"),
            ("Springfield", 39.80, -89.64, "US", 114394, "United States", "Illinois"),
            ("Portland", 45.52, -122.68, "US", 652503, "United States", "Oregon"),
            ("Portland", 43.66, -70.26, "US", 68408, "United States", "Maine"),
            ("London", 51.51, -0.13, "GB", 8961989, "United Kingdom", "England"),
            ("London", 42.98, -81.23, "CA", 422324, "Canada", "Ontario"),
        ]
    )
]

FORECAST: dict[str, Any] = {
    "latitude": 48.86,
    "longitude": 2.36,
    "utc_offset_seconds": 0,
    "current_units": {"time": "unixtime", "temperature_2m": "°C"},
    "current": {
        "time": 1795314600,
        "interval": 900,
        "temperature_2m": 7.5,
        "apparent_temperature": 4.1,
        "relative_humidity_2m": 81,
        "precipitation": 0.2,
        "weather_code": 61,
        "wind_speed_10m": 18.4,
        "wind_direction_10m": 240,
    },
}

GEO, MET = "/geo/search", "/met/forecast"
"""The paths of the two services."""


class OpenMeteoServer:
    """Answers geocoding and forecasts; knows what was asked."""

    def __init__(self) -> None:
        self.places: Any = {"results": deepcopy(PLACES), "generationtime_ms": 0.5}
        self.forecast: Any = deepcopy(FORECAST)
        self.misbehaves: dict[str, Turn] = {}
        """By path, instead of an answer."""
        self.service: ModelService

    @property
    def environment(self) -> dict[str, str]:
        """What leads the bridge here."""
        root = self.service.base_url.removesuffix("/v1")
        return {
            "OPEN_METEO_GEOCODING_URL": root + GEO.removesuffix("/search"),
            "OPEN_METEO_FORECAST_URL": root + MET.removesuffix("/forecast"),
            "NO_PROXY": "127.0.0.1",
        }

    @property
    def asked(self) -> list[tuple[str, dict[str, str]]]:
        return [_target(each) for each in self.service.asked]

    async def answer(
        self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        path, query = _target(asked)
        answer = self._named(**query) if path == GEO else self.forecast
        await self.misbehaves.get(path, replying(200, answer))(asked, reader, writer)

    def _named(self, name: str, **others: str) -> Any:
        del others
        if not isinstance(self.places, dict) or not isinstance(self.places.get("results"), list):
            return self.places
        places = []
        for each in self.places["results"]:
            # Names that begin so are found too.
            called = each["name"] if isinstance(each, dict) else name
            if called.casefold().startswith(name.casefold()):
                places.append(each)
        # As the real one does it: the member is left out.
        return {**self.places, "results": places} if places else {"generationtime_ms": 0.5}


def _target(asked: Asked) -> tuple[str, dict[str, str]]:
    target = urlsplit(asked.path)
    return target.path, dict(parse_qsl(target.query))


@asynccontextmanager
async def running_open_meteo() -> AsyncIterator[OpenMeteoServer]:
    server = OpenMeteoServer()
    async with model_service(server.answer) as server.service:
        yield server
