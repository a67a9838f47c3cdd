"""Create the requested launcher from the catalogue `esper_ab/launchers`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable

from esper_ab.contracts import catalog
from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.launchers import Launcher
from esper_ab.settings.launcher import DEFAULT as DEFAULT_LAUNCHER
from esper_ab.settings.launcher import AskedLauncher

LAUNCHERS = "esper_ab.launchers"


def make_launcher(asked: AskedLauncher) -> Launcher:
    """Create the requested launcher; for options that are not given, the launcher's own defaults apply.

    Raises UsageError for an unknown launcher, naming the known launchers, and for an option that the launcher does not
    have.
    """
    own = asked.own
    make = launcher_factory(asked.launcher or DEFAULT_LAUNCHER, own)
    launcher = make(**own) if asked.transport is None else make(transport=asked.transport, **own)
    launcher.flags = asked.words
    return launcher


def launcher_factory(name: str, own: Iterable[str]) -> Callable[..., Launcher]:
    """Return the factory of the launcher `name`; UsageError if the launcher does not accept the arguments `own`."""
    if name not in catalog.names(LAUNCHERS):
        raise UsageError(f"launcher {name!r}: no such launcher; choose from {', '.join(catalog.names(LAUNCHERS))}")
    make: Callable[..., Launcher] = catalog.entry(LAUNCHERS, name, "LAUNCHER")
    for key in own:
        if key not in inspect.signature(make).parameters:
            raise UsageError(f"launcher {name} does not support ", SettingName(key))
    return make
