"""Make the launcher that was asked for, by its name in the catalogue `esper_ab/launchers`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from esper_ab.contracts import catalog
from esper_ab.contracts.errors import Setting, UsageError
from esper_ab.launchers import Launcher, Transport
from esper_ab.settings.launcher import DEFAULT as DEFAULT_LAUNCHER
from esper_ab.settings.launcher import AskedLauncher

LAUNCHERS = "esper_ab.launchers"


def launcher_as_asked(asked: AskedLauncher) -> Launcher:
    """Make the launcher that was asked for; UsageError as `make_launcher`."""
    launcher = make_launcher(asked.launcher or DEFAULT_LAUNCHER, asked.transport, **asked.own)
    launcher.flags = asked.words
    return launcher


def make_launcher(name: str, transport: Transport | None = None, **own: Any) -> Launcher:
    """Make the launcher `name`, whose workers talk over `transport`.

    None is what the launcher takes by itself. `own`: arguments that only some launchers have. UsageError with the
    catalogue for another name, and for what this launcher does not have.
    """
    make = launcher_factory(name, own)
    return make(**own) if transport is None else make(transport=transport, **own)


def launcher_factory(name: str, own: Iterable[str]) -> Callable[..., Launcher]:
    """Find what makes the launcher `name` with the arguments `own`; UsageError as `make_launcher`."""
    if name not in catalog.names(LAUNCHERS):
        raise UsageError(f"launcher {name!r}: no such launcher; there are {', '.join(catalog.names(LAUNCHERS))}")
    make: Callable[..., Launcher] = catalog.entry(LAUNCHERS, name, "LAUNCHER")
    for key in own:
        if key not in inspect.signature(make).parameters:
            raise UsageError(f"launcher {name} has no ", Setting(key))
    return make
