"""How often plans of pairs err, and what they find, by the rules of tests/simulation: tables of docs/evidence/rates.md.

Rates are in percent, and the margin is 2. Looks are the default ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from scipy import stats
from simulation import laws, procedure
from simulation.laws import Bools, Floats, latent
from simulation.procedure import ALPHA, Rule, anytime, comparisons, default_looks, false_claims, follow

MARGIN, NO_MARGIN = 2.0, 1e-9
EXPERIMENTS = 10_000
PATHS = 500_000  # that calibrate the bounds
STRICTNESS = 5  # an extension needs as many times the evidence
RNG_SEED = 36

Rows = list[list[str]]
Plan = tuple[int, bool, Rule]  # groups, whether the last one is a control, looks


def planned(pairs: int) -> Rule:
    return Rule(default_looks(pairs), paths=PATHS)


def seeded(*key: object) -> np.random.Generator:
    """Return a generator of its own for every cell."""
    return np.random.default_rng([RNG_SEED, *"/".join(map(str, key)).encode()])


def percent(events: Bools | Floats, digits: int = 1) -> str:
    return f"{100.0 * float(np.mean(events)):.{digits}f}"


SCALES = {  # name: law, SDs of the groups in turn
    "normal, SD 0.4": ("normal", (0.4,)),
    "normal, SD 1.6": ("normal", (1.6,)),
    "normal, SD 0.8, 1.6, 3.2 in turn": ("normal", (0.8, 1.6, 3.2)),
    **{name: (name, (1.6,)) for name in laws.SHAPES if name not in ("normal", "uniform", "success in 50 episodes")},
}
PLANS: dict[str, tuple[Plan, ...]] = {  # by column
    "6 pairs": ((2, False, Rule((6,))),),
    "10 pairs": ((2, False, Rule((10,))),),
    "20 pairs": ((2, False, planned(20)),),
    "30 pairs": ((2, False, planned(30)),),
    "3 to 6 groups": ((3, False, planned(20)), (6, True, planned(20)), (6, False, Rule((10,)))),
    "no maximum, to 40": ((2, False, anytime(40)),),
}
PATTERNS: dict[str, Callable[[int], Floats]] = {  # the means of groups
    "equal": np.zeros,
    "one up": lambda groups: MARGIN * (np.arange(groups) == 0),
    "stairs": lambda groups: MARGIN * (np.arange(groups)[::-1] % 3.0),
}


def one_shape() -> Iterator[list[str]]:
    """Any false claim where all groups have one law; any false condition, and whether all intervals hold."""
    yield ["law of all groups", *PLANS, "extended to 40", "not-worse-than", "intervals"]
    for law in [*SCALES, "learns or not, negative correlation"]:
        name, is_negative, _ = law.partition(", negative")
        correlations = (-0.5, -0.7, -0.9) if is_negative else (0.0, 0.5)
        cells = [
            [worst_cell(name, plan, pattern, rho) for plan in plans for pattern in PATTERNS for rho in correlations]
            for plans in PLANS.values()
        ]
        worst = [max(cell[0] for cell in column) for column in cells]
        gate = max(cell[1] for column in cells for cell in column)
        least = min(cell[2] for column in cells for cell in column)
        further = max(extended_rate(name, pairs, rho) for pairs in (10, 20) for rho in correlations)
        yield [law, *(f"{rate:.1f}" for rate in (*worst, further, gate, least))]


def worst_cell(law: str, plan: Plan, pattern: str, correlation: float) -> tuple[float, float, float]:
    """Return `cell`, computed anew from four times as many experiments if a rate lies above 5 %."""
    rates = cell(law, plan, pattern, correlation, EXPERIMENTS)
    return cell(law, plan, pattern, correlation, 4 * EXPERIMENTS, "anew") if max(rates[:2]) > 100 * ALPHA else rates


def cell(
    law: str, plan: Plan, pattern: str, correlation: float, number: int, again: str = ""
) -> tuple[float, float, float]:
    """Return percent: any false claim, any false `not-worse-than`, and all simultaneous intervals hold."""
    groups, against, rule = plan
    rng = seeded("one", law, groups, against, rule.looks, pattern, correlation, again)
    means = PATTERNS[pattern](groups)
    first, second = np.array(comparisons(groups, against)).T
    true = means[first] - means[second]
    tally = np.zeros(3)
    for _ in range(5):
        x = outcomes(law, rng, (number // 5, groups, rule.looks[-1]), correlation) + means[:, None]
        state = follow(x[:, first] - x[:, second], rule, MARGIN, coarse=law.startswith("success"))
        gate_a, gate_b = state.not_worse(MARGIN)
        false_gate = (gate_a & (true <= -MARGIN)) | (gate_b & (true >= MARGIN))
        holds = (state.first_low <= true) & (true <= state.first_high)
        tally += [false_claims(state, true, MARGIN).any(1).sum(), false_gate.any(1).sum(), holds.all(1).sum()]
    false, gate, at_once = (100.0 * tally / (number // 5 * 5)).tolist()
    return false, gate, at_once


def outcomes(law: str, rng: np.random.Generator, size: tuple[int, int, int], correlation: float) -> Floats:
    """Return outcomes [experiments, groups, pairs] with equal means."""
    shape, sds = SCALES[law]
    return laws.runs(shape, latent(rng, size, correlation)) * np.resize(sds, size[1])[:, None]


def extended_rate(law: str, pairs: int, correlation: float) -> float:
    """Return the percentage of plans, extended to 40 pairs if they are open, that claim a difference falsely."""

    def rate(number: int, again: str = "") -> float:
        x = outcomes(law, seeded("extended", law, pairs, correlation, again), (number, 2, 40), correlation)
        return 100.0 * float(np.mean(extended(x[:, :1] - x[:, 1:], planned(pairs)) != 0))

    first = rate(EXPERIMENTS)
    return rate(4 * EXPERIMENTS, "anew") if first > 100 * ALPHA else first


def extended(d: Floats, rule: Rule) -> Floats:
    """Return +1, -1 or 0 [experiments, 1]: what a plan claims, or afterwards its extension, after every pair."""
    planned_claims = follow(d[..., : rule.looks[-1]], rule, NO_MARGIN)
    further = anytime(d.shape[-1])
    share = np.array([ALPHA / STRICTNESS])
    claims = planned_claims.crossed.copy()
    for place, look in enumerate(further.looks):
        if look > rule.looks[-1]:
            x = d[..., :look]
            t = x.mean(-1) / np.maximum(x.std(-1, ddof=1), 1e-300) * np.sqrt(look)
            has_crossed = np.abs(t) >= further.critical(place, share)[0][look]
            claims = np.where((claims == 0) & has_crossed, np.sign(t), claims)
    return claims


def no_maximum() -> Iterator[list[str]]:
    """Power at one SD of a run beside plans with a maximum, and pairs at the end where nothing differs."""
    yield ["pairs", "plan, rho 0", "no maximum, rho 0", "plan, rho 0.5", "no maximum, rho 0.5"]
    differences = {
        rho: _difference(latent(seeded("power", rho), (EXPERIMENTS, 2, 40), rho)) + 1.0 for rho in (0.0, 0.5)
    }
    open_ended = {rho: follow(d, anytime(40), NO_MARGIN) for rho, d in differences.items()}
    for pairs in (10, 20, 30, 40):
        row = [str(pairs)]
        for rho, d in differences.items():
            state = open_ended[rho]
            row.append(percent(follow(d[..., :pairs], planned(pairs), NO_MARGIN).crossed > 0, 0))
            row.append(percent((state.crossed > 0) & (state.pairs <= pairs), 0))
        yield row


def _difference(x: Floats) -> Floats:
    return x[:, :1] - x[:, 1:]


def endings() -> Iterator[list[str]]:
    """Pairs at which a plan without a maximum ends where nothing differs, by the first look that may say so."""
    sds = (0.5, 1.0, 1.5, 2.0)
    yield ["EQUIVALENT from", *(f"SD {sd:g}" for sd in sds)]
    for start in (15, procedure.OPEN_ENDED_SMALL):
        row = [f"{start} pairs"]
        for sd in sds:
            d = seeded("ends", sd).standard_normal((EXPERIMENTS // 5, 1, 120)) * sd * MARGIN
            state = follow(d, anytime(120, start), MARGIN)
            ends = np.where(state.decided, state.pairs, 121)
            row.append(f"{np.median(ends):.0f} ({np.quantile(ends, 0.8):.0f})")
        yield row


TASK_MEANS = {  # differences of the tasks, in margins
    "equal": lambda tasks: np.zeros(tasks),
    "one up": lambda tasks: (np.arange(tasks) == 0) * 1.0,
    "up and down": lambda tasks: np.where(np.arange(tasks) % 2, -2.0, 2.0),
}


def several_tasks() -> Iterator[list[str]]:
    """Any false claim on a task or on the mean, of one look; all groups of a task have one law."""
    names = ("normal", "lognormal", "15 % of runs collapse", "t with 3 degrees of freedom", "ceiling")
    yield ["tasks, seeds", *names]
    for tasks, seeds in ((2, 10), (2, 20), (4, 20), (8, 20)):
        rates = [[_tasks_rate(law, tasks, seeds, pattern) for pattern in TASK_MEANS] for law in names]
        yield [f"{tasks} tasks, {seeds} seeds", *(f"{max(row):.1f}" for row in rates)]


def _tasks_rate(law: str, tasks: int, seeds: int, pattern: str) -> float:
    z = latent(seeded("tasks", law, tasks, seeds, pattern), (EXPERIMENTS // 2, 2 * tasks, seeds), 0.3)
    true = TASK_MEANS[pattern](tasks)
    d = with_mean(laws.runs(law, z[:, :tasks]) - laws.runs(law, z[:, tasks:]) + true[:, None])
    true = np.append(true, true.mean())
    return 100.0 * float(false_claims(follow(d, Rule((seeds,)), 1.0), true, 1.0).any(1).mean())


def with_mean(d: Floats) -> Floats:
    """Append the mean over tasks to differences in margins [experiments, tasks, seeds]."""
    return np.concatenate((d, d.mean(1, keepdims=True)), axis=1)


def tuned() -> Iterator[list[str]]:
    """False claims where one group has the best of 8 equal settings, and the other one has a single setting."""
    yield ["judged on", "10 pairs", "20 pairs"]
    rates: dict[str, list[str]] = {"fresh seeds": [], "the seeds that chose": []}
    for pairs in (10, 20):
        rng = seeded("tuned", pairs)
        settings, other = rng.standard_normal((EXPERIMENTS, 8, pairs)), rng.standard_normal((EXPERIMENTS, 1, pairs))
        best = settings[np.arange(EXPERIMENTS), settings.mean(2).argmax(1)][:, None]
        fresh = rng.standard_normal((2, EXPERIMENTS, 1, pairs))
        for name, d in zip(rates, (fresh[0] - fresh[1], best - other), strict=True):
            rates[name].append(percent(follow(d, Rule((pairs,)), NO_MARGIN).crossed != 0))
    yield from ([name, *row] for name, row in rates.items())


def two_values(numbers: Iterable[int], comparisons: Iterable[int]) -> Iterator[list[str]]:
    """Any false claim of the t alone, exactly, where one run of each pair learns; comparisons are independent."""
    numbers = list(numbers)
    yield ["comparisons", *(str(pairs) for pairs in numbers)]
    for count in comparisons:
        rates = (1.0 - (1.0 - two_values_rate(pairs, ALPHA / count)) ** count for pairs in numbers)
        yield [str(count), *(f"{100.0 * rate:.1f}" for rate in rates)]


def two_values_rate(pairs: int, share: float) -> float:
    """Return the chance of a claim about `pairs` differences of +1 or -1, which vary by a very little more."""
    positive = np.arange(pairs + 1)
    mean = 2.0 * positive / pairs - 1.0
    error = np.sqrt(np.maximum(1.0 - mean**2, 1e-12) / (pairs - 1))
    claims = np.abs(mean) >= stats.t.isf(share / 2, pairs - 1) * error
    return float(stats.binom.pmf(positive, pairs, 0.5) @ claims)


EPISODES = 10  # of each run, that are pooled


def other_rules() -> Iterable[list[str]]:
    """False claims of rules that are not used; nothing differs."""
    columns = {pairs: _other_rules(pairs) for pairs in (6, 10, 20)}
    yield ["rule", *(f"{pairs} pairs" for pairs in columns)]
    for name in columns[6]:
        yield [name, *(column[name] for column in columns.values())]


def _other_rules(pairs: int) -> dict[str, str]:
    number = EXPERIMENTS // 5
    rng = seeded("others", pairs)
    a, b = rng.standard_normal((2, number, 2 * pairs))
    episodes = [x[:, :pairs, None] + rng.standard_normal((number, pairs, EPISODES)) for x in (a, b)]
    pooled_p = stats.mannwhitneyu(*(x.reshape(number, -1) for x in episodes), axis=1, method="asymptotic").pvalue
    d = a - b
    chosen = rng.integers(0, pairs, (1_000, pairs))
    resampled = np.stack([d[:, :pairs][:, draw].mean(1) for draw in chosen])
    low, high = np.quantile(resampled, (ALPHA / 2, 1 - ALPHA / 2), axis=0)
    counts = range(3, pairs + 1)
    by_t = {n: stats.ttest_1samp(d[:, :n], 0.0, axis=1).pvalue <= ALPHA for n in (*counts, 2 * pairs)}
    return {
        f"Mann-Whitney's U of pooled episodes, {EPISODES} of each run": percent(pooled_p <= ALPHA, 0),
        "percentile bootstrap of the differences": percent((low > 0) | (high < 0), 0),
        "the t test after every pair from 3 on": percent(np.any([by_t[n] for n in counts], axis=0), 0),
        "the t test, and again after twice as many pairs": percent(by_t[pairs] | by_t[2 * pairs], 0),
        "the t test": percent(by_t[pairs], 0),
    }
