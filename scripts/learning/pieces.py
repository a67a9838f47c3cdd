"""The work in pieces, each an experiment directory of one replicate; a finished piece is never run again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
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


FIXED_BUDGET = Budget(1, 8)  # of what learns nothing
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
        "--seeds", "1", "--eval-episodes", str(EVAL_EPISODES * budget.n_envs), "--set",
        f"growth.batch_size={BATCH_SIZE}", "--rng-seed", str(rng_seed), "--no-telemetry",
        "--output-dir", str(piece.parent), "--name", piece.name, *extra,
    ]  # fmt: skip
    start = time.monotonic()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    print(f"{piece.name}: {time.monotonic() - start:.0f} s", flush=True)


def perform(
    out: Path,
    budgets: Sequence[Budget],
    replicates: int,
    *,
    known: Collection[str],
    schedule: Schedule | None,
    in_turn: bool,
) -> None:
    """All pieces that are neither `known` nor in `out`: budget by budget, in each the default start first.

    `schedule`: the fixed plan; None searches for it. `in_turn`: one run after the other on one core, instead of a
    process for each.
    """
    how = ("--devices", "cpu:0", "--placement", "sequence") if in_turn else ()
    schedule = schedule or coordinate_search(out / "schedule.json")
    fixed = (*_follow("schedule", schedule), "--group", "untrained:reward=sparse,ppo.lr=0")
    zeros = [flag for setting in ZEROS for flag in ("--set", setting)]

    def missing(kind: str, of: Budget) -> Iterator[tuple[int, Path, int]]:
        for replicate in range(replicates):
            name = f"{kind}-{of.name}-{replicate}"
            if name not in known:
                yield replicate, out / name, FIRST_RNG_SEED + replicate

    for budget in budgets:
        for _, piece, rng_seed in missing("fixed", FIXED_BUDGET):
            train(piece, FIXED, FIXED_BUDGET, rng_seed, (*fixed, *how))
        for _, piece, rng_seed in missing("start", budget):
            train(piece, MODES, budget, rng_seed, how)
        for replicate, piece, rng_seed in missing("search", budget):
            plan = random_search(out / f"plan-{budget.name}-{replicate}.json", budget.hosts, rng_seed)
            follow = _follow("search", plan)
            train(piece, ("wait", "search=schedule"), Budget(1, budget.n_envs), rng_seed, (*follow, *how))
        for _, piece, rng_seed in missing("zeros", budget):
            train(piece, MODES, budget, rng_seed, (*zeros, *how))


def _follow(group: str, schedule: Schedule) -> tuple[str, ...]:
    entries = ",".join(json.dumps(entry) for entry in schedule)
    return "--group", f"{group}:controller.schedule=[{entries}]"
