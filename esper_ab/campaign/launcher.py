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


def make_launcher(asked_launcher: AskedLauncher) -> Launcher:
    """Create the requested launcher; for options that are not given, the launcher's own defaults apply.

    Raises UsageError for an unknown launcher, naming the known launchers, and for an option that the launcher does not
    have.
    """
    own_options = asked_launcher.own
    make = launcher_factory(asked_launcher.launcher or DEFAULT_LAUNCHER, own_options)
    launcher = (
        make(**own_options)
        if asked_launcher.transport is None
        else make(transport=asked_launcher.transport, **own_options)
    )
    launcher.flags = asked_launcher.words
    return launcher


def launcher_factory(name: str, own_options: Iterable[str]) -> Callable[..., Launcher]:
    """Return the factory of the launcher `name`; UsageError if the launcher does not accept the arguments
    `own_options`.
    """
    if name not in catalog.names(LAUNCHERS):
        raise UsageError(f"launcher {name!r}: no such launcher; choose from {', '.join(catalog.names(LAUNCHERS))}")
    make: Callable[..., Launcher] = catalog.entry(LAUNCHERS, name, "LAUNCHER")
    for key in own_options:
        if key not in inspect.signature(make).parameters:
            raise UsageError(f"launcher {name} does not support ", SettingName(key))
    return make
