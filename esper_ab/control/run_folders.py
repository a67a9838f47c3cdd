"""One folder per run with its resolved settings, made when the run starts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from esper_ab.contracts.files_below import write_below
from esper_ab.contracts.run_files import config_of
from esper_ab.control.observers import Observed
from esper_ab.journal.events import PlanExtended, RunStarted
from esper_ab.plan.plan import Block, Plan
from esper_ab.plan.settings_toml import run_toml


class RunFolders:
    """Observer that makes a folder per run with its resolved settings.

    A failure does no harm, because nothing depends on these files.
    """

    def __init__(self, experiment_dir: Path, plan: Plan, blocks: Sequence[Block]) -> None:
        """`blocks`: all blocks planned so far."""
        self._experiment_dir = experiment_dir
        self._plan = plan
        self._specs = {spec.ref.name: spec for block in blocks for spec in block.runs}

    def observe(self, event: Observed) -> None:
        if isinstance(event, PlanExtended):
            self._specs |= {spec.ref.name: spec for block in event.extension.blocks for spec in block.runs}
        elif isinstance(event, RunStarted):
            file = config_of(event.run)
            if not (self._experiment_dir / file).exists():
                text = run_toml(self._plan, self._specs[event.run.name])
                write_below(self._experiment_dir, file, text.encode())
