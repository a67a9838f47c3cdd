"""A server that only reads: what a browser of this machine is given, and what anybody else is refused."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from esper_ab.live.reading_room import Answer, Query, ReadingRoom, Served


def answer(path: str, query: Query) -> Served | None:
    if path == "mistaken":
        raise ValueError("a mistake\nof ours")
    return Served(body=f"{path} {query}".encode(), policy="default-src 'none'") if path in ("", "page") else None


@pytest.fixture
def room() -> Iterator[ReadingRoom]:
    yield from open_room(answer)


def open_room(told: Answer) -> Iterator[ReadingRoom]:
    with ReadingRoom(told) as made:
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


def test_what_is_no_address_is_a_bad_request_and_nothing_is_printed(room, capsys):
    with socket.create_connection(room.server_address, timeout=10) as asking:
        asking.sendall(b"GET http://[ HTTP/1.1\r\nHost: any\r\n\r\n")
        assert asking.makefile("rb").readline().startswith(b"HTTP/1.0 400 ")
    assert capsys.readouterr().err == ""


class Left:
    """Answers with a long page, for which the client does not stay."""

    def __init__(self) -> None:
        self.asked, self.gone = threading.Event(), threading.Event()
        self.thread: threading.Thread | None = None

    def answer(self, path: str, query: Query) -> Served | None:
        self.thread = threading.current_thread()
        self.asked.set()
        self.gone.wait(10)
        return Served(body=bytes(64 << 20), policy="default-src 'none'")


def test_a_browser_that_closes_its_tab_is_no_error(capsys):
    left = Left()
    for room in open_room(left.answer):
        asking = socket.create_connection(room.server_address, timeout=10)
        host = f"127.0.0.1:{room.server_address[1]}"
        asking.sendall(f"GET /{room.token}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert left.asked.wait(10)
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # it is closed by a reset
        asking.close()
        left.gone.set()
        assert left.thread is not None
        left.thread.join(10)
        assert not left.thread.is_alive()
    assert capsys.readouterr().err == ""


def test_a_mistake_is_one_line_and_the_next_is_answered(room, capsys):
    with pytest.raises(http.client.RemoteDisconnected):
        ask(room, f"/{room.token}/mistaken")
    assert ask(room, f"/{room.token}/page").status == 200
    assert capsys.readouterr().err == "error: a page could not be shown: ValueError: a mistake\\nof ours\n"
