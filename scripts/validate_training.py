"""Does the procedure stay calibrated on real training? Experiments with a known truth, end to end.

Every experiment is real: PPO on the task `synthetic`, planned, trained, evaluated, journalled and analysed by the
package. Of two kinds: two groups with equal settings on randomness of their own, whose true difference is 0; and the
treatment that TREATMENT names, paired, whose effect is known from KNOWN_PAIRS other pairs. To save start-up one launch
carries several experiments: its replicates, which share nothing, are cut into tens. Each ten are followed as a plan of
ten with looks at 6 and 10, and their first six as a plan of six with one look.

    scripts/validate_training [--minutes N]    run what is missing, launch after launch; writes
                                               benchmarks/training.json, docs/evidence/statistics-on-training.md
    scripts/validate_training --table          only the table, of the data as they are
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from marks import between
from numpy.typing import NDArray
from scipy import stats
from simulation.rules import FREE_RULES, Rule, design

from esper_ab.analysis.observe import pairs_of
from esper_ab.design.boundary_cache import find_bounds
from esper_ab.design.power import PowerQuestion, Simulation, scheme
from esper_ab.health.processor import name_of_processor
from esper_ab.journal.load import load
from esper_ab.stats.pair import Pair
from esper_ab.verdict.follow import courses_of

ROOT = Path(__file__).resolve().parents[1]
PAGE, DATA = ROOT / "docs/evidence/statistics-on-training.md", ROOT / "docs/evidence/benchmarks/training.json"
MARK = "training table"
PER_LAUNCH = 10  # experiments
LONGEST = 10  # pairs
RULES = FREE_RULES[:2]  # 6 and 10 pairs, one look each; where one runs cannot matter to records
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)  # of the intervals that the calibration curve is made of
LIMIT = 0.056  # of the lower limit of an error: beyond it, the procedure is surely not calibrated
SURE = 0.999  # confidence of the limits by which a coverage is judged: there are twenty of them
FLAGS = (
    "--task synthetic --episodes 10 --steps 15 --n-envs 1 --set ppo.minibatches=1 --set ppo.epochs=4 "
    "--set growth.batch_size=32 --eval-episodes 1"
)
TREATMENT = "b starts without the op head's bias"
_NO_BIAS = ",".join(f"policy.bias_{op}=0" for op in ("germinate", "set_alpha_target", "prune", "advance"))
GROUPS = {
    "same": ("--groups", "a=shaped,b=shaped", "--unpaired"),
    "treated": ("--groups", "a=shaped,b=shaped", "--group", f"b:{_NO_BIAS}"),
}


@dataclass(frozen=True)
class Part:
    """Experiments of one kind: how many, and the rng seed of their first launch."""

    groups: str  # of GROUPS
    experiments: int
    rng_seed: int

    def seeds(self) -> range:
        """One rng seed per launch."""
        return range(self.rng_seed, self.rng_seed + self.experiments // PER_LAUNCH)


PARTS = {
    "same": Part(groups="same", experiments=400, rng_seed=21_000),
    "treated": Part(groups="treated", experiments=200, rng_seed=22_000),
    "known": Part(groups="treated", experiments=20, rng_seed=23_000),  # 200 pairs, which give the true effect
}


Experiment = tuple[NDArray[np.float64], NDArray[np.float64]]  # outcomes of a and of b [LONGEST]


@dataclass(frozen=True)
class Launch:
    """Outcomes of one launch, replicate after replicate, and where it ran."""

    part: str
    rng_seed: int
    a: list[float]
    b: list[float]
    machine: str

    def experiments(self) -> list[Experiment]:
        """Its replicates, cut into tens."""
        a, b = (np.asarray(side).reshape(-1, LONGEST) for side in (self.a, self.b))
        return list(zip(a, b, strict=True))


def launched(part: str, rng_seed: int) -> Launch:
    """Carry out one launch of PER_LAUNCH experiments."""
    replicates = str(PER_LAUNCH * LONGEST)
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "esper_ab.launch", *GROUPS[PARTS[part].groups], *FLAGS.split(), "--no-early-stop",
            "--seeds", replicates, "--looks", replicates, "--rng-seed", str(rng_seed), "--output-dir", folder, "--name",
            "launch", "--quiet", "--json",
        ]  # fmt: skip
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
        history = load(Path(folder) / "launch").history
    pairs = pairs_of(history, history.design.comparisons[0])
    if len(pairs) != PER_LAUNCH * LONGEST:
        raise SystemExit(f"{part}, rng seed {rng_seed}: {len(pairs)} pairs where {replicates} were launched")
    a, b = [pair.a for pair in pairs], [pair.b for pair in pairs]
    return Launch(part, rng_seed, a, b, name_of_processor())


@dataclass(frozen=True)
class Truth:
    """The true difference of the treatment, as far as other pairs show it, points."""

    mean: float
    sd: float  # of a pair
    pairs: int

    @property
    def variance(self) -> float:
        """Of the mean."""
        return self.sd**2 / self.pairs if self.pairs else 0.0


NOTHING = Truth(mean=0.0, sd=0.0, pairs=0)  # of two groups with equal settings: certain


def truth_of(launches: list[Launch]) -> Truth:
    """The effect that the pairs of `launches` show."""
    d = np.concatenate([np.subtract(one.a, one.b) for one in launches])
    return Truth(mean=float(d.mean()), sd=float(d.std(ddof=1)), pairs=d.size)


def direction(rule: Rule, experiment: Experiment) -> int:
    """What a plan by `rule` says of an experiment: +1, a is better; -1, b is; 0, nothing."""
    plan = design(rule)
    pairs = [
        Pair(replicate=r, a=float(a), b=float(b), position_a=r % 2, position_b=1 - r % 2)
        for r, (a, b) in enumerate(zip(*experiment, strict=True))
    ]
    course = courses_of(plan, {plan.comparisons[0]: pairs[: rule.replicates]}, rule.replicates)[plan.comparisons[0]]
    return course.direction if course.standing == "crossed" else 0


def covers(experiment: Experiment, replicates: int, truth: Truth, level: float) -> bool:
    """Whether the t interval of the first `replicates` pairs holds the truth; widened by what that is unsure of."""
    d = (experiment[0] - experiment[1])[:replicates]
    half = stats.t.ppf(0.5 + level / 2, replicates - 1) * math.sqrt(d.var(ddof=1) / replicates + truth.variance)
    return bool(abs(d.mean() - truth.mean) <= half)


def expected_power(rule: Rule, truth: Truth) -> float:
    """What `esper-ab power` says of a plan for that effect, were differences normal."""
    question = PowerQuestion(margin=2.0, positions_matter=False)
    simulation = Simulation(scheme(rule.replicates, rule.looks or (rule.replicates,), question, find_bounds), _rng())
    return simulation.power(abs(truth.mean) / truth.sd)


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


@dataclass(frozen=True)
class Share:
    """`count` of `of`, with exact limits."""

    count: int
    of: int

    def limits(self, level: float = 0.95) -> tuple[float, float]:
        """Clopper-Pearson limits."""
        found = stats.binomtest(self.count, self.of).proportion_ci(confidence_level=level, method="exact")
        return float(found.low), float(found.high)

    def __str__(self) -> str:
        low, high = self.limits()
        return f"{100 * self.count / self.of:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def claims(rule: Rule, experiments: list[Experiment], truth: Truth) -> tuple[Share, Share]:
    """Claims of a difference in the true direction, and those in the wrong one; without a true one each is wrong."""
    found = [direction(rule, experiment) for experiment in experiments]
    side = int(np.sign(truth.mean))
    right = sum(one == side != 0 for one in found)
    return Share(right, len(found)), Share(sum(one != 0 for one in found) - right, len(found))


def curve(replicates: int, experiments: list[Experiment], truth: Truth) -> list[Share]:
    """How many intervals of each of LEVELS hold the truth."""
    return [
        Share(sum(covers(experiment, replicates, truth, level) for experiment in experiments), len(experiments))
        for level in LEVELS
    ]


def centred(launches: list[Launch], replicates: int, draws: int = 100_000) -> float:
    """Share of false claims, one look at 5 %, of pairs drawn anew from these, centred on their mean difference."""
    d = np.concatenate([np.subtract(one.a, one.b) for one in launches])
    drawn = _rng().choice(d - d.mean(), (draws, replicates))
    t = drawn.mean(axis=1) * math.sqrt(replicates) / np.maximum(drawn.std(axis=1, ddof=1), 1e-12)
    return float(np.mean(np.abs(t) > stats.t.isf(0.025, replicates - 1)))


def lines(launches: list[Launch]) -> tuple[str, list[str]]:
    """The section of the page, and what is surely not as promised."""
    known = [one for one in launches if one.part == "known"]
    truths = {"same": NOTHING, "treated": truth_of(known) if known else None}
    claimed = [
        "| experiments | plan | in all | true claim | false claim | power as planned |",
        "|---|---|---|---|---|---|",
    ]
    covered = [
        f"| experiments | pairs | {' | '.join(f'{100 * level:g} %' for level in LEVELS)} |",
        "|---|---|" + "---|" * len(LEVELS),
    ]
    broken = []
    for part, truth in truths.items():
        own = [experiment for one in launches if one.part == part for experiment in one.experiments()]
        if not own or truth is None:
            continue
        for rule in RULES:
            right, wrong = claims(rule, own, truth)
            name, planned = f"{part}, {rule.name.partition(',')[0]}", "-"
            if truth.pairs:
                planned = f"{100 * expected_power(rule, truth):.0f} %"
            said = str(right) if truth.pairs else "-"
            claimed.append(f"| {part} | {rule.replicates} pairs | {len(own)} | {said} | {wrong} | {planned} |")
            if wrong.limits()[0] > LIMIT:
                broken.append(f"{name}: false claims in {wrong}")
            shares = curve(rule.replicates, own, truth)
            covered.append(f"| {part} | {rule.replicates} | {' | '.join(str(share) for share in shares)} |")
            for level, share in zip(LEVELS, shares, strict=True):
                if share.limits(SURE)[1] < level:
                    broken.append(f"{name}: {100 * level:g} % intervals cover {share}")
    treated = [one for one in launches if one.part == "treated"]
    rates = ", ".join(f"{100 * centred(treated, n):.0f} % with {n} pairs" for n in (6, 10, 20)) if treated else "none"
    unequal = f"Pairs of `treated`, centred on their mean and drawn anew: false claims in {rates}."
    return "\n".join([*introduction(launches, truths["treated"]), "", *claimed, "", *covered, "", unequal]), broken


def introduction(launches: list[Launch], truth: Truth | None) -> list[str]:
    """What was trained, how much of it, where."""
    done = {part: PER_LAUNCH * sum(one.part == part for one in launches) for part in PARTS}
    spread = np.mean([np.std(one.a, ddof=1) for one in launches])
    machines = " and ".join(sorted({one.machine for one in launches}))
    effect = ""
    if truth is not None:
        half = 1.96 * math.sqrt(truth.variance)
        effect = (
            f" Its effect is {truth.mean:+.1f} [{truth.mean - half:+.1f}, {truth.mean + half:+.1f}] points by "
            f"{truth.pairs} other pairs, {abs(truth.mean) / truth.sd:.2f} times the SD of a pair."
        )
    return [
        f"Done: {done['same']} of {PARTS['same'].experiments} experiments on one group (`same`), "
        f"{done['treated']} of {PARTS['treated'].experiments} with a treatment (`treated`: {TREATMENT}).{effect} "
        f"`launch {' '.join(GROUPS['same'])} {FLAGS}`; runs of one group have an SD of {spread:.1f} points. "
        f"{machines}.",
    ]


def stored() -> list[Launch]:
    """The launches of the data file."""
    return [Launch(**one) for one in json.loads(DATA.read_text()).get("launches", ())]


def write(launches: list[Launch]) -> list[str]:
    """Data and page; what is surely not as promised."""
    text, broken = lines(launches)
    rows = ",\n".join(json.dumps(asdict(one)) for one in launches)
    head = json.dumps({"flags": FLAGS, "groups": GROUPS, "broken": broken}, indent=1)
    DATA.write_text(f'{head[:-2]},\n "launches": [\n{rows}\n]}}\n')
    PAGE.write_text(between(PAGE.read_text(), MARK, text))
    return broken


def main() -> None:
    """Launch what is missing, write; exit status 1 when something is surely not as promised."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no launch later than this")
    parser.add_argument("--table", action="store_true", help="launch nothing")
    options = parser.parse_args()
    began, found = time.monotonic(), stored()
    # In turn: what there is of each part stays in proportion, wherever it is stopped.
    due = [
        (done / len(part.seeds()), name, rng_seed)
        for name, part in PARTS.items()
        for done, rng_seed in enumerate(part.seeds())
    ]
    known = {(one.part, one.rng_seed) for one in found}
    for _, part, rng_seed in sorted(due):
        if options.table or time.monotonic() - began > 60 * options.minutes:
            break
        if (part, rng_seed) not in known:
            found.append(launched(part, rng_seed))
            write(found)
            print(f"{part}, rng seed {rng_seed}: {(time.monotonic() - began) / 60:.1f} min", flush=True)
    text, _ = lines(found)
    print(text)
    if broken := write(found):
        sys.exit("; ".join(broken))


if __name__ == "__main__":
    main()
