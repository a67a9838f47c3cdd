"""Survive a terminal that closes while a command that outlives its terminal is still being imported.

That takes a few tenths of a second, longer on a busy machine, before `live.console` takes over. This file imports
nothing but `signal`.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from types import FrameType

_OUTLIVE = ("launch", "resume")  # commands that call `outlive_terminal`
_heard: list[int] = []


def remember_hang_ups(words: Sequence[str]) -> None:
    """If `words` begin with a command that outlives its terminal, remember a SIGHUP instead of ending.

    A SIGHUP that is already ignored, as under nohup, stays ignored.
    """
    if words and words[0] in _OUTLIVE and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, _remember)


def hung_up() -> bool:
    """Whether a SIGHUP came before `outlive_terminal` took over."""
    return bool(_heard)


def _remember(number: int, frame: FrameType | None) -> None:
    _heard.append(number)
