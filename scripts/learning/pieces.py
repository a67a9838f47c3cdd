"""The work in pieces, each an experiment directory of one replicate; a finished piece is never run again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiment_dirs import finished

from learning.plans import BATCH_SIZE, SLOTS, STEPS, TASK, Schedule, coordinate_search, random_search

ROOT = Path(__file__).resolve().parents[2]
REPLICATES, EVAL_EPISODES = 12, 2  # an evaluation grows as many hosts as that many episodes of training
FIRST_RNG_SEED = 3000  # replicate r uses 3000 + r
MODES = ("shaped", "simplified", "sparse", "minimal")
FIXED = ("wait", "random", "heuristic", "schedule")  # and `untrained`: the start, which learns nothing
ZEROS = tuple(f"policy.bias_{op}=0" for op in ("germinate", "set_alpha_target", "prune", "advance"))


@dataclass(frozen=True)
class Budget:
    """Training of one run."""

    episodes: int
    n_envs: int

    @property
    def name(self) -> str:
        return f"{self.episodes}x{self.n_envs}"

    @property
    def hosts(self) -> int:
        return self.episodes * self.n_envs


BUDGETS = (Budget(12, 8), Budget(24, 8), Budget(60, 16), Budget(200, 16))


def train(piece: Path, groups: Sequence[str], budget: Budget, rng_seed: int, extra: Sequence[str]) -> None:
    """One replicate of `groups` as an experiment of its own; a piece that was cut short is done over."""
    if finished(piece):
        return
    shutil.rmtree(piece, ignore_errors=True)
    print(f"{piece.name}: {', '.join(groups)}", flush=True)
    command = [
        sys.executable, "-m", "esper_ab.launch", "--quiet", "--groups", ",".join(groups), "--task", TASK,
        "--slots", *SLOTS, "--episodes", str(budget.episodes), "--steps", str(STEPS), "--n-envs", str(budget.n_envs),
        "--replicates", "1", "--eval-hosts", str(EVAL_EPISODES * budget.n_envs), "--set",
        f"growth.batch_size={BATCH_SIZE}", "--rng-seed", str(rng_seed), "--no-telemetry", "--out", str(piece.parent),
        "--name", piece.name, *extra,
    ]  # fmt: skip
    start = time.monotonic()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    print(f"{piece.name}: {time.monotonic() - start:.0f} s", flush=True)


def perform(out: Path, budgets: Sequence[Budget], replicates: int, *, in_turn: bool) -> None:
    """All pieces that are not there yet: budget by budget, in each the default start of all replicates first.

    `in_turn`: one run after the other on one core, instead of a process for each.
    """
    how = ("--devices", "cpu:0", "--placement", "sequence") if in_turn else ()
    schedule = coordinate_search(out / "schedule.json")
    fixed = (*_follow("schedule", schedule), "--group", "untrained:reward=sparse,ppo.lr=0", *how)
    zeros = [flag for setting in ZEROS for flag in ("--set", setting)]
    for budget in budgets:
        fixed_once, once = Budget(1, BUDGETS[0].n_envs), Budget(1, budget.n_envs)
        seeds = [(replicate, FIRST_RNG_SEED + replicate) for replicate in range(replicates)]
        for replicate, rng_seed in seeds:
            train(out / f"fixed-{fixed_once.name}-{replicate}", FIXED, fixed_once, rng_seed, fixed)
            train(out / f"start-{budget.name}-{replicate}", MODES, budget, rng_seed, how)
        for replicate, rng_seed in seeds:
            plan = random_search(out / f"plan-{budget.name}-{replicate}.json", budget.hosts, rng_seed)
            pair = ("wait", "search=schedule")
            train(out / f"search-{budget.name}-{replicate}", pair, once, rng_seed, (*_follow("search", plan), *how))
        for replicate, rng_seed in seeds:
            train(out / f"zeros-{budget.name}-{replicate}", MODES, budget, rng_seed, (*zeros, *how))


def _follow(group: str, schedule: Schedule) -> tuple[str, ...]:
    entries = ",".join(json.dumps(entry) for entry in schedule)
    return "--group", f"{group}:controller.schedule=[{entries}]"
