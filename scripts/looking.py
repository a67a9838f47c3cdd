"""Does looking pay? On `mixture`, the best plan for each context against the best single plan for all of them.

Plans are schedules. Every single seed that is germinated at once is tried, and from these a search goes on for each
context and for all contexts together, by validation accuracy at the end on hosts of the search's rng seed. The four
plans found, and the controller `looking`, are then judged by held-out accuracy on hosts of another rng seed.

    scripts/looking                            search, judge, then write docs/evidence/looking.md and its data
    scripts/looking --experiment DIRECTORY     add what an experiment of scripts/looking.toml came to, and
                                               make it the example with its picture; needs Chromium
    scripts/looking --table                    write the page from the data there is
"""

from __future__ import annotations

import argparse
import functools
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from marks import between
from numpy.typing import NDArray
from refresh_docs import keep, picture

from esper_ab.contracts.records import EnvEpisode
from esper_ab.contracts.rng import RngPath, run_path
from esper_ab.contracts.settings import (
    DEFAULT_BLUEPRINTS,
    ControllerSettings,
    GrowthSettings,
    HostKernel,
    RewardSettings,
)
from esper_ab.health.processor import name_of_processor
from esper_ab.journal.load import load
from esper_ab.stats.t_tests import paired_difference
from workers.controllers.looking import make as make_looking
from workers.controllers.schedule import Schedule, make
from workers.datasets.behaviour import Behaviour, Behaviours, SeedLife
from workers.environments import Controller, Stopwatch
from workers.growth.environment import EnvSpec, GrowthEnv
from workers.growth.samples import DeviceData, Shares
from workers.native.library import kernels
from workers.reward_audit.scoring import search
from workers.run.episode import play
from workers.tasks.mixture import TASK

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "docs" / "examples" / "looking"
DATA, PAGE = ROOT / "docs/evidence/benchmarks/looking.json", ROOT / "docs/evidence/looking.md"
STEPS, GROWTH = 12, GrowthSettings(batch_size=32, max_seeds=1)
SEARCH_RNG_SEED, SEARCH_HOSTS, TRIES_CONTEXT, TRIES_ALL = 171, 8, 32, 64  # hosts of each context
JUDGE_RNG_SEED, JUDGE_HOSTS = 172, 40
TOGETHER = 8  # plans that share a bank
CONTEXTS = tuple(context.name for context in TASK.contexts)
HEAD = f"| plan | {' | '.join(f'`{name}`' for name in CONTEXTS)} | mean |\n|---{'|---' * (len(CONTEXTS) + 1)}|"

Floats = NDArray[np.float64]


class Hosts:
    """As many hosts of each context, context after context, at addresses below one rng seed; plays plans on them."""

    def __init__(self, rng_seed: int, each: int) -> None:
        root, found = run_path(rng_seed, 0) / "looking", [list[RngPath]() for _ in CONTEXTS]
        number = 0
        while any(len(paths) < each for paths in found):
            path = root / number
            of_context = found[int(Shares(TASK, [path]).context[0])]
            if len(of_context) < each:
                of_context.append(path)
            number += 1
        self.paths = found
        self._kernel: HostKernel = next((kernel.name for kernel in kernels() if not kernel.problem), "torch")
        self._data = DeviceData.of(TASK.load(""), torch.device("cpu"))

    def grow(self, plans: Sequence[Behaviour], contexts: Sequence[int]) -> list[list[EnvEpisode]]:
        """Return what became of every plan's hosts of these contexts, context after context."""
        paths = [path for context in contexts for path in self.paths[context]]
        grown = []
        for first in range(0, len(plans), TOGETHER):
            some = plans[first : first + TOGETHER]
            schedules = [make(plan.settings, TASK.slots, GROWTH.blueprints) for plan in some]
            hosts = self.play(Schedule.side_by_side(schedules, len(paths)), [*paths] * len(some))
            grown += [list(hosts[at : at + len(paths)]) for at in range(0, len(hosts), len(paths))]
        return grown

    def play(self, controller: Controller, paths: Sequence[RngPath]) -> tuple[EnvEpisode, ...]:
        """Return what becomes of the hosts at `paths`."""
        spec = EnvSpec(
            task=TASK, slots=TASK.slots, steps=STEPS, env_devices=("cpu",) * len(paths), growth=GROWTH,
            reward=RewardSettings(), kernel=self._kernel,
        )  # fmt: skip
        env = GrowthEnv(spec, {"cpu": self._data}, Stopwatch())
        return play(env, paths, controller, {}, Stopwatch(), lambda _step: None).envs

    def grade(self, plans: Sequence[Behaviour], contexts: Sequence[int]) -> Floats:
        """Return mean validation accuracies at the end [plan, context], percent."""
        values = [[host.measures["val_accuracy"] or 0.0 for host in hosts] for hosts in self.grow(plans, contexts)]
        return np.asarray(np.array(values).reshape(len(plans), len(contexts), -1).mean(2))

    def mean_grade(self, contexts: Sequence[int], plans: Sequence[Behaviour]) -> Floats:
        """Return the mean over contexts of `grade`, [plan]."""
        return np.asarray(self.grade(plans, contexts).mean(1))


def single_seeds() -> list[Behaviour]:
    """Return the plans that germinate one seed at once and keep it: every slot, every blueprint."""
    return [
        Behaviour(name=f"{slot} {blueprint}", lives=(SeedLife(slot=slot, step=1, blueprint=blueprint, end="hold"),))
        for slot in TASK.slots for blueprint in DEFAULT_BLUEPRINTS
    ]  # fmt: skip


def searched() -> tuple[dict[str, Behaviour], list[dict[str, Any]]]:
    """Return the best plan by name of the context, or `all`; and what every single seed is worth."""
    hosts, singles = Hosts(SEARCH_RNG_SEED, SEARCH_HOSTS), single_seeds()
    path = run_path(SEARCH_RNG_SEED, 0) / "search"
    scores = hosts.grade(singles, range(len(CONTEXTS)))
    table = [
        {"plan": plan.name, **dict(zip(CONTEXTS, row, strict=True))}
        for plan, row in zip(singles, scores.tolist(), strict=True)
    ]
    best = {}
    targets = [((context,), name, TRIES_CONTEXT) for context, name in enumerate(CONTEXTS)]
    for contexts, name, tries in (*targets, (tuple(range(len(CONTEXTS))), "all", TRIES_ALL)):
        start = list(zip(singles, scores[:, contexts].mean(1).tolist(), strict=True))
        grade = functools.partial(hosts.mean_grade, contexts)
        best[name], value = search(Behaviours(TASK.slots), start, tries, path / name, grade)
        print(f"{name}: {best[name].description}: {value:.1f} % on validation", flush=True)
    return best, table


def judged(best: dict[str, Behaviour]) -> dict[str, Any]:
    """Return held-out accuracy of each plan by context on fresh hosts, and the gain of a plan per context."""
    hosts = Hosts(JUDGE_RNG_SEED, JUDGE_HOSTS)
    grown: dict[str, Sequence[EnvEpisode]] = dict(
        zip(best, hosts.grow(list(best.values()), range(len(CONTEXTS))), strict=True)
    )
    rule = make_looking(ControllerSettings(name="looking"), TASK.slots, GROWTH.blueprints)
    grown["looking"] = hosts.play(rule, [path for paths in hosts.paths for path in paths])
    accuracy = {
        name: np.array([played.outcome for played in of]).reshape(len(CONTEXTS), -1) for name, of in grown.items()
    }
    single = accuracy["all"].ravel()
    over = {
        "per_context": np.concatenate([accuracy[name][context] for context, name in enumerate(CONTEXTS)]),
        "looking": accuracy["looking"].ravel(),
    }
    gains = {name: paired_difference(values.tolist(), single.tolist()) for name, values in over.items()}
    return {
        "accuracy": {name: dict(zip(CONTEXTS, of.mean(1).tolist(), strict=True)) for name, of in accuracy.items()},
        "single": float(single.mean()),
        "over_single": {
            name: {"accuracy": float(over[name].mean()), "gain": gain.mean, "low": gain.low, "high": gain.high}
            for name, gain in gains.items()
        },
    }  # fmt: skip


def row(name: str, values: dict[str, float]) -> str:
    """A row of a table by context."""
    own = [values[context] for context in CONTEXTS]
    return f"| {name} | " + " | ".join(f"{value:.1f}" for value in (*own, float(np.mean(own)))) + " |"


def learned(directory: Path) -> dict[str, Any]:
    """Return what a finished experiment says: its comparisons, and accuracies of every group by context."""
    history = load(directory).history
    if not history.finished:
        raise SystemExit(f"{directory} is not finished; `esper-ab resume {directory}` goes on with it")
    verdict = json.loads((directory / "verdict.json").read_text())
    groups: dict[str, dict[str, dict[str, list[float]]]] = {}
    for run in history.runs.values():
        if run.evaluation is None:
            continue
        root = run_path(run.spec.rng_seed, run.spec.ref.replicate) / "evaluate"
        for played in run.evaluation.episodes:
            path = root / played.episode / "env" / played.outcome.env
            context = CONTEXTS[int(Shares(TASK, [path]).context[0])]
            of_group = groups.setdefault(run.spec.ref.group_id, {}).setdefault(played.actions, {})
            of_group.setdefault(context, []).append(played.outcome.outcome)
    return {
        "rng_seed": history.plan.experiment.rng_seed,
        "replicates": history.plan.experiment.seeds,
        "comparisons": [
            {key: one[key] for key in ("a", "b", "verdict", "estimate", "low", "high", "level", "sentence")}
            for one in verdict["comparisons"]
        ],
        "groups": {
            name: {
                actions: {name: float(np.mean(by_context[name])) for name in CONTEXTS}
                for actions, by_context in contexts.items()
            }
            for name, contexts in groups.items()
        },
    }  # fmt: skip


def outcome(found: dict[str, Any]) -> str:
    """The part of the page on one experiment."""
    plan = f"At rng seed {found['rng_seed']}, {found['replicates']} seeds:"
    sentences = "\n".join(f"- {one['sentence']}" for one in found["comparisons"])
    rows = [
        row(f"`{name}`, {actions}" if actions == "greedy" else f"`{name}`", values)
        for name, contexts in found["groups"].items() for actions, values in contexts.items()
    ]  # fmt: skip
    table = "\n".join([HEAD.replace("plan", "group"), *rows])
    return f"{plan}\n\n{sentences}\n\nHeld-out accuracy by context, over the hosts of all evaluations:\n\n{table}"


def filled(page: str, data: dict[str, Any]) -> str:
    """Return the page with the tables of the data."""
    singles = "\n".join([HEAD, *(row(one["plan"], one) for one in data["singles"])])
    plans = data["plans"]
    names = {**{context: f"best for `{context}`" for context in CONTEXTS}, "all": "best for all"}
    found = data["judged"]
    rows = [row(f"{names[name]}: {plans[name]['words']}", found["accuracy"][name]) for name in names]
    rows.append(row("the controller `looking`", found["accuracy"]["looking"]))
    lines = [
        f"- {words}: {one['accuracy']:.1f} %, {one['gain']:+.1f} points [{one['low']:+.1f}, {one['high']:+.1f}] over "
        f"the single plan's {found['single']:.1f} %"
        for words, one in (
            ("a plan for each context", found["over_single"]["per_context"]),
            ("`looking`", found["over_single"]["looking"]),
        )
    ]  # fmt: skip
    verdict = "\n".join([f"Paired by host, {JUDGE_HOSTS * len(CONTEXTS)} hosts, 95 % t intervals:", "", *lines])
    for mark, text in (("singles", singles), ("plans", "\n".join([HEAD, *rows, "", verdict]))):
        page = between(page, mark, text)
    if "learned" in data:
        page = between(page, "outcome", "\n\n".join(outcome(one) for one in data["learned"]))
    return page


def main() -> None:
    """Parse the command line and go."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--experiment", type=Path, metavar="DIRECTORY", help="a finished experiment of the learner")
    what.add_argument("--table", action="store_true", help="only write the page")
    arguments = parser.parse_args()
    data = json.loads(DATA.read_text()) if DATA.exists() else {}
    if arguments.experiment:
        found = learned(arguments.experiment)
        keep(arguments.experiment, EXAMPLE)
        with tempfile.TemporaryDirectory() as scratch:
            picture(EXAMPLE / "report.html", ROOT / "docs" / "evidence" / "looking.png", Path(scratch))
        others = [one for one in data.get("learned", []) if one["rng_seed"] != found["rng_seed"]]
        data["learned"] = sorted([*others, found], key=lambda one: one["rng_seed"])
    elif not arguments.table:
        torch.set_num_threads(1)
        best, singles = searched()
        data |= {
            "machine": name_of_processor(), "steps": STEPS, "batch_size": GROWTH.batch_size,
            "max_seeds": GROWTH.max_seeds,
            "plans": {
                name: {"words": plan.description, "schedule": plan.settings.schedule} for name, plan in best.items()
            },
            "judged": judged(best), "singles": singles,
        }  # fmt: skip
    DATA.write_text(json.dumps(data, indent=1) + "\n")
    PAGE.write_text(filled(PAGE.read_text(), data))


if __name__ == "__main__":
    main()
