"""Where a run finds its state of the code: the folder in which it works, its Python modules and its program.

Files named in a command or as a function are looked for in the state, and so are modules, before what is installed:
the user's own folder may be installed, too (`pip install -e .`), and would hide the state.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from esper_ab.contracts.code_state import CodeTree
from esper_ab.contracts.errors import CodeChanged
from esper_ab.contracts.trainer import TrainerOrder, TrainerQuestion, is_command, is_function

_OF_GIT = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")  # set in a hook, for the user's repository
_SOURCES = "src"  # folder whose content is imported by its name below it


@dataclass(frozen=True)
class TreeFiles:
    """The files of a state of the code, on this machine."""

    top: Path
    folder: Path  # in which runs work
    users_top: Path  # the user's own folder, of which `top` has a state

    @property
    def module_folders(self) -> tuple[str, ...]:
        """The folders in which Python finds the state's modules."""
        folders = dict.fromkeys((self.folder / _SOURCES, self.folder, self.top / _SOURCES, self.top))
        return tuple(str(folder) for folder in folders if folder.is_dir())

    def moved(self, path: str) -> str:
        """Return the path of the state's file or folder for one in the user's folder; other paths as they are."""
        if path and Path(path).is_absolute() and Path(path).is_relative_to(self.users_top):
            return str(self.top / Path(path).relative_to(self.users_top))
        return path

    def variables(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return environment variables with which a program works in the state."""
        given_paths = map(self.moved, variables.get("PYTHONPATH", "").split(os.pathsep))
        paths = dict.fromkeys([*self.module_folders, *filter(None, given_paths)])
        kept_variables = {name: text for name, text in variables.items() if name not in _OF_GIT}
        return {**kept_variables, "PWD": str(self.folder), "PYTHONPATH": os.pathsep.join(paths)}

    def reference(self, reference: str, directory: str) -> str:
        """Return a trainer as it is named in the state.

        `directory`: where the user was. The program of a virtual environment stays the user's, because no state has
        one. Raises ValueError if the state has no such file.
        """
        if is_command(reference):
            return self._command(reference, directory)
        path, colon, name = reference.rpartition(":") if is_function(reference) else (reference, "", "")
        if not path.endswith(".py"):
            return reference  # a module, found in `module_folders`
        inside = os.path.relpath(path, directory)
        moved = Path(os.path.normpath(self.folder / inside))
        if not moved.is_relative_to(self.top):
            raise ValueError(f"{path} is not in {self.users_top}, so it has no states")
        if not moved.is_file():
            raise ValueError(f"it has no file {moved.relative_to(self.top)}")
        return f"{moved}{colon}{name}"

    def _command(self, command: str, directory: str) -> str:
        program, *others = shlex.split(command)
        users_program = Path(directory, program)
        in_environment = (users_program.parent.parent / "pyvenv.cfg").is_file()
        if "/" not in program or (self.folder / program).exists() or not in_environment:
            return command
        return shlex.join([str(users_program), *others])


@dataclass(frozen=True)
class RunPlace:
    """The trainer of a run, and where the run works."""

    reference: str
    directory: str
    files: TreeFiles | None  # None: the user's own folder


def place_of(order: TrainerOrder, root: Path) -> RunPlace:
    """Return the place of a run whose experiment directory is `root`; CodeChanged if its state lacks the trainer."""
    if order.tree is None:
        return RunPlace(order.reference, order.directory, None)
    files = files_of(order.tree, root)
    try:
        reference = files.reference(order.reference, order.directory)
    except ValueError as error:
        raise CodeChanged(f"{files.top}: {error}; these files were changed since the run was planned") from None
    return RunPlace(reference, str(files.folder), files)


def files_of(tree: CodeTree, root: Path) -> TreeFiles:
    """Return the files of a tree below `root`, which is an experiment directory or stands for one."""
    top = (root / tree.folder).resolve()
    return TreeFiles(top=top, folder=top / tree.inside, users_top=Path(tree.top))


def asked_files(question: TrainerQuestion) -> TreeFiles | None:
    """Return the files of the state that a question is about; None if it is about the user's own folder."""
    return files_of(question.tree, Path(question.states_in)) if question.tree else None
