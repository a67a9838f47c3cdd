"""`esper-ab track` with the real libraries, and all that they hold afterwards."""

import json

from support import journals, tracked
from support.children import python

PATIENCE_S = 600.0  # libraries that load in seconds take minutes on a machine that is fifteen times overloaded
SMALL = journals.Synthetic(replicates=2, episodes=3, n_envs=2, steps=10, eval_episodes=2)


def track(experiment_dir, *flags):
    """`esper-ab track` with all trackers unless told otherwise; its JSON."""
    flags = flags or ("--wandb", "--tensorboard")
    done = python("-m", "esper_ab.commands.cli", "track", experiment_dir, "--json", *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def held(experiment_dir):
    """All that the trackers hold."""
    return tracked.wandb_runs(experiment_dir), tracked.files_below(experiment_dir / "tensorboard")
