"""The flags that say where workers are started, as the options of a launcher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from esper_ab.contracts.errors import UsageError
from esper_ab.settings.launcher import AskedLauncher, asked_launcher


def read_launcher_flags(options: Mapping[str, Any]) -> AskedLauncher:
    """Read the launcher flags; UsageError for an invalid label."""
    given = {key: options[key] for key in AskedLauncher.__struct_fields__ if options[key] not in (None, ())}
    if "ray_label" in given:
        given["ray_label"] = dict(map(_pair, given["ray_label"]))
    return asked_launcher(given, "the command line")


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise UsageError(f"--ray-label {text}: expected KEY=VALUE, as for `ray start --labels`")
    return key, value
