"""A server that only reads: what a browser of this machine is given, and what anybody else is refused."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator

import pytest

from esper_ab.live.reading_room import Query, ReadingRoom, Served


def answer(path: str, query: Query) -> Served | None:
    return Served(body=f"{path} {query}".encode(), policy="default-src 'none'") if path in ("", "page") else None


@pytest.fixture
def room() -> Iterator[ReadingRoom]:
    with ReadingRoom(answer) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def ask(room: ReadingRoom, path: str, *, method: str = "GET", host: str = "") -> http.client.HTTPResponse:
    port = room.server_address[1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers={"Host": host or f"127.0.0.1:{port}"})
    return connection.getresponse()


def test_who_has_the_address_is_answered(room):
    found = ask(room, f"/{room.token}/page?experiment=a%2Fb")
    assert (found.status, found.read()) == (200, b"page {'experiment': ['a/b']}")
    assert found.headers["Content-Security-Policy"] == "default-src 'none'"
    assert found.headers["X-Content-Type-Options"] == "nosniff"
    assert found.headers["Referrer-Policy"] == "no-referrer"
    assert room.address.startswith("http://127.0.0.1:")
    assert ask(room, f"/{room.token}/page", method="HEAD").read() == b""


@pytest.mark.parametrize("path", ["/", "/page", "/wrong/page", "/{token}x/page", "/%2e%2e/{token}/"])
def test_without_its_token_nothing_is_told(room, path):
    found = ask(room, path.format(token=room.token))
    assert found.status == 403
    assert room.token.encode() not in found.read()


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "0.0.0.0:{port}", "127.0.0.1:1"])
def test_another_host_is_refused_though_it_has_the_token(room, host):
    found = ask(room, f"/{room.token}/page", host=host.format(port=room.server_address[1]))
    assert found.status == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_can_be_asked_for_but_reading(room, method):
    assert ask(room, f"/{room.token}/page", method=method).status == 501


def test_what_there_is_not_is_not_found(room):
    assert ask(room, f"/{room.token}/other").status == 404
