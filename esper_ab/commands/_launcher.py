"""The launcher that a command's flags ask for."""

from __future__ import annotations

from typing import Any

from esper_ab.commands._options import LAUNCHER_FLAGS
from esper_ab.contracts.errors import UsageError
from esper_ab.execution.launching import launcher_as_asked
from esper_ab.launchers import Launcher
from esper_ab.settings.launcher import UNSAID, AskedLauncher, asked_launcher


def launcher_of(options: dict[str, Any], file: AskedLauncher = UNSAID) -> Launcher:
    """The launcher that is asked for; UsageError for what it does not have, and as `read_launcher`."""
    return launcher_as_asked(read_launcher(options, file))


def read_launcher(options: dict[str, Any], file: AskedLauncher) -> AskedLauncher:
    """What the flags say, and the file of `--config` where they say nothing; UsageError for a label that is none."""
    return read_launcher_flags(options).over(file)


def read_launcher_flags(options: dict[str, Any]) -> AskedLauncher:
    """What the flags say; UsageError for a label that is none."""
    given = {key: options[key] for key in LAUNCHER_FLAGS if options[key] not in (None, ())}
    if "ray_label" in given:
        given["ray_label"] = dict(map(_pair, given["ray_label"]))
    return asked_launcher(given, "the command line")


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise UsageError(f"--ray-label {text}: KEY=VALUE is needed, as `ray start --labels` takes it")
    return key, value
