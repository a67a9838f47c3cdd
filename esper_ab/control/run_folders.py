"""One folder per run with its resolved settings, made when the run starts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from esper_ab.control.observers import Observed
from esper_ab.journal.events import PlanExtended, RunStarted
from esper_ab.plan.blocks import Block, Plan
from esper_ab.plan.run_directory import CONFIG_NAME, FOLDER_OF_RUNS, run_folder, run_toml


class RunFolders:
    """An observer. It may fail, for want of room, say: nothing depends on what it writes."""

    def __init__(self, run_dir: Path, plan: Plan, blocks: Sequence[Block]) -> None:
        """`blocks`: all that are planned so far."""
        self._run_dir, self._plan = run_dir, plan
        self._specs = {spec.ref.run: spec for block in blocks for spec in block.runs}

    def observe(self, event: Observed) -> None:
        if isinstance(event, PlanExtended):
            self._specs |= {spec.ref.run: spec for block in event.extension.blocks for spec in block.runs}
        elif isinstance(event, RunStarted):
            folder = self._run_dir / FOLDER_OF_RUNS / run_folder(event.run)
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / CONFIG_NAME
            if not file.exists():
                file.write_text(run_toml(self._plan, self._specs[event.run.run]), encoding="utf-8")
