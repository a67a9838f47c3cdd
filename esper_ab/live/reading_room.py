"""A server of pages that only reads: on 127.0.0.1, behind a token in the address, for browsers of this machine.

What a web page elsewhere could make a browser ask for is refused: another Host (rebinding of names), a path without the
token, any method but GET and HEAD. Nothing here writes, and no path of a file comes from an address.
"""

from __future__ import annotations

import hmac
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from esper_ab.contracts.visible import visible_line

_ADDRESS = "127.0.0.1"
_IDLE_S = 10.0  # a client that says nothing for so long is dropped
Query = dict[str, list[str]]


@dataclass(frozen=True, kw_only=True)
class Served:
    """One answer."""

    body: bytes
    kind: str = "text/html; charset=utf-8"
    policy: str  # Content-Security-Policy
    status: int = 200


Answer = Callable[[str, Query], Served | None]  # (path below the token, query) -> an answer; None: there is none


class ReadingRoom(ThreadingHTTPServer):
    """Serves what `answer` gives until `shutdown`; port 0 takes any free one."""

    daemon_threads = True

    def __init__(self, answer: Answer, port: int = 0) -> None:
        self.answer, self.token = answer, secrets.token_urlsafe(24)
        super().__init__((_ADDRESS, port), _Reader)

    @property
    def address(self) -> str:
        """The address to open, token included."""
        return f"http://{_ADDRESS}:{self.server_address[1]}/{self.token}/"

    @property
    def hosts(self) -> frozenset[str]:
        """What a Host header may say."""
        port = self.server_address[1]
        return frozenset({f"{_ADDRESS}:{port}", f"localhost:{port}"})

    def handle_error(self, request: object, client_address: object) -> None:
        """Say a mistake in one line; that a browser went away before it had its answer is none."""
        error = sys.exception()
        if not isinstance(error, ConnectionError):
            what = visible_line(f"{type(error).__name__}: {error}")
            sys.stderr.write(f"error: a page could not be shown: {what}\n")


class _Reader(BaseHTTPRequestHandler):
    server: ReadingRoom
    timeout = _IDLE_S
    server_version, sys_version = "esper-ab", ""

    def do_GET(self) -> None:
        """Answer, or refuse."""
        try:
            asked = urlsplit(self.path)
        except ValueError:
            return self._refuse(400, "what was asked for is no address")
        token, _, path = asked.path.removeprefix("/").partition("/")
        if self.headers.get("Host", "").lower() not in self.server.hosts:
            self._refuse(421, "this address is served to browsers of this machine only")
        elif not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(403, "the address lacks its token: open the one that the terminal shows")
        elif (found := self.server.answer(path, parse_qs(asked.query))) is None:
            self._refuse(404, "there is no such page")
        else:
            self._send(found)

    do_HEAD = do_GET

    def _refuse(self, status: int, why: str) -> None:
        self._send(Served(body=f"{why}\n".encode(), kind="text/plain; charset=utf-8", policy="default-src 'none'",
                          status=status))  # fmt: skip

    def _send(self, found: Served) -> None:
        self.send_response(found.status)
        for name, value in (
            ("Content-Type", found.kind), ("Content-Length", str(len(found.body))),
            ("Content-Security-Policy", found.policy), ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"), ("Cache-Control", "no-store"), ("X-Frame-Options", "DENY"),
        ):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(found.body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: a log would show the token."""
