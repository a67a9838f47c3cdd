"""Settings in a text of another process: marked there, and spelled by the process that shows the text.

A worker does not know whether the command line or the Python API has asked.
"""

from __future__ import annotations

import re

from esper_ab.contracts.errors import ByDoor, SettingName, as_flag

_MARKED = re.compile(r"⟦([a-z_][\w.]*)(?:=([^⟧]*))?⟧")


def marked(setting: SettingName | ByDoor) -> str:
    """Return the setting as `parts_of` finds it in a text."""
    if isinstance(setting, ByDoor):
        return setting.in_shell
    return f"⟦{setting.key}⟧" if setting.value is None else f"⟦{setting.key}={setting.value}⟧"


def parts_of(text: str) -> list[str | SettingName]:
    """Split a text into plain texts and the settings that are marked in it, for a UsageError."""
    parts: list[str | SettingName] = []
    end = 0
    for mark in _MARKED.finditer(text):
        parts += [text[end : mark.start()], SettingName(mark[1], mark[2])]
        end = mark.end()
    return [*parts, text[end:]]


def in_every_door(setting: SettingName) -> str:
    """Return the setting for a text that is stored, because people read it in the shell and in Python."""
    return f"{as_flag(setting)} (in Python {setting.key})"
