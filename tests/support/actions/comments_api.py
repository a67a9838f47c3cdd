"""A server for the part of GitHub's API that concerns comments."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Api:
    """The part of GitHub's API that concerns comments; `refuses` is the status of all answers."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.calls: list[tuple[str, str]] = []
        self.tokens = set[str]()
        self.refuses = 0
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                _, _, query = self.path.partition("?")
                page = int(dict(part.split("=") for part in query.split("&"))["page"])
                self.answer(api.comments[100 * (page - 1) : 100 * page])

            def do_POST(self) -> None:
                api.comments.append({"id": len(api.comments), **self.received()})
                self.answer({"html_url": "https://github.com/new"})

            def do_PATCH(self) -> None:
                number = int(self.path.rpartition("/")[2])
                api.comments[number] |= self.received()
                self.answer({})

            def received(self) -> Any:
                return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

            def answer(self, content: Any) -> None:
                api.calls.append((self.command, self.path.partition("?")[0]))
                api.tokens.add(self.headers["Authorization"])
                self.send_response(api.refuses or 200)
                self.end_headers()
                self.wfile.write(json.dumps(content).encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def add(self, author: str, body: str) -> None:
        """Add a comment that somebody has written."""
        number = len(self.comments)
        self.comments.append({"id": number, "user": {"login": author}, "body": body, "html_url": f"c{number}"})
