"""A coordinator process that starts or resumes an experiment and dies at a given point.

    python -m support.coordinators.faulty_experiment RUN_DIR LIFE FLOOR_S

`main` has the imports: a spawned worker imports this file, too, and must watch its parent as early as a real worker.
"""

import sys
from pathlib import Path

from support.coordinators import stand_in


def main(run_dir: str, life: str, floor_s: str) -> int:
    """Run or resume the experiment and return the exit status."""
    from esper_ab.contracts.errors import EsperError
    from esper_ab.control import experiment_run
    from esper_ab.control.rules.limits import Limits
    from esper_ab.journal.lock import JOURNAL_NAME
    from esper_ab.launchers.local import LocalLauncher
    from support.coordinators import planted_death
    from support.worlds import fault_world

    planted_death.install(f"coordinator/{life}")
    experiment_dir = Path(run_dir)
    launcher = LocalLauncher("support.coordinators.planted_death:worker")
    limits = Limits(floor_s=float(floor_s), start_up_s=15.0)
    try:
        if (experiment_dir / JOURNAL_NAME).exists():
            experiment_run.resume(experiment_dir, launcher, (), limits)
        else:
            experiment_run.run(fault_world.PLAN, experiment_dir, launcher, (), limits)
    except EsperError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    stand_in.die_with_parent()
    sys.exit(main(*sys.argv[1:]))
