"""The text of a new gate.toml, for `esper-ab init --gate`."""

from __future__ import annotations

EXAMPLE = """\
# The question that `esper-ab gate` answers about a change to your code. Run it in a folder of your git repository.

# What is trained: a command with {seed}, a function as in "train.py:train", or a Python trainer. Both states of the
# code get the same seeds.
train = "python train.py --seed {seed} --out {out}"

# The number that decides: its name where `train` writes it. Or `lower`, where lower is better.
higher = "return"

# The smallest difference that matters, in the unit of that number, and the wall-clock time for everything.
margin = 10.0
minutes = 10

# not-worse: head is not worse than base by the margin or more. better: head is better than base.
#claim = "not-worse"

# A commit, branch, tag or folder. By default, base is where head left the default branch, and head is your working
# tree.
#base = "main"
#head = "."

# Measures that must not get worse, tested after the claim.
#guardrails = ["lower wall_s margin 10%"]

# The exit status if the minutes were too few to decide: 12 (fail) or 0 (pass).
#undecided = "fail"

# A folder of finished runs, from which those of base are used again where that is valid.
#references = "/var/tmp/runs"
#references_limit = "1GB"

# How many seconds a run takes. By default as in earlier gates, else as in the rehearsal before the first run.
#run_seconds = 30

# Settings of `esper-ab launch`, for both states; those of the trainer are in [settings.trainer].
#[settings]
#outcome_summary = "mean-last-20"
#outcome_range = "0..500"
#rehearsal = ["steps=100"]
#[settings.trainer]
#lr = 1e-3
"""
