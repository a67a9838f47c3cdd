"""The launcher that a command's flags ask for, and the same flags again for a command that goes on by itself."""

from __future__ import annotations

from typing import Any

from esper_ab.commands._options import LAUNCHER_FLAGS
from esper_ab.contracts.errors import UsageError
from esper_ab.execution.experiment import make_launcher
from esper_ab.launchers import Launcher


def launcher_of(options: dict[str, Any]) -> Launcher:
    """UsageError for what the launcher does not have, and for a label that is none."""
    return make_launcher(options["launcher"], options["transport"], options["files"], **_own(options))


def _own(options: dict[str, Any]) -> dict[str, Any]:
    """Arguments of launchers, by the names of the flags that were given."""
    own = {key: options[key] for key in LAUNCHER_FLAGS[3:] if options[key] not in (None, ())}
    if "ray_label" in own:
        own["ray_label"] = dict(map(_pair, own["ray_label"]))
    return own


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise UsageError(f"--ray-label {text}: KEY=VALUE is needed, as `ray start --labels` takes it")
    return key, value


def launcher_words(options: dict[str, Any]) -> list[str]:
    """The flags as they would be typed."""
    words: list[str] = []
    for key in LAUNCHER_FLAGS:
        given = options[key]
        for value in given if isinstance(given, tuple) else () if given is None else (given,):
            words += [f"--{key.replace('_', '-')}", str(value)]
    return words
