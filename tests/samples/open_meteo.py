"""Open-Meteo on a loopback port, with a few places, and with every way to misbehave."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

Misbehaviour: TypeAlias = Callable[["OpenMeteoServer", asyncio.StreamWriter], Any]
"""Answers in the place of the server."""

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
            ("Munich", 48.14, 11.58, "DE", 1260391, "Germany", "Bavaria"),
            ("München", 50.88, 11.27, "DE", 0, "Germany", "Thuringia"),
            ("München", 51.50, 13.44, "DE", 0, "Germany", "Brandenburg"),
            ("Münchenbernsdorf", 50.82, 11.93, "DE", 3200, "Germany", "Thuringia"),
            ("Dover", 39.16, -75.52, "US", 37366, "United States", "Delaware"),
            ("Washington", 38.90, -77.04, "US", 689545, "United States", "Washington, D.C."),
        ]
    )
]
IN_GERMAN = {"Munich": "München", "Germany": "Deutschland", "Bavaria": "Bayern"}
"""What is called otherwise in German; the service finds a place by its names in one language."""

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


DRIP_SECONDS = 0.05
"""Between two bytes of an answer that takes its time."""


class OpenMeteoServer:
    """Answers geocoding under `/geo/search` and forecasts under `/met/forecast`."""

    def __init__(self, port: int) -> None:
        root = f"http://127.0.0.1:{port}"
        self.geocoding_url, self.forecast_url = f"{root}/geo", f"{root}/met"
        self.places: Any = {"results": deepcopy(PLACES), "generationtime_ms": 0.5}
        self.forecast: Any = deepcopy(FORECAST)
        self.misbehaves: dict[str, Misbehaviour] = {}
        """By path, instead of an answer."""
        self.asked: list[tuple[str, dict[str, str]]] = []
        """Path and query of each request."""
        self.headers: list[str] = []
        self.reached = asyncio.Event()
        """Set with the first request."""
        self.left = asyncio.Event()
        """Set once a client went away before it had its answer."""

    @property
    def environment(self) -> dict[str, str]:
        """What leads the bridge here."""
        return {
            "OPEN_METEO_GEOCODING_URL": self.geocoding_url,
            "OPEN_METEO_FORECAST_URL": self.forecast_url,
            "NO_PROXY": "127.0.0.1",
        }

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.headers.append(head)
            target = urlsplit(head.split()[1])
            query = {name: one[0] for name, one in parse_qs(target.query).items()}
            self.asked.append((target.path, query))
            self.reached.set()
            if misbehave := self.misbehaves.get(target.path):
                if (waiting := misbehave(self, writer)) is not None:
                    await waiting
                    await reader.read()
                    self.left.set()
            elif target.path == "/geo/search":
                writer.write(response(json.dumps(self._named(query["name"], query["language"]))))
            else:
                writer.write(response(json.dumps(self.forecast)))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        finally:
            writer.close()

    def _named(self, name: str, language: str) -> Any:
        if not isinstance(self.places, dict) or not isinstance(self.places.get("results"), list):
            return self.places
        words = IN_GERMAN if language == "de" else {}
        found = []
        for one in self.places["results"]:
            if isinstance(one, dict) and isinstance(one.get("name"), str):
                called = words.get(one["name"], one["name"])
                # Names that begin so are found too.
                if called and not called.casefold().startswith(name.casefold()):
                    continue
                one = {
                    key: words.get(value, value) if isinstance(value, str) else value
                    for key, value in one.items()
                }
            found.append(one)
        # As the real one does it: the member is left out.
        return {**self.places, "results": found} if found else {"generationtime_ms": 0.5}


def response(body: str | bytes, status: str = "200 OK", *headers: str) -> bytes:
    """An HTTP response."""
    data = body if isinstance(body, bytes) else body.encode()
    lines = [
        f"HTTP/1.1 {status}",
        "Content-Type: application/json",
        f"Content-Length: {len(data)}",
        "Connection: close",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def answers(body: str | bytes, status: str = "200 OK", *headers: str) -> Misbehaviour:
    """Answer so, whatever is asked."""
    return lambda _, writer: writer.write(response(body, status, *headers))


def hangs_up(_: OpenMeteoServer, writer: asyncio.StreamWriter) -> None:
    """Close the connection without a word."""
    writer.close()


def hangs_up_half_way(_: OpenMeteoServer, writer: asyncio.StreamWriter) -> None:
    """Close it within the body."""
    writer.write(response(json.dumps(FORECAST))[:-40])


async def _nothing() -> None: ...


def stays_silent(_: OpenMeteoServer, writer: asyncio.StreamWriter) -> Any:
    """Say nothing until the client leaves."""
    del writer
    return _nothing()


def stops_half_way(_: OpenMeteoServer, writer: asyncio.StreamWriter) -> Any:
    """Begin an answer, and say no more until the client leaves."""
    writer.write(response(json.dumps(FORECAST))[:-40])
    return writer.drain()


async def _drip(writer: asyncio.StreamWriter) -> None:
    body = json.dumps(FORECAST)
    writer.write(response(body)[: -len(body.encode())])
    for byte in body.encode():
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(DRIP_SECONDS)


def drips(_: OpenMeteoServer, writer: asyncio.StreamWriter) -> Any:
    """Answer a byte at a time: never silent for long, and never done."""
    return _drip(writer)


@asynccontextmanager
async def running_open_meteo() -> AsyncIterator[OpenMeteoServer]:
    """Run one on a free port."""
    served: list[OpenMeteoServer] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await served[0].serve(reader, writer)

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    served.append(OpenMeteoServer(listener.sockets[0].getsockname()[1]))
    try:
        yield served[0]
    finally:
        listener.close()
        await listener.wait_closed()
