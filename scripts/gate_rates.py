"""How often a gate is right: by simulation for three rules, and resampled from stored runs of real trainers.

Writes docs/evidence/gates-on-training.md from docs/evidence/benchmarks/gate_runs.csv; nothing is trained. It takes
a minute.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.markdown import table
from msgspec import UNSET
from msgspec.structs import replace

from esper_ab.contracts.claim import Claim
from esper_ab.contracts.measures import Measure
from esper_ab.design.scheme import PowerQuestion, generator_of, scheme
from esper_ab.design.simulation import Simulation
from esper_ab.design.t_process import TProcess, draw, t_values
from esper_ab.gate.budget import looks
from esper_ab.gate.fitting import PairsSpread, pass_rate
from esper_ab.stats.anytime_t import least_t
from esper_ab.stats.floats import Floats
from esper_ab.stats.least_pairs import LEAST_OPEN_ENDED_PAIRS, LEAST_PAIRS
from esper_ab.stats.pair import Pairs
from esper_ab.verdict.analysis_plan import AnalysisPlan, Rule, make_plan
from esper_ab.verdict.looks import progress_after
from esper_ab.verdict.scale import Scale

EVIDENCE = Path(__file__).parents[1] / "docs" / "evidence"
STORED = EVIDENCE / "benchmarks" / "gate_runs.csv"
PAGE = EVIDENCE / "gates-on-training.md"
PATHS = 20_000
REPEATS = 200
_OFTEN = 5  # times as many for an error rate, which is small
ALPHA = 0.05
PAIRS = (16, 20, 30, 40, 60, 100)  # of simulated plans
EFFECTS = (0.6, 1.0, 1.8)  # true differences, as multiples of one that a single look detects with about 80 %
RESAMPLED_PAIRS = (20, 40)
RESHUFFLED = "reshuffled"
AT_MARGIN = "reshuffled, worse by the margin"
_RESHUFFLED = (RESHUFFLED, AT_MARGIN)
_SEED = 67


def rules() -> str:
    """Return the table of the three rules."""
    rows = []
    claims: tuple[Claim, ...] = ("not-worse", "difference")
    for claim in claims:
        for pairs in PAIRS:
            for times in EFFECTS:
                effect = times * (2.5 if claim == "not-worse" else 2.8) / math.sqrt(pairs)
                rows.append(
                    [
                        claim,
                        str(pairs),
                        f"{effect:.2f}",
                        *(_planned(claim, pairs, effect, choice) for choice in ((pairs,), _gate_looks(claim, pairs))),
                        _every_pair(claim, pairs, effect),
                    ]
                )
    titles = "claim | pairs | difference in SDs | one look | looks of a gate | a look after every pair"
    return "\n".join(table(titles, rows))


def _gate_looks(claim: Claim, pairs: int) -> tuple[int, ...]:
    return looks(pairs, claim, guarded=False)


def _planned(claim: Claim, pairs: int, effect: float, planned_looks: tuple[int, ...]) -> str:
    question = PowerQuestion(margin=1.0, not_worse=True if claim == "not-worse" else UNSET, positions_matter=False)
    simulation = Simulation(scheme(pairs, planned_looks, question), generator_of(question), PATHS)
    return _cell(simulation.power(effect), simulation.expected_replicates(effect) or pairs)


def _every_pair(claim: Claim, pairs: int, effect: float) -> str:
    """Return power and mean pairs of the anytime-valid t, which ends at `pairs` at the latest."""
    first_look = LEAST_OPEN_ENDED_PAIRS if claim == "not-worse" else LEAST_PAIRS
    if pairs < first_look:
        return _cell(0.0, pairs)
    numbers = np.arange(first_look, pairs + 1)
    process = TProcess(looks=tuple(numbers), information=tuple(numbers * 1.0), df=tuple(numbers - 1))
    t = t_values(process, draw(process, PATHS, np.random.default_rng(_SEED)), effect)
    evidence = 1.0 / (2.0 * ALPHA if claim == "not-worse" else ALPHA)
    claims = t >= np.array([least_t(number - 1, number, evidence) for number in numbers])[:, None]
    ends = np.where(claims.any(axis=0), numbers[claims.argmax(axis=0)], pairs)
    return _cell(float(claims.any(axis=0).mean()), float(ends.mean()))


def _cell(power: float, pairs: float) -> str:
    return f"{100.0 * power:.0f} %, {pairs:.1f} pairs"


@dataclass(frozen=True, kw_only=True)
class Trainer:
    """The stored outcomes of a trainer by state, [seeds] in the order of the seeds, and the margin of its gates."""

    name: str
    margin: float
    outcomes: Mapping[str, Floats]

    def pairs(self, head: str, rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
        """Return `count` outcomes of head and of base; "reshuffled" is base on other seeds."""
        base = self.outcomes["base"]
        places = rng.integers(base.size, size=count)
        if head in _RESHUFFLED:
            shifts = rng.integers(1, base.size, size=count)
            loss = self.margin if head == AT_MARGIN else 0.0
            return base[(places + shifts) % base.size] - loss, base[places]
        return self.outcomes[head][places], base[places]

    def spread(self, head: str) -> float:
        """Return the SD of differences of such pairs."""
        base = self.outcomes["base"]
        if head in _RESHUFFLED:  # two different runs of base
            return math.sqrt(2.0) * float(np.std(base, ddof=1))
        return float(np.std(self.outcomes[head] - base, ddof=1))


def read_stored(path: Path = STORED) -> tuple[Trainer, ...]:
    """Read the stored runs: a row per run, with trainer, margin, state, seed and outcome."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["seed"]))
    trainers = []
    for name in dict.fromkeys(row["trainer"] for row in rows):
        own_rows = [row for row in rows if row["trainer"] == name]
        outcomes = {
            state: np.array([float(row["outcome"]) for row in own_rows if row["state"] == state])
            for state in dict.fromkeys(row["state"] for row in own_rows)
        }
        trainers.append(Trainer(name=name, margin=float(own_rows[0]["margin"]), outcomes=outcomes))
    return tuple(trainers)


def plan_of(trainer: Trainer, pairs: int) -> AnalysisPlan:
    """Return the plan of a gate with this number of pairs, which asks whether head is not worse."""
    outcome = Measure(name="outcome", label="outcome", unit="", better="higher")
    scale = Scale(task="", outcome=outcome, margin=trainer.margin, worst=None)
    rule = Rule(control="base", claim="not-worse", looks=_gate_looks("not-worse", pairs))
    return make_plan(("head", "base"), tuple(map(str, range(pairs))), (scale,), rule)


def verdict_of(plan: AnalysisPlan, head: Floats, base: Floats) -> tuple[str, int]:
    """Return how a gate ends on these pairs, and after how many of them."""
    (contrast,) = plan.design.comparisons
    count = head.size
    places = np.zeros(count, dtype=np.int64)
    pairs = Pairs(replicate=np.arange(count), a=head, b=base, position_a=places, position_b=places + 1)
    progress = progress_after(plan.design, {contrast: pairs}, count)[contrast]
    used = progress.decided_at or count
    if progress.decision == "crossed":
        return ("BETTER" if progress.direction > 0 else "WORSE"), used
    return ("NOT WORSE" if progress.decision == "not-worse" else "INCONCLUSIVE"), used


VERDICTS = ("BETTER", "NOT WORSE", "WORSE", "INCONCLUSIVE")


def resampled(trainers: tuple[Trainer, ...], repeats: int = REPEATS) -> Iterator[list[str]]:
    """Yield a row for each trainer, head and number of pairs."""
    for trainer in trainers:
        for head in (*_RESHUFFLED, *(state for state in trainer.outcomes if state != "base")):
            for count in RESAMPLED_PAIRS:
                times = _OFTEN if head == AT_MARGIN else 1
                yield _row(trainer, head, count, times * repeats)


def _row(trainer: Trainer, head: str, count: int, repeats: int) -> list[str]:
    plan = plan_of(trainer, count)
    rng = np.random.default_rng([_SEED, count])
    endings = [verdict_of(plan, *trainer.pairs(head, rng, count)) for _ in range(repeats)]
    shares = {verdict: sum(ending == verdict for ending, _ in endings) / repeats for verdict in VERDICTS}
    printed_text = ""
    if head == RESHUFFLED:
        design = replace(plan.design, positions=2, positions_matter=False)  # as of runs that repeat
        power = pass_rate(design, PairsSpread(sd=trainer.spread(head), df=1000, source=""))
        passed = shares["BETTER"] + shares["NOT WORSE"]
        error = math.sqrt(max(power * (1.0 - power), 1.0 / repeats) / repeats)
        printed_text = f"{100.0 * power:.0f} % ({(passed - power) / error:+.1f} SE)"
    return [
        trainer.name,
        head,
        str(count),
        *(f"{100.0 * shares[verdict]:.0f} %" for verdict in VERDICTS),
        printed_text,
        f"{np.mean([used for _, used in endings]):.1f}",
    ]


TEXT = """\
# How often a gate is right

Written by `scripts/gate_rates` (a minute of one core) from [gate_runs.csv](benchmarks/gate_runs.csv).

## Three rules

A gate has [a budget](../gate.md#how-the-minutes-become-a-plan), so it has a largest number of pairs. Power at a true
difference and mean pairs used, of one look at the end, of looks as a gate plans them, and of the anytime-valid t with a
look after every pair (for `not-worse` from 25 pairs on), which ends at the same number. Differences are in standard
deviations of pairs; for `not-worse`, that of the margin where the groups do not differ. Normal outcomes, 20,000
experiments each.

RULES

## Resampled from training

Runs of two trainers on CartPole-v1 in three states of the code, 40 seeds each. The outcome is the mean of the last 20
returns, and the claim is `not-worse`.

- **CleanRL-style PPO**: a single file, 7,680 steps. "better": a learning rate of 1e-3 in place of 2.5e-4. "bug": one
  epoch per batch in place of four.
- **SB3 PPO**: Stable-Baselines3, 4,000 steps. "better": `n_steps=128, learning_rate=1e-3` in place of `n_steps=512`.
  "bug": `gamma=0`.

OUTCOMES

A head is another state on the same seeds, or base itself on other seeds: "reshuffled", a change that alters every
random number and nothing else, as it is and with every outcome worse by the margin. 200 gates each (1,000 of the
latter) draw their pairs from the stored ones with replacement and take their looks by the package's own rule. The
printed power is that of `gate` for a head that equals base, at the standard deviation of the stored pairs; in brackets,
by how many standard errors the share that passed (BETTER, NOT WORSE) differs.

RATES
"""


def page(trainers: tuple[Trainer, ...]) -> str:
    """Return the page."""
    titles = f"trainer | head | pairs | {' | '.join(VERDICTS)} | printed power | pairs used"
    outcomes = [
        [trainer.name, f"{trainer.margin:g}", state, values.size, f"{values.mean():.1f}", f"{values.std(ddof=1):.1f}"]
        for trainer in trainers
        for state, values in trainer.outcomes.items()
    ]
    text = TEXT.replace("RULES", rules()).replace("RATES", "\n".join(table(titles, resampled(trainers))))
    return text.replace("OUTCOMES", "\n".join(table("trainer | margin | state | runs | mean | SD", outcomes)))


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(read_stored()), encoding="utf-8")


if __name__ == "__main__":
    main()
