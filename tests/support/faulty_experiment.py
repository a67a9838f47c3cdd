"""A coordinator in a process of its own that can be told when to die; begins the experiment or takes it up.

    python -m support.faulty_experiment RUN_DIR LIFE PLAN ENTRY FLOOR_S START_UP_S

PLAN is a file with the plan as JSON, ENTRY that of the workers. Imports when it runs: a spawned worker imports this
file, too, and is to watch its parent as early as a real one.
"""

from __future__ import annotations

import sys
from pathlib import Path

from support import stand_in


def lived(experiment_dir: Path, life: str, plan, launcher, limits: tuple[float, float]) -> int:
    """Conduct or resume, and return the exit status; `limits`: of silence, and of the silence of a start-up."""
    from esper_ab.contracts.errors import EsperError
    from esper_ab.control import experiment_run
    from esper_ab.control.rules.workers import Limits
    from esper_ab.journal.file import JOURNAL_NAME
    from support import planted_death

    planted_death.install(f"coordinator/{life}")
    floor_s, start_up_s = limits
    patience = Limits(floor_s=floor_s, start_up_s=start_up_s)
    try:
        if (experiment_dir / JOURNAL_NAME).exists():
            experiment_run.resume(experiment_dir, launcher, (), patience)
        else:
            experiment_run.run(plan, experiment_dir, launcher, (), patience)
    except EsperError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


def main(experiment_dir: str, life: str, plan: str, entry: str, floor_s: str, start_up_s: str) -> int:
    """Read the plan, as a process of its own."""
    import msgspec

    from esper_ab.launchers.local import LocalLauncher
    from esper_ab.plan.plan import Plan

    read = msgspec.json.decode(Path(plan).read_bytes(), type=Plan)
    return lived(Path(experiment_dir), life, read, LocalLauncher(entry), (float(floor_s), float(start_up_s)))


if __name__ == "__main__":
    stand_in.die_with_parent()
    sys.exit(main(*sys.argv[1:]))
