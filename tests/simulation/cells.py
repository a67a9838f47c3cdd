"""What is simulated: one function per table, each giving rows of rates in percent."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from simulation import counts
from simulation.laws import Unequal, ar1, latent, runs
from simulation.procedure import (
    ALPHA,
    SMALL_LEAST,
    Floats,
    Losses,
    Rule,
    anytime,
    comparisons,
    drift,
    false_claims,
    follow,
    johnson,
    planned,
    settle,
)  # fmt: skip

Row = dict[str, Any]
Rows = list[Row]
MARGIN, NO_MARGIN = 2.0, 1e-9
Plan = tuple[str, int, bool, Rule]  # name, groups, against a control, looks


def rate(events: Any, digits: int = 2) -> float:
    """In percent."""
    return round(float(np.mean(events)) * 100, digits)


def seeded(*key: object) -> np.random.Generator:
    """A generator of its own for every cell."""
    return np.random.default_rng([36, *("/".join(map(str, key)).encode())])


PLANS: tuple[Plan, ...] = (
    *((f"{pairs} pairs", 2, False, planned(pairs)) for pairs in (6, 10, 16, 20, 30)),
    ("anytime to 40", 2, False, anytime(40)),
    *((f"all pairs of {g}, {n}", g, False, planned(n))
      for g, n in ((3, 6), (3, 10), (3, 20), (4, 30), (6, 20), (12, 20))),
    *((f"{g - 1} against a control, {n}", g, True, planned(n)) for g, n in ((3, 10), (6, 20), (12, 20))),
    ("all pairs of 3, anytime to 40", 3, False, anytime(40)),
)  # fmt: skip
ONE_SHAPE = {  # name -> shape, SD of the groups in turn
    "normal, SD 0.4": ("normal", (0.4,)), "normal, SD 1": ("normal", (1.0,)), "normal, SD 1.6": ("normal", (1.6,)),
    "normal, SD 3": ("normal", (3.0,)), "normal, SD 0.8, 1.6, 3.2 in turn": ("normal", (0.8, 1.6, 3.2)),
    **{shape: (shape, (1.6,)) for shape in (
        "t with 3 degrees of freedom", "lognormal", "15 % of runs collapse", "4 % of runs collapse",
        "success in 10 episodes", "success in 50 episodes", "ceiling", "learns or not",
    )},
}  # fmt: skip
PATTERNS: dict[str, Callable[[int], Floats]] = {
    "none": lambda g: np.zeros(g), "one up": lambda g: MARGIN * (np.arange(g) == 0),
    "staircase": lambda g: MARGIN * (np.arange(g)[::-1] % 3.0),
}  # fmt: skip


def _cell(law: str, plan: Plan, pattern: str, correlation: float, number: int, again: str = "") -> Row:
    """Any false claim, any false gate, and whether all simultaneous intervals hold."""
    name, groups, against, rule = plan
    shape, sds = ONE_SHAPE[law]
    rng = seeded("one", law, name, pattern, correlation, again)
    up, of = PATTERNS[pattern](groups), comparisons(groups, against)
    true, first, second = np.array([up[i] - up[j] for i, j in of]), *np.array(of).T
    tally, step = np.zeros(3), max(500, 5_000_000 // (len(of) * rule.looks[-1]))
    for start in range(0, number, step):
        z = latent(rng, (min(step, number - start), groups, rule.looks[-1]), correlation)
        x = runs(shape, z) * np.resize(sds, groups)[:, None] + up[:, None]
        state = follow(x[:, first] - x[:, second], rule, MARGIN, coarse=shape.startswith("success"))
        gate_a, gate_b = state.not_worse(MARGIN)
        bad_gate = (gate_a & (true <= -MARGIN)) | (gate_b & (true >= MARGIN))
        held = (state.first_low <= true) & (true <= state.first_high)
        tally += [false_claims(state, true, MARGIN).any(1).sum(), bad_gate.any(1).sum(), held.all(1).sum()]
    bad, gate, at_once = (round(float(t) * 100 / number, 2) for t in tally)
    return {"false": bad, "gate": gate, "at once": at_once, "pattern": pattern, "correlation": correlation, "n": number}


def error(number: int) -> float:
    """Standard error, in points, of a rate of 5 %."""
    return 100 * float(np.sqrt(0.05 * 0.95 / number))


def one_shape() -> Rows:
    """Per law and plan the worst of correlations and differences; a rate that looks too high is measured anew."""
    found = []
    for law in ONE_SHAPE:
        kinds = {"": (-0.5, 0.0, 0.5, 0.9)}
        if law == "learns or not":
            kinds = {"": (0.0, 0.5, 0.9), ", correlation -0.5": (-0.5,)}
        for plan in PLANS:
            number = {2: 30_000, 3: 20_000, 4: 15_000, 6: 10_000, 12: 5_000}[plan[1]]
            for kind, correlations in kinds.items():
                cells = []
                for pattern in [p for p in PATTERNS if plan[1] > 2 or p != "staircase"]:
                    for correlation in correlations:
                        cell = _cell(law, plan, pattern, correlation, number)
                        if max(cell["false"], cell["gate"]) > 5 + 2 * error(number):
                            cell = _cell(law, plan, pattern, correlation, 5 * number, "anew")
                        cells.append(cell)
                worst = max(cells, key=lambda c: c["false"] - 2 * error(c["n"]))
                found.append({"law": law + kind, "plan": plan[0], **worst, "gate": max(c["gate"] for c in cells),
                              "at once": min(c["at once"] for c in cells), "cells": len(cells)})  # fmt: skip
    return found


STARTS = (15, 20, 25, 30, 40)
RARE = ((0.15, 20), (0.10, 25), (0.05, 45), (0.03, 80))  # rate of collapses in one group, and what one costs


def rare_collapses() -> Rows:
    """EQUIVALENT, or the gate, of a group that is worse by more than the margin, by the look that may say so first."""
    rules = [(f"{n} pairs", words, Rule(planned(n).looks, small_from=start)) for n in (15, 20, 30, 40)
             for words, start in (("the last look", 0), ("15 pairs", SMALL_LEAST)) if n >= 20 or not start]  # fmt: skip
    rules += [(f"anytime to {most}", f"{n} pairs", anytime(most, n)) for most in (40, 100) for n in STARTS]
    found = []
    for plan, start, rule in rules:
        row: Row = {"plan": plan, "from": start}
        for chance, depth in RARE:
            law = Unequal(correlation=0.9, rate=chance, depth=depth)
            x, _ = law.draw(seeded("rare", chance, depth), (50_000, 2, rule.looks[-1]))
            state = follow((x[:, 0] - x[:, 1] - chance * depth)[:, None], rule, MARGIN)
            row[f"{chance * 100:g} % x {depth}"] = rate(state.equivalent | state.below, 1)
            row[f"gate, {chance * 100:g} % x {depth}"] = rate(state.not_worse(MARGIN)[0], 1)
        found.append(row)
    return found


def no_difference() -> Rows:
    """Pairs at which a plan without a maximum ends where nothing differs, by the SD of a difference in margins."""
    found = []
    for start in STARTS:
        row: Row = {"from": start}
        for sd in (0.5, 1.0, 1.5, 2.0):
            d = seeded("ends", sd).standard_normal((10_000, 1, 200)) * sd * MARGIN
            state = follow(d, anytime(200, start), MARGIN)
            pairs = np.where(state.decided, state.pairs, 201)
            row[f"{sd:g}"] = f"{np.median(pairs):.0f} ({np.quantile(pairs, 0.8):.0f})"
        found.append(row)
    return found


UNEQUAL = {
    **{f"left skew {s:g}; tight (SD 0.15)": Unequal(f"left skew {s:g}", sds=(1, 0.15)) for s in (1, 2, 3.5, 6)},
    "left skew 3.5; normal of the same SD, correlation 0.5": Unequal("left skew 3.5", correlation=0.5),
    "15 % x 20, SD 3.5; SD 3.5": Unequal(sds=(3.5, 3.5), rate=0.15, depth=20),
    **{f"{chance * 100:g} % x {depth}, SD 1; SD 1, correlation 0.9": Unequal(correlation=0.9, rate=chance, depth=depth)
       for chance, depth in ((0.15, 20), (0.05, 50), (0.02, 60))},
    "normal; normal": Unequal(), "lognormal; lognormal": Unequal("lognormal", "lognormal"),
}  # fmt: skip
UNEQUAL_PLANS = (
    "6 pairs", "10 pairs", "20 pairs", "30 pairs", "anytime to 40", "all pairs of 3, 20", "5 against a control, 20",
)  # fmt: skip


def unequal_shapes() -> Rows:
    """False claims where the means are equal; how often Johnson's test disagrees with a claim, false or true."""
    found = []
    for law, shapes in UNEQUAL.items():
        row: Row = {"law": law}
        for name, groups, against, rule in PLANS:
            if name in UNEQUAL_PLANS:
                size = (20_000 if groups < 6 else 6_000, groups, rule.looks[-1])
                x, _ = shapes.draw(seeded("unequal", law, name), size)
                first, second = np.array(comparisons(groups, against)).T
                row[name] = rate((follow(x[:, first] - x[:, second], rule, NO_MARGIN).crossed != 0).any(1), 1)
        for effect in (0, 1, -1):
            x, _ = shapes.draw(seeded("johnson", law, effect), (20_000, 2, 20))
            d = x[:, 0] - x[:, 1] + effect * shapes.sds[0]
            state = follow(d[:, None], planned(20), NO_MARGIN)
            claimed = state.crossed[:, 0] != 0 if not effect else state.crossed[:, 0] == effect
            missed = np.zeros(len(d), bool)
            for k, n in enumerate(planned(20).looks):
                at = state.look[:, 0] == k
                missed[at] = johnson(d[at, :n]) > planned(20).nominal(k, np.array(ALPHA))
            row[f"said, {effect}"] = rate(missed[claimed], 0) if claimed.sum() > 100 else None
        found.append(row)
    return found


Lossy = tuple[Unequal, float, tuple[float, float], tuple[float, float]]  # how much lower, lost: at random, by outcome


def _lossy(law: Lossy, rng: np.random.Generator, number: int, pairs: int) -> Losses:
    """The first group's collapses crash; runs are lost at random, or the first's worst and the second's best."""
    shapes, lower, chances, (worst, best) = law
    x, hit = shapes.draw(rng, (number, 2, pairs))
    failed = [rng.random((number, pairs)) < chance for chance in chances]
    if worst:
        failed[0] |= x[:, 0] < np.quantile(x[:, 0], worst)
    if best:
        failed[1] |= x[:, 1] > np.quantile(x[:, 1], 1 - best)
    return Losses(x[:, 0] - lower, x[:, 1], hit[:, 0] | failed[0], failed[1], rng.random((number, pairs)) < 0.5)


def _crash(chance: float, depth: float, sd: float, correlation: float, lower: float = 0.0, other: float = 0.0) -> Lossy:
    return Unequal(sds=(sd, sd), correlation=correlation, rate=chance, depth=depth), lower, (0.0, other), (0.0, 0.0)


LOSSES: dict[str, tuple[Lossy, float]] = {  # with the declared worst
    "15 % x 20, SD 1.5, crash": (_crash(0.15, 20, 1.5, 0.0), -20.0),
    "15 % x 20, SD 1.5, correlation 0.9, crash": (_crash(0.15, 20, 1.5, 0.9), -20.0),
    "10 % x 40, SD 1, correlation 0.9, crash": (_crash(0.10, 40, 1, 0.9), -40.0),
    "5 % x 50, SD 1, correlation 0.9, crash": (_crash(0.05, 50, 1, 0.9), -50.0),
    "15 % x 20, SD 1.5, crash; B loses 5 %": (_crash(0.15, 20, 1.5, 0.0, other=0.05), -20.0),
    "A loses 20 %, B 2 %, at random": ((Unequal(), 0.0, (0.2, 0.02), (0.0, 0.0)), -10.0),
    "both lose 5 % at random": ((Unequal(), 0.0, (0.05, 0.05), (0.0, 0.0)), -10.0),
    "lognormal, both lose 5 % at random": ((Unequal("lognormal", "lognormal"), 0.0, (0.05, 0.05), (0.0, 0.0)), -10.0),
    **{f"A loses its worst {s * 100:g} %": ((Unequal(), 0.0, (0.0, 0.0), (s, 0.0)), -10.0) for s in (0.1, 0.2, 0.3)},
    "A loses its worst, B its best 20 %": ((Unequal(), 0.0, (0.0, 0.0), (0.2, 0.2)), -10.0),
}  # fmt: skip
LOST_SMALL: dict[str, tuple[Lossy, float]] = {
    "15 % x 20 crash, A 3 lower": (_crash(0.15, 20, 1, 0.9, 3.0), -20.0),
    "15 % x 20 crash, A 3 lower; B loses 5 %": (_crash(0.15, 20, 1, 0.9, 3.0, 0.05), -20.0),
    "10 % x 30 crash, A 3 lower": (_crash(0.10, 30, 1, 0.9, 3.0), -30.0),
    "5 % x 50 crash, A 2.5 lower; B loses 5 %": (_crash(0.05, 50, 1, 0.9, 2.5, 0.05), -50.0),
}


def lost_runs() -> Rows:
    """Among experiments that lost runs before their last look: claims for a group that lost one, and of smallness."""
    found = []
    for laws, sizes in ((LOSSES, (10, 20)), (LOST_SMALL, (20,))):
        for name, (law, worst) in laws.items():
            for pairs in sizes:
                rule = planned(pairs)
                lossy = _lossy(law, seeded("lost", name, pairs), 20_000, pairs)
                states, taken = settle(lossy, rule, MARGIN, worst), np.array(rule.looks)
                until = np.arange(pairs) < taken[states[0].look]
                lost = [(failed & until).any(1) for failed in (lossy.failed_a, lossy.failed_b)]
                row: Row = {"law": name, "pairs": pairs, "claim": "BETTER" if laws is LOSSES else "EQUIVALENT",
                            "n": int((lost[0] | lost[1]).sum())}  # fmt: skip
                for word, state in zip(("observed", "said"), states, strict=True):
                    sides = ((1, lost[0]), (-1, lost[1]))
                    better = [state.crossed[at, 0] == sign for sign, at in sides if at.sum() > 500]
                    small = (state.equivalent | state.below)[lost[0] | lost[1]]
                    row[word] = max(map(rate, better)) if laws is LOSSES else rate(small)
                    if laws is LOST_SMALL:
                        row[f"gate, {word}"] = rate(state.not_worse(MARGIN)[0][lost[0] | lost[1]])
                found.append(row)
    return found


def price_of_losses() -> Rows:
    """BETTER at an effect of 4 SD of a run, 20 pairs, where runs are lost at random, by the declared worst."""
    found = []
    for share in (0.02, 0.05):
        for rule in (planned(20), Rule((20,))):
            lossy = _lossy((Unequal(), -4.0, (share, share), (0.0, 0.0)), seeded("price", share), 20_000, 20)
            row: Row = {"lost": f"{share * 100:g} %", "looks": ", ".join(map(str, rule.looks))}
            for worst in (None, -5.0, -10.0, -20.0, -40.0):
                observed, said = settle(lossy, rule, MARGIN, worst)
                row["observed"] = rate(observed.crossed > 0, 1)
                row["none" if worst is None else f"{worst:g}"] = rate(said.crossed > 0, 1)
            found.append(row)
    return found


def price_of_looks() -> Rows:
    """Power at a difference of one SD of a run, and pairs used."""
    found = []
    for looks in ((6, 10), (10,), (6, 10, 14, 20), (10, 14, 20), (20,), (8, 16, 20, 30), (16, 20, 30), (30,)):
        row: Row = {"looks": ", ".join(map(str, looks))}
        for correlation in (0.0, 0.5):
            z = latent(seeded("looks", looks[-1], correlation), (40_000, 2, looks[-1]), correlation)
            state = follow(z[:, :1] - z[:, 1:] + 1, Rule(looks), NO_MARGIN)
            row[f"power, {correlation:g}"] = rate(state.crossed > 0, 1)
            row[f"pairs, {correlation:g}"] = round(float(state.pairs.mean()), 1)
        found.append(row)
    return found


CHANCES = np.round(np.arange(0.05, 0.96, 0.05), 2)


def _counted(row: Row, true: Floats, law: Floats, judged: Callable[[float], Any], p: Floats, least: int) -> Row:
    """Exact rates: `law` [pairs of chances, tables], `judged` the intervals of all tables, `p` of their tests."""
    low, high = judged(counts.z_of(np.array(ALPHA)))
    claimed = counts.claims(p, low, high, ALPHA)
    cover = (law * ((low <= true[:, None] + 1e-12) & (true[:, None] <= high + 1e-12))).sum(1)
    wrong = (law @ (claimed != 0))[np.isclose(true, 0)]
    row |= {"coverage": rate(cover), "least": rate(cover.min()), "false": rate(wrong.max())}
    for margin in (0.1, 0.2):
        for words, sides in (("one-sided", 2), ("as printed", 1)):
            inner = judged(counts.z_of(np.array(sides * ALPHA)))
            inside = [(a > -margin) & (b < margin) & (least >= SMALL_LEAST) for a, b in (inner, (low, high))]
            small = law[np.isclose(np.abs(true), margin)] @ np.where(claimed == 0, *inside)
            row[f"small, {words}, {margin:g}"] = rate(small.max()) if small.size else None
    return row


def paired_counts() -> Rows:
    """McNemar and Newcombe's interval over all tables of n pairs, one look, by correlation within pairs."""
    found, (a, b) = [], (x.ravel() for x in np.meshgrid(CHANCES, CHANCES))
    for n in (10, 20, 30, 50, 100):
        table = counts.tables(n)
        p, columns = counts.mcnemar(table[:, 1], table[:, 2]), list(table.T)
        for phi in (-0.2, 0.0, 0.3, 0.6, 0.8):
            cells = counts.joint(a, b, np.array(phi))
            keep = ~np.isnan(cells[:, 0])
            found.append(_counted({"n": n, "correlation": phi}, (a - b)[keep], counts.chances(table, cells[keep]),
                                  lambda z, c=columns: counts.paired_interval(*c, z), p, n))  # fmt: skip
    return found


def unpaired_counts() -> Rows:
    """Fisher's test and Newcombe's interval over all tables of two groups."""
    found = []
    for n_a, n_b in ((10, 10), (20, 20), (50, 50), (100, 100), (10, 40), (20, 100)):
        a, b = (x.ravel() for x in np.meshgrid(np.arange(n_a + 1), np.arange(n_b + 1), indexing="ij"))
        laws = [stats.binom.pmf(np.arange(n + 1), n, CHANCES[:, None]) for n in (n_a, n_b)]
        found.append(_counted(
            {"runs": f"{n_a}, {n_b}"}, (CHANCES[:, None] - CHANCES).ravel(), np.kron(*laws),
            lambda z, c=(a, n_a, b, n_b): counts.unpaired_interval(*c, z),
            counts.fisher(n_a, n_b).ravel(), min(n_a, n_b),
        ))  # fmt: skip
    return found


def counts_at_looks() -> Rows:
    """False claims of paired 0/1 through the looks of a plan; the worst of chances and correlations."""
    found, number = [], 20_000
    for n in (16, 20, 30, 50, 100):
        worst = 0.0
        for chance in (0.05, 0.1, 0.2, 0.3, 0.5):
            for phi in (0.0, 0.6):
                law = counts.joint(*map(np.array, (chance, chance, phi)))
                kinds = seeded("counts", n, chance, phi).choice(4, (number, n), p=law / law.sum())
                worst = max(worst, rate(counts.follow_paired(kinds, planned(n)) != 0))
        found.append({"looks": ", ".join(map(str, planned(n).looks)), "false": worst, "n": number})
    return found


WELCH_SIZES = ((6, 6), (6, 10), (6, 20), (6, 40), (10, 10), (10, 20), (10, 40), (20, 20), (20, 40), (40, 40))
SYMMETRIC = ("normal", "t with 3 degrees of freedom", "uniform", "learns or not")


def welch(a: Floats, b: Floats, alpha: float) -> Floats:
    """+1, -1, 0 by Welch's t of runs [experiments, runs]."""
    parts = [x.var(-1, ddof=1) / x.shape[-1] for x in (a, b)]
    total = parts[0] + parts[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        df = total**2 / (parts[0] ** 2 / (a.shape[-1] - 1) + parts[1] ** 2 / (b.shape[-1] - 1))
        t = (a.mean(-1) - b.mean(-1)) / np.sqrt(total)
        return np.where((total > 1e-18) & (2 * stats.t.sf(np.abs(t), df) <= alpha), np.sign(t), 0.0)


def unpaired() -> Rows:
    """False claims of Welch's t, with equal SDs and with the worst ratio of them."""
    found, number = [], 40_000
    others = (("lognormal", "lognormal"), ("left skew 2", "left skew 2"), ("left skew 2", "normal"),
              ("left skew 3.5", "normal"), ("15 % of runs collapse", "normal"))  # fmt: skip
    for first, second in (*((s, s) for s in SYMMETRIC), *others):
        row: Row = {"law": first if first == second else f"{first}; {second}", "n": number}
        for sizes in WELCH_SIZES:
            rates = {}
            for ratio in (0.25, 0.5, 1.0, 2.0, 4.0):
                rng = seeded("welch", first, second, sizes, ratio)
                a, b = (runs(s, rng.standard_normal((number, n))) for s, n in zip((first, second), sizes, strict=True))
                rates[ratio] = rate(welch(ratio * a, b, ALPHA) != 0)
            row[f"{sizes[0]}, {sizes[1]}"] = [rates[1.0], max(rates.values())]
        found.append(row)
    return found


def drifting() -> Rows:
    """False claims where each group is a series over replicates, without and with the cap."""
    found = []
    for phi in (0.0, 0.3, 0.6, 0.9):
        for rule in (planned(10), planned(20), Rule((20,)), planned(30), Rule((30,))):
            x = ar1(seeded("drift", phi, rule.looks), (20_000, 2, rule.looks[-1]), phi)
            d = x[:, 0] - x[:, 1]
            state = follow(d[:, None], rule, NO_MARGIN)
            capped, claimed = np.zeros(len(d), bool), state.crossed[:, 0] != 0
            for k, n in enumerate(rule.looks):
                at = state.look[:, 0] == k
                capped[at] = np.minimum(*drift(d[at, :n])) <= 0.01 / 2
            found.append({"series": f"AR({phi:g})", "looks": ", ".join(map(str, rule.looks)), "false": rate(claimed, 1),
                          "with the cap": rate(claimed & ~capped, 1), "capped": rate(capped, 1)})  # fmt: skip
    return found


SECTIONS: dict[str, Callable[[], Rows]] = {
    "one shape": one_shape, "unequal shapes": unequal_shapes, "rare collapses": rare_collapses,
    "no difference": no_difference, "lost runs": lost_runs, "price of losses": price_of_losses,
    "price of looks": price_of_looks, "paired counts": paired_counts, "counts at looks": counts_at_looks,
    "unpaired counts": unpaired_counts, "unpaired": unpaired, "drift": drifting,
}  # fmt: skip
