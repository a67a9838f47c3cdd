"""What a check of an experiment directory found."""

from __future__ import annotations

import msgspec

from esper_ab.contracts.errors import JournalError


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking one experiment directory."""

    experiment_dir: str
    in_use_by: str  # the process that holds the directory; its checkpoints still change, so they are not checked
    lines: int  # intact lines, counted from the first
    wall_time: str  # of the last intact line, ISO 8601
    episodes: int  # recorded in the intact lines
    evaluations: int
    damage: str  # of the journal; "" if none
    repairable: bool  # whether cutting the journal would help
    lines_behind: int  # lines after the intact ones; the last may be unfinished
    faults: dict[str, str]  # file -> what is wrong with it
    removable: tuple[str, ...]  # files that `tidy` would remove
    removable_bytes: int

    @property
    def exit_status(self) -> int:
        """Exit status: 0 if nothing is damaged, else that of a damaged journal."""
        return JournalError.exit_code if self.damage or self.faults else 0
