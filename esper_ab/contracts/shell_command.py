"""Command lines suggested to a user, quoted so that a shell reads them back unchanged.

Every text in these packages, and so every stored one (plans, reports, journals, JSON), says `esper-ab COMMAND`,
because others read it later, elsewhere; no digest depends on how a command was started. Only text for the screen is
translated: where `esper-ab` is not on PATH, it says `python -m esper_ab COMMAND`, or the path of `esper-ab` that was
typed.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

_PROGRAM = "esper-ab"
_COMMAND = re.compile(rf"(?<![\w./=-]){_PROGRAM} (?=[a-z\[-])")  # not the end of a path


def shell_command(command: str, *arguments: str | Path) -> str:
    """Return `esper-ab COMMAND ARGUMENT …`; arguments with spaces or shell characters are quoted."""
    return shlex.join([_PROGRAM, command, *map(str, arguments)])


def typeable(text: str) -> str:
    """Return `text` for the screen, with the program of every command in it as the user of this process can type it."""
    if not _COMMAND.search(text):
        return text
    program = program_here()
    return _COMMAND.sub(lambda _: f"{program} ", text)


def program_here() -> str:
    """Return what starts this installation's program in the user's shell, quoted for it."""
    import shutil  # imported here, because most calls print no command

    program_path = shutil.which(_PROGRAM)
    if program_path is not None and Path(program_path).resolve().parent in _script_folders():
        return _PROGRAM
    if Path(sys.argv[0]).name == _PROGRAM:  # started by its path, as in .venv/bin/esper-ab
        return shlex.quote(sys.argv[0])
    interpreter = sys.orig_argv[0] if sys.orig_argv else sys.executable
    return f"{shlex.quote(interpreter)} -m esper_ab"


def _script_folders() -> tuple[Path, ...]:
    """Return where pip puts the programs of this interpreter: its own folder and the user's."""
    import sysconfig  # imported here, because most calls print no command

    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    return tuple(Path(sysconfig.get_path("scripts", scheme)).resolve() for scheme in schemes)
