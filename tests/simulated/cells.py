"""What is simulated: one function per table, each giving rows of rates in percent."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import stats

from . import counts
from .laws import ar1, latent, runs
from .procedure import (
    ALPHA, LEAST, SMALL_LEAST, Floats, Losses, Outcome, Rule, anytime, comparisons, drift, false_claims, follow,
    johnson, planned, settle,
)  # fmt: skip

Rows = list[dict[str, Any]]
MARGIN = 2.0
Plan = tuple[str, int, bool, Rule]  # name, groups, against a control, looks


def rate(events: Any, digits: int = 2) -> float:
    """In percent."""
    return round(float(np.mean(events)) * 100, digits)


def seeded(*key: object) -> np.random.Generator:
    """A generator of its own for every cell."""
    return np.random.default_rng([36, *("/".join(map(str, key)).encode())])


def plans() -> Iterator[Plan]:
    """Every design in which false claims of groups of one shape are counted."""
    for pairs in (6, 10, 16, 20, 30):
        yield f"{pairs} pairs", 2, False, planned(pairs)
    yield "anytime to 40", 2, False, anytime(40)
    for groups, against, replicates in (
        (3, False, 6), (3, False, 10), (3, False, 20), (4, False, 30), (6, False, 20), (12, False, 20),
        (3, True, 10), (6, True, 20), (12, True, 20),
    ):  # fmt: skip
        name = f"{groups - 1} against a control" if against else f"all pairs of {groups}"
        yield f"{name}, {replicates}", groups, against, planned(replicates)
    yield "all pairs of 3, anytime to 40", 3, False, anytime(40)


ONE_SHAPE = {  # name -> shape, SD of the groups in turn
    "normal, SD 0.4": ("normal", (0.4,)), "normal, SD 1": ("normal", (1.0,)), "normal, SD 1.6": ("normal", (1.6,)),
    "normal, SD 3": ("normal", (3.0,)), "normal, SD 0.8, 1.6, 3.2": ("normal", (0.8, 1.6, 3.2)),
    **{shape: (shape, (1.6,)) for shape in (
        "t with 3 degrees of freedom", "lognormal", "15 % of runs collapse", "4 % of runs collapse",
        "success in 10 episodes", "success in 50 episodes", "ceiling", "learns or not",
    )},
}  # fmt: skip
PATTERNS: dict[str, Callable[[int], Floats]] = {
    "none": lambda g: np.zeros(g), "one up": lambda g: MARGIN * (np.arange(g) == 0),
    "staircase": lambda g: MARGIN * (np.arange(g)[::-1] % 3.0),
}  # fmt: skip


def _experiments(groups: int) -> int:
    return {2: 10_000, 3: 10_000, 4: 8_000, 6: 6_000}.get(groups, 2_500)


def _one_shape(law: str, plan: Plan, pattern: str, correlation: float, number: int, again: str = "") -> dict[str, Any]:
    """A cell: any false claim, any false gate, and whether all simultaneous intervals hold."""
    name, groups, against, rule = plan
    shape, sds = ONE_SHAPE[law]
    rng = seeded("a", law, name, pattern, correlation, again)
    up, of = PATTERNS[pattern](groups), comparisons(groups, against)
    true, first, second = np.array([up[i] - up[j] for i, j in of]), *np.array(of).T
    tally = np.zeros(3)
    step = max(500, 5_000_000 // (len(of) * rule.looks[-1]))
    for start in range(0, number, step):
        z = latent(rng, (min(step, number - start), groups, rule.looks[-1]), correlation)
        x = runs(shape, z) * np.resize(sds, groups)[:, None] + up[:, None]
        state = follow(x[:, first] - x[:, second], rule, MARGIN, coarse=shape.startswith("success"))
        gate_a, gate_b = state.not_worse(MARGIN)
        bad_gate = (gate_a & (true <= -MARGIN)) | (gate_b & (true >= MARGIN))
        held = (state.first_low <= true) & (true <= state.first_high)
        tally += [false_claims(state, true, MARGIN).any(1).sum(), bad_gate.any(1).sum(), held.all(1).sum()]
    bad, gate, at_once = (round(float(t) * 100, 2) for t in tally / number)
    return {"false": bad, "gate": gate, "at once": at_once, "pattern": pattern, "correlation": correlation, "n": number}


def error(row: dict[str, Any]) -> float:
    """Standard error, in points, of a rate of 5 %."""
    return float(100 * np.sqrt(0.05 * 0.95 / row["n"]))


def one_shape() -> Rows:
    """Per law and plan the worst of correlations and differences; a rate that looks too high is measured anew."""
    found = []
    for law in ONE_SHAPE:
        for plan in plans():
            patterns = [p for p in PATTERNS if plan[1] > 2 or p != "staircase"]
            kinds = {"": (-0.5, 0.0, 0.5, 0.9)}
            if law == "learns or not":
                kinds = {"": (0.0, 0.5, 0.9), ", correlation -0.5": (-0.5,)}
            for kind, correlations in kinds.items():
                cells = []
                for pattern in patterns:
                    for correlation in correlations:
                        cell = _one_shape(law, plan, pattern, correlation, _experiments(plan[1]))
                        if max(cell["false"], cell["gate"]) > 5 + 2 * error(cell):
                            anew = 100_000 if plan[1] < 12 else 20_000
                            cell = _one_shape(law, plan, pattern, correlation, anew, "anew")
                        cells.append(cell)
                worst = max(cells, key=lambda c: c["false"] - 2 * error(c))
                gate = max(cells, key=lambda c: c["gate"])
                found.append({
                    "law": law + kind, "plan": plan[0], **worst, "at once": min(c["at once"] for c in cells),
                    "gate": gate["gate"], "gate n": gate["n"], "cells": len(cells),
                })  # fmt: skip
    return found


RARE = ((0.15, 20), (0.10, 25), (0.05, 45), (0.03, 80))  # rate of collapses in B alone, and what one costs


def _rare(key: str, rule: Rule, chance: float, depth: float, number: int = 50_000) -> Outcome:
    """SD 1, correlation 0.9: B is lower by more than the margin, all of it in rare collapses."""
    rng = seeded(key, chance, depth)
    z = latent(rng, (number, 2, rule.looks[-1]), 0.9)
    z[:, 1] -= depth * (rng.random((number, rule.looks[-1])) < chance)
    return follow(z[:, :1] - z[:, 1:], rule, MARGIN)


def rare_collapses() -> Rows:
    """False EQUIVALENT, and the gate "B not-worse-than A", by the look from which they are allowed."""
    rules = [(f"{n} pairs, {words}", Rule(planned(n).looks, small_from=start))
             for n in (15, 20, 30, 40) for words, start in (("last look", 0), ("every look", SMALL_LEAST))
             if n >= 20 or not start]  # fmt: skip
    rules += [(f"anytime to {most}, from {n}", anytime(most, n)) for most in (40, 100) for n in (15, 20, 25, 30, 40)]
    found = []
    for name, rule in rules:
        row: dict[str, Any] = {"plan": name}
        for chance, depth in RARE:
            state = _rare("e", rule, chance, depth)
            key = f"{chance * 100:g} % x {depth}"
            row[key] = rate(state.equivalent | state.below, 1)
            row[f"gate, {key}"] = rate(state.not_worse(MARGIN)[1], 1)
        found.append(row)
    return found


def no_difference_ends() -> Rows:
    """Pairs at which a plan without a maximum ends where nothing differs, by the SD of a difference in margins."""
    found = []
    for start in (15, 20, 25, 30, 40):
        row: dict[str, Any] = {"from": start}
        for sd in (0.5, 1.0, 1.5, 2.0):
            d = seeded("ends", sd).standard_normal((10_000, 1, 200)) * sd * MARGIN
            state = follow(d, anytime(200, start), MARGIN)
            pairs = np.where(state.decided, state.pairs, 201)
            row[f"{sd:g}"] = f"{np.median(pairs):.0f} ({np.quantile(pairs, 0.8):.0f})"
        found.append(row)
    return found


def _skewed(skewness: float) -> Callable[[np.random.Generator, int, int, int], Floats]:
    """The first group is skewed to the left, the others are tight."""

    def draw(rng: np.random.Generator, number: int, groups: int, pairs: int) -> Floats:
        z = latent(rng, (number, groups, pairs), 0.0)
        z[:, 0] = runs(f"left skew {skewness:g}", z[:, 0])
        z[:, 1:] *= 0.15
        return z

    return draw


def _same_sd(rng: np.random.Generator, number: int, groups: int, pairs: int) -> Floats:
    z = latent(rng, (number, groups, pairs), 0.5)
    z[:, 0] = runs("left skew 3.5", z[:, 0])
    return z


def _collapsing(
    chance: float, depth: float, sd: float, correlation: float,
) -> Callable[[np.random.Generator, int, int, int], Floats]:  # fmt: skip
    """Runs of the first group collapse now and then; its mean is that of the others."""

    def draw(rng: np.random.Generator, number: int, groups: int, pairs: int) -> Floats:
        z = latent(rng, (number, groups, pairs), correlation) * sd
        z[:, 0] += depth * (chance - (rng.random((number, pairs)) < chance))
        return z

    return draw


UNEQUAL = {
    **{f"left skew {s:g}; tight (0.15 SD)": (_skewed(s), 1.0) for s in (1, 2, 3.5, 6)},
    "left skew 3.5; normal of the same SD, correlation 0.5": (_same_sd, 1.0),
    "15 % x 20, SD 3.5; SD 3.5": (_collapsing(0.15, 20, 3.5, 0.0), 3.5),
    "15 % x 20, SD 1; SD 1, correlation 0.9": (_collapsing(0.15, 20, 1, 0.9), 1.0),
    "5 % x 50, SD 1; SD 1, correlation 0.9": (_collapsing(0.05, 50, 1, 0.9), 1.0),
    "2 % x 60, SD 1; SD 1, correlation 0.9": (_collapsing(0.02, 60, 1, 0.9), 1.0),
    "normal; normal": (_collapsing(0.0, 0, 1, 0.0), 1.0),
    "lognormal; lognormal": (lambda rng, *size: runs("lognormal", latent(rng, size, 0.0)), 1.0),
}


def unequal_shapes() -> Rows:
    """False claims where the means are equal, and how often Johnson's test disagrees with a claim."""
    designs = [p for p in plans() if p[0] in ("6 pairs", "10 pairs", "20 pairs", "30 pairs", "anytime to 40",
                                              "all pairs of 3, 20", "5 against a control, 20")]  # fmt: skip
    found = []
    for law, (draw, sd) in UNEQUAL.items():
        row: dict[str, Any] = {"law": law}
        for name, groups, against, rule in designs:
            number = 20_000 if groups < 6 else 6_000
            x = draw(seeded("b", law, name), number, groups, rule.looks[-1])
            first, second = np.array(comparisons(groups, against)).T
            state = follow(x[:, first] - x[:, second], rule, 1e-9)
            row[name] = rate((state.crossed != 0)[:, (first == 0) | (second == 0)].any(1) if law.startswith("?")
                             else (state.crossed != 0).any(1), 1)  # fmt: skip
        for pairs in (10, 20):
            for effect in (0, 1, -1):
                row[f"said, {pairs}, {effect}"] = _disagrees(draw, planned(pairs), effect * sd, law)
        found.append(row)
    return found


def _disagrees(draw: Callable[..., Floats], rule: Rule, effect: float, law: str) -> float | None:
    """Of claims (true ones, where there is an effect) the share whose p by Johnson misses the bound of the look."""
    x = draw(seeded("johnson", law, rule.looks, effect), 20_000, 2, rule.looks[-1])
    d = x[:, 0] - x[:, 1] + effect
    state = follow(d[:, None], rule, 1e-9)
    claimed = state.crossed[:, 0] != 0 if not effect else state.crossed[:, 0] == np.sign(effect)
    missed = np.zeros(len(d), bool)
    for k, n in enumerate(rule.looks):
        at = claimed & (state.look[:, 0] == k)
        missed[at] = johnson(d[at, :n]) > rule.nominal(k, np.array(ALPHA))
    return rate(missed[claimed], 0) if claimed.sum() > 100 else None


Lossy = Callable[[np.random.Generator, int, int], Losses]


def _crashing(
    chance: float, depth: float, sd: float, correlation: float, lower: float = 0.0, other: float = 0.0,
) -> Lossy:  # fmt: skip
    """Collapses of A crash instead of being recorded; its mean, with them, is lower by `lower`."""

    def draw(rng: np.random.Generator, number: int, pairs: int) -> Losses:
        z = latent(rng, (number, 2, pairs), correlation) * sd
        hit = rng.random((number, pairs)) < chance
        a = z[:, 0] + chance * depth - lower - depth * hit
        return Losses(a, z[:, 1], hit, rng.random(hit.shape) < other, rng.random(hit.shape) < 0.5)

    return draw


def _losing(rate_a: float, rate_b: float, shape: str = "normal", effect: float = 0.0) -> Lossy:
    """At random."""

    def draw(rng: np.random.Generator, number: int, pairs: int) -> Losses:
        z = runs(shape, latent(rng, (number, 2, pairs), 0.0))
        a, b, whole = (rng.random((number, pairs)) for _ in range(3))
        return Losses(z[:, 0] + effect, z[:, 1], a < rate_a, b < rate_b, whole < 0.5)

    return draw


def _losing_worst(share: float, shape: str = "normal", best_of_b: bool = False) -> Lossy:
    """A's worst runs are lost, and B's best ones."""

    def draw(rng: np.random.Generator, number: int, pairs: int) -> Losses:
        z = latent(rng, (number, 2, pairs), 0.0)
        limit = stats.norm.ppf(share)
        x = runs(shape, z)
        hit = z[:, 1] > -limit if best_of_b else np.zeros((number, pairs), bool)
        return Losses(x[:, 0], x[:, 1], z[:, 0] < limit, hit, rng.random(hit.shape) < 0.5)

    return draw


LOSSES: dict[str, tuple[Lossy, float]] = {  # with the declared worst
    "15 % x 20 crash, SD 1.5": (_crashing(0.15, 20, 1.5, 0.0), -20.0),
    "15 % x 20 crash, SD 1.5, correlation 0.9": (_crashing(0.15, 20, 1.5, 0.9), -20.0),
    "10 % x 40 crash, SD 1, correlation 0.9": (_crashing(0.10, 40, 1, 0.9), -40.0),
    "5 % x 50 crash, SD 1, correlation 0.9": (_crashing(0.05, 50, 1, 0.9), -50.0),
    "15 % x 20 crash, B loses 5 % at random": (_crashing(0.15, 20, 1.5, 0.0, other=0.05), -20.0),
    "A loses 20 %, B 2 %, at random": (_losing(0.2, 0.02), -10.0),
    "both lose 5 % at random": (_losing(0.05, 0.05), -10.0),
    "both lose 5 % at random, lognormal": (_losing(0.05, 0.05, "lognormal"), -10.0),
    "A loses its worst 10 %": (_losing_worst(0.1), -10.0), "A loses its worst 20 %": (_losing_worst(0.2), -10.0),
    "A loses its worst 30 %": (_losing_worst(0.3), -10.0),
    "A loses its worst, B its best 20 %": (_losing_worst(0.2, best_of_b=True), -10.0),
}
LOST_SMALL: dict[str, tuple[Lossy, float]] = {
    "15 % x 20 crash, A 3 lower": (_crashing(0.15, 20, 1, 0.9, 3.0), -20.0),
    "15 % x 20 crash, A 3 lower, B loses 5 %": (_crashing(0.15, 20, 1, 0.9, 3.0, 0.05), -20.0),
    "10 % x 30 crash, A 3 lower": (_crashing(0.10, 30, 1, 0.9, 3.0), -30.0),
    "5 % x 50 crash, A 2.5 lower, B loses 5 %": (_crashing(0.05, 50, 1, 0.9, 2.5, 0.05), -50.0),
}


def _upto(failed: Floats, state: Outcome, rule: Rule) -> Floats:
    """How many runs were lost before the look that was taken last."""
    return np.asarray([f[:n].sum() for f, n in zip(failed, np.array(rule.looks)[state.look[:, 0]], strict=True)])


def lost_runs() -> Rows:
    """False BETTER for a group that lost a run, as observed and as said; false claims of smallness likewise."""
    found = []
    for table, laws in (("better", LOSSES), ("small", LOST_SMALL)):
        for law, (draw, worst) in laws.items():
            for pairs in (10, 20) if table == "better" else (15, 20):
                rule = planned(pairs)
                runs_ = draw(seeded("c", law, pairs), 20_000, pairs)
                observed, said = settle(runs_, rule, MARGIN, worst)
                lost = [_upto(f, observed, rule) for f in (runs_.failed_a, runs_.failed_b)]
                row = {"table": table, "law": law, "pairs": pairs}
                if table == "better":
                    sides = [(state.crossed[:, 0] == sign) & (of > 0) for state in (observed, said)
                             for sign, of in ((1, lost[0]), (-1, lost[1]))]  # fmt: skip
                    of_lost = [max(np.mean(x[of > 0]) if (of > 0).sum() > 500 else 0 for x, of in zip(s, lost, strict=True))
                               for s in (sides[:2], sides[2:])]  # fmt: skip
                    row |= {"observed": rate(of_lost[0]), "said": rate(of_lost[1]),
                            "any, observed": rate(observed.crossed != 0), "any, said": rate(said.crossed != 0)}  # fmt: skip
                    row["n"] = int(max((x > 0).sum() for x in lost))
                else:
                    any_ = (lost[0] + lost[1] > 0)[:, None]
                    for name, state in (("observed", observed), ("said", said)):
                        row[name] = rate((state.equivalent | state.below)[any_])
                        row[f"gate, {name}"] = rate(state.not_worse(MARGIN)[0][any_])
                    row["n"] = int(any_.sum())
                found.append(row)
    return found


def price_of_losses() -> Rows:
    """BETTER at an effect of 4 SD of a run, 20 pairs, where runs are lost at random."""
    found = []
    for share in (0.0, 0.02, 0.05):
        for words, rule in (("looks 10, 14, 20", planned(20)), ("one look", Rule((20,)))):
            runs_ = _losing(share, share, effect=4.0)(seeded("price", share, words), 20_000, 20)
            row: dict[str, Any] = {"lost": f"{share * 100:g} %", "looks": words}
            for worst in (None, -5.0, -10.0, -20.0, -40.0):
                observed, said = settle(runs_, rule, MARGIN, worst)
                row["observed"] = rate(observed.crossed[:, 0] > 0, 1)
                row["none" if worst is None else f"{worst:g}"] = rate(said.crossed[:, 0] > 0, 1)
            found.append(row)
    return found


def price_of_looks() -> Rows:
    """Power at a difference of one SD of a run, and pairs used."""
    found = []
    for looks in ((6, 10), (10,), (6, 10, 14, 20), (10, 14, 20), (20,), (8, 16, 20, 30), (16, 20, 30), (30,)):
        row: dict[str, Any] = {"looks": ", ".join(map(str, looks))}
        for correlation in (0.0, 0.5):
            z = latent(seeded("f", looks[-1], correlation), (40_000, 2, looks[-1]), correlation)
            state = follow(z[:, :1] - z[:, 1:] + 1, Rule(looks), 1e-9)
            row[f"power, {correlation:g}"] = rate(state.crossed > 0, 1)
            row[f"pairs, {correlation:g}"] = round(float(state.pairs.mean()), 1)
        found.append(row)
    return found


def paired_counts() -> Rows:
    """Exact rates of McNemar and Newcombe's interval over all tables of n pairs, by correlation within pairs."""
    found = []
    grid = np.round(np.arange(0.05, 0.96, 0.05), 2)
    p, q = (x.ravel() for x in np.meshgrid(grid, grid))
    for n in (10, 20, 50, 100):
        table = counts.tables(n)
        columns = list(table.T)
        t = counts.mcnemar(columns[1], columns[2])
        claimed = {m: counts.claims(t, *counts.paired_interval(*columns, counts.z_of(ALPHA / m)), ALPHA / m) for m in (1, 3)}
        low, high = counts.paired_interval(*columns, counts.z_of(ALPHA))
        low2, high2 = counts.paired_interval(*columns, counts.z_of(2 * ALPHA))
        for phi in (-0.2, 0.0, 0.3, 0.6):
            cells = counts.joint(p, q, phi)
            keep = ~np.isnan(cells[:, 0])
            a, b, law = p[keep], q[keep], counts.chances(table, cells[keep])
            true = (a - b)[:, None]
            cover = (law * ((low <= true + 1e-12) & (true <= high + 1e-12))).sum(1)
            null = np.isclose(a, b)
            row = {"n": n, "correlation": phi, "coverage": round(float(cover.mean() * 100), 2),
                   "least coverage": round(float(cover.min() * 100), 2)}  # fmt: skip
            for m, word in claimed.items():
                row[f"false, {m}"] = round(float((law[null] @ (word != 0)).max() * 100), 2)
            for margin in (0.1, 0.2):
                edge = np.isclose(np.abs(a - b), margin)
                small = (claimed[1] == 0) & (low2 > -margin) & (high2 < margin) & (n >= SMALL_LEAST)
                small |= (claimed[1] != 0) & (low > -margin) & (high < margin) & (n >= SMALL_LEAST)
                row[f"small, {margin:g}"] = round(float((law[edge] @ small).max() * 100), 2) if edge.any() else None
            found.append(row)
    return found


def paired_counts_at_looks() -> Rows:
    """The same claims through the looks of a plan, where the chances of both groups are equal; the worst chance."""
    found = []
    for n in (16, 20, 30, 50, 100):
        worst, number = 0.0, 20_000
        for chance in (0.05, 0.1, 0.2, 0.3, 0.5):
            for phi in (0.0, 0.6):
                law = counts.joint(np.array(chance), np.array(chance), np.array(phi))
                kinds = seeded("looks", n, chance, phi).choice(4, (number, n), p=law / law.sum())
                worst = max(worst, rate(counts.follow_paired(kinds, planned(n), 0.1)[0] != 0))
        found.append({"looks": ", ".join(map(str, planned(n).looks)), "false": worst, "n": number})
    return found


def unpaired_counts() -> Rows:
    """Exact rates of Fisher's test and Newcombe's interval."""
    found = []
    grid = np.round(np.arange(0.05, 0.96, 0.05), 2)
    for n_a, n_b in ((10, 10), (20, 20), (50, 50), (100, 100), (10, 40), (20, 100)):
        a, b = np.meshgrid(np.arange(n_a + 1), np.arange(n_b + 1), indexing="ij")
        exact = counts.fisher(n_a, n_b)
        low, high = counts.unpaired_interval(a, n_a, b, n_b, counts.z_of(ALPHA))
        low2, high2 = counts.unpaired_interval(a, n_a, b, n_b, counts.z_of(2 * ALPHA))
        claimed = counts.claims(exact, low, high, ALPHA)
        law_a, law_b = (stats.binom.pmf(np.arange(n + 1), n, grid[:, None]) for n in (n_a, n_b))
        true = grid[:, None] - grid[None]
        cover = np.array([[law_a[i] @ ((low <= true[i, j] + 1e-12) & (true[i, j] <= high + 1e-12)) @ law_b[j]
                           for j in range(len(grid))] for i in range(len(grid))])  # fmt: skip
        row: dict[str, Any] = {
            "runs": f"{n_a}, {n_b}", "coverage": round(float(cover.mean() * 100), 2),
            "least coverage": round(float(cover.min() * 100), 2),
            "false": round(float(max(law_a[i] @ (claimed != 0) @ law_b[i] for i in range(len(grid))) * 100), 2),
        }  # fmt: skip
        for margin in (0.1, 0.2):
            small = (claimed == 0) & (low2 > -margin) & (high2 < margin) | (claimed != 0) & (low > -margin) & (high < margin)
            small &= min(n_a, n_b) >= SMALL_LEAST
            edges = [(i, j) for i in range(len(grid)) for j in range(len(grid)) if np.isclose(abs(true[i, j]), margin)]
            row[f"small, {margin:g}"] = round(float(max(law_a[i] @ small @ law_b[j] for i, j in edges) * 100), 2)
        found.append(row)
    return found


WELCH_SIZES = ((6, 6), (6, 10), (6, 20), (6, 40), (10, 10), (10, 20), (10, 40), (20, 20), (20, 40), (40, 40))


def welch_rejects(a: Floats, b: Floats, alpha: float) -> Floats:
    """+1, -1, 0 by Welch's t of runs [experiments, runs]."""
    parts = [x.var(-1, ddof=1) / x.shape[-1] for x in (a, b)]
    total = parts[0] + parts[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        df = total**2 / (parts[0] ** 2 / (a.shape[-1] - 1) + parts[1] ** 2 / (b.shape[-1] - 1))
        t = (a.mean(-1) - b.mean(-1)) / np.sqrt(total)
        return np.where((total > 1e-18) & (2 * stats.t.sf(np.abs(t), df) <= alpha), np.sign(t), 0.0)


def welch() -> Rows:
    """False claims of Welch's t; the worst of SD ratios 1/4 to 4, and of sizes where the first group is smaller."""
    found = []
    shapes = [(s, s) for s in ("normal", "t with 3 degrees of freedom", "uniform", "learns or not", "lognormal", "left skew 2")]
    for first, second in [*shapes, ("left skew 2", "normal"), ("left skew 3.5", "normal"), ("15 % of runs collapse", "normal")]:
        row: dict[str, Any] = {"law": first if first == second else f"{first}; {second}", "n": 20_000}
        for sizes in WELCH_SIZES:
            rates = {}
            for ratio in (0.25, 0.5, 1.0, 2.0, 4.0):
                rng = seeded("h", first, second, sizes, ratio)
                a, b = (runs(shape, rng.standard_normal((row["n"], n)))
                        for shape, n in zip((first, second), sizes, strict=True))  # fmt: skip
                rates[ratio] = rate(welch_rejects(ratio * a, b, ALPHA) != 0)
            worst = max(rates, key=lambda r: rates[r])
            row[f"{sizes[0]}, {sizes[1]}"] = [rates[1.0], rates[worst], worst]
        found.append(row)
    return found


def drifting() -> Rows:
    """False claims where each group is a series over replicates, without and with the cap."""
    found = []
    for phi in (0.0, 0.3, 0.6, 0.9):
        for pairs in (10, 20, 30):
            rule = planned(pairs)
            x = ar1(seeded("i", phi, pairs), (20_000, 2, pairs), phi)
            d = x[:, 0] - x[:, 1]
            state = follow(d[:, None], rule, 1e-9)
            capped = np.zeros(len(d), bool)
            for k, n in enumerate(rule.looks):
                at = state.look[:, 0] == k
                trend, lag = drift(d[at, :n])
                capped[at] = np.minimum(trend, lag) <= 0.01 / 2
            claimed = state.crossed[:, 0] != 0
            found.append({"series": f"AR({phi:g})", "pairs": pairs, "false": rate(claimed, 1),
                          "with the cap": rate(claimed & ~capped, 1), "capped": rate(capped, 1)})  # fmt: skip
    return found


SECTIONS: dict[str, Callable[[], Rows]] = {
    "rare collapses": rare_collapses, "no difference": no_difference_ends, "one shape": one_shape,
    "unequal shapes": unequal_shapes, "lost runs": lost_runs, "price of losses": price_of_losses,
    "price of looks": price_of_looks, "paired counts": paired_counts, "counts at looks": paired_counts_at_looks,
    "unpaired counts": unpaired_counts, "welch": welch, "drift": drifting,
}  # fmt: skip
