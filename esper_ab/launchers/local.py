"""Launcher of workers as local processes, one for each lane."""

from __future__ import annotations

from esper_ab.launchers import LauncherFactory
from esper_ab.launchers._processes import ProcessLauncher


class LocalLauncher(ProcessLauncher):
    """Starts each worker as the start process makes it."""

    name = "local"


LAUNCHER: LauncherFactory = LocalLauncher
