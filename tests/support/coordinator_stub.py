"""The other end of one real worker loop, in this process: a hub, a thread that serves, and what it reported."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import TracebackType

from esper_ab.contracts.messages import Message, Progress, Stop
from esper_ab.control.hub import Hub, Received
from support.orders import order
from workers.process.link import Link
from workers.process.loop import serve

PATIENCE_S = 60.0


class Conversation:
    """A worker thread on `experiment_dir`.

    Use as a context: at its end the worker has left and its sockets are closed.
    """

    def __init__(self, experiment_dir: Path) -> None:
        self._hub = Hub()
        self._order = order(endpoint=self._hub.endpoint, experiment_dir=str(experiment_dir), log_file="logs/w00.log")
        self._hub.admit(self._order.identity)
        self._unread: list[Message] = []
        self.signs: list[Progress] = []
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        link = Link(self._order.endpoint, self._order.identity)
        try:
            serve(link, self._order, lambda experiment_dir, log_file: None)
        finally:
            link.close(finished=True)

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.say(Stop(reason="the test is over"))
        self._thread.join(PATIENCE_S)
        self._hub.close()
        assert not self._thread.is_alive()

    def say(self, message: Message) -> None:
        """To the worker, as soon as its socket is there."""
        deadline = time.monotonic() + PATIENCE_S
        while not self._hub.send("w00/1", message) and time.monotonic() < deadline:
            self._hub.poll(0.02)

    def hear(self, kind: type, *, phase: str = "") -> Message:
        """The next message of `kind` (and `phase`); other signs of life are kept in `signs`, other reports fail."""
        deadline = time.monotonic() + PATIENCE_S
        waiting = self._unread
        while time.monotonic() < deadline:
            waiting.extend(heard.message for heard in self._hub.poll(0.1) if isinstance(heard, Received))
            while waiting:
                message = waiting.pop(0)
                if isinstance(message, kind) and phase in ("", getattr(message, "phase", "")):
                    return message
                assert isinstance(message, Progress), message
                self.signs.append(message)
        raise AssertionError(f"no {kind.__name__} {phase}")
