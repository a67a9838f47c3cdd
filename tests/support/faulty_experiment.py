"""A coordinator in a process of its own that can be told when to die; begins the experiment or takes it up.

    python -m support.faulty_experiment RUN_DIR LIFE REPLICATES EPISODES FLOOR_S

Imports when it runs: a spawned worker imports this file, too, and is to watch its parent as early as a real one.
"""

from __future__ import annotations

import sys
from pathlib import Path

from support import stand_in

START_UP_S = 15.0  # on a machine that is not crowded: as many times longer, else


def main(experiment_dir: Path, life: str, replicates: int, episodes: int, floor_s: float) -> None:
    """Conduct or resume, with the fake worker."""
    from esper_ab.control import experiment_run
    from esper_ab.control.rules.liveness import Limits
    from esper_ab.journal.file import JOURNAL_NAME
    from esper_ab.launchers.local import LocalLauncher
    from support import fake_plans, planted_death

    planted_death.install(f"coordinator/{life}")
    launcher, limits = LocalLauncher("support.planted_death:worker"), Limits(floor_s=floor_s, start_up_s=START_UP_S)
    if (experiment_dir / JOURNAL_NAME).exists():
        experiment_run.resume(experiment_dir, launcher, (), limits)
    else:
        experiment_run.run(
            fake_plans.plan(replicates=replicates, episodes=episodes), experiment_dir, launcher, (), limits
        )


if __name__ == "__main__":
    from esper_ab.contracts.errors import EsperError

    folder, number, of_replicates, of_episodes, of_floor = sys.argv[1:]
    stand_in.die_with_parent()
    stand_in.without_torch()
    try:
        main(Path(folder), number, int(of_replicates), int(of_episodes), float(of_floor))
    except EsperError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
