"""The flags that say where workers are started, as the options of a launcher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from esper_ab.contracts.errors import UsageError
from esper_ab.settings.launcher import AskedLauncher, asked_launcher


def read_launcher_flags(options: Mapping[str, Any]) -> AskedLauncher:
    """Read the launcher flags; UsageError for an invalid label."""
    given_options = {key: options[key] for key in AskedLauncher.__struct_fields__ if options[key] not in (None, ())}
    if "ray_label" in given_options:
        given_options["ray_label"] = dict(map(_pair, given_options["ray_label"]))
    return asked_launcher(given_options, "the command line")


def _pair(text: str) -> tuple[str, str]:
    key, equals_sign, value = text.partition("=")
    if not (key and equals_sign):
        raise UsageError(f"--ray-label {text}: expected KEY=VALUE, as for `ray start --labels`")
    return key, value
