"""The tables of docs/evidence/statistics.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from simulation import families, laws, naive, rules
from simulation.results import Limit, Row
from simulation.tasks import NO_STOP, RHOS, SHIFTS, SPREADS, STOP_SPREADS


class Found:
    """Rows by what they are."""

    def __init__(self, found: Sequence[Row]) -> None:
        self._found = found

    def of(self, part: str, rule: str, *, law: str = "", truth: str = "", rho: float | None = None) -> list[Row]:
        """Those that fit; of every promised law unless one is named."""
        return [
            row for row in self._found
            if (row.part, row.rule) == (part, rule)
            and (row.law == law if law else row.limited)
            and (not truth or row.truth == truth)
            and (rho is None or row.rho == rho)
        ]  # fmt: skip


def introduction(found: Sequence[Row], compared: int) -> str:
    """What all tables have in common; `compared` experiments of each rule were decided by both codes."""
    sizes = {part: max(row.experiments for row in found if row.part == part) for part in ("pairs", "naive")}
    return (
        f"Rates in percent over {sizes['pairs']:,} simulated experiments per law and correlation (naive "
        f"rules: {sizes['naive']:,}). A cell is the worst of correlations 0, 0.3 and 0.6 "
        "within pairs; in brackets the end of its 95 % interval (Clopper-Pearson) that the limit is about. On "
        f"{compared:,} experiments of each rule the simulated procedure gave the decisions and intervals of "
        "`esper_ab.verdict.follow`."
    )


def engine(found: Sequence[Row], counts: Mapping[str, Mapping[str, int]]) -> str:
    """What the engine found, beside what was simulated of the same rule and law."""
    said = []
    for truth, what in (("none", "without an effect"), ("d=1", "with d = 1")):
        (row,) = (
            row for row in found
            if (row.part, row.rule, row.law, row.rho, row.truth) == ("pairs", "10 pairs", "device", 0.3, truth)
        )  # fmt: skip
        claims, experiments = counts[truth].get("claims", 0), counts[truth]["experiments"]
        share = _percent(row.rate("claims"))
        said.append(f"{what} it claimed a difference in {claims} of {experiments} ({share} % of the simulated ones)")
    return (
        "**Through the engine**: planner, coordinator, journal and looks with fake workers, 10 pairs, 2 points more on "
        f"one lane, correlation 0.3: {' and '.join(said)}. Each decision was the one that the simulated procedure "
        "comes to on the same outcomes."
    )


def verdict(limits: Sequence[Limit], broken: Sequence[str]) -> str:
    """How many promises were checked, and which do not hold."""
    return "\n".join([f"{len(limits)} limits checked, {len(broken)} broken.", *(f"- {line}" for line in broken)])


def tables(found: Sequence[Row]) -> list[str]:
    """All tables, with the sentences that say what they are."""
    tables = Found(found)
    return [
        "**False claims when nothing differs** (limit: upper end 5.6). No comparison stops for being equivalent here; "
        "such stops only spare false claims.",
        _by_law(tables, _error),
        "**Coverage of the interval printed at the last look** (limit: lower end 94.5): the worst of true differences "
        "0, the margin, d = 1 and d = 2, with every stop.",
        _by_law(tables, _coverage),
        "**Equivalence claimed when the true difference is the margin** (2 points; limit: upper end 5.6).",
        _by_law(tables, _equivalence),
        f"**Power at d = 1** ({laws.OUTCOME_SD:.2f} points), normal law; in brackets the mean number of pairs used. "
        "Last columns: equivalence found when nothing differs.",
        _power(tables),
        f"Power when 15 % of runs collapse by {laws.DEPTH:g} points, same difference:",
        _collapses(tables),
        "**Rules that are not used here**: claims when nothing differs, at a nominal 5 %, normal law without "
        "correlation; in brackets the worst law and correlation of those above. "
        f"The winner of the last episode is the wrong one, at d = 1, in {_wrong_winner(tables)}.",
        _naive(tables),
    ]


def _grid(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _precise(share: float) -> str:
    return f"{100 * share:.2f}"


def _by_law(found: Found, cell: Callable[[list[Row]], str]) -> str:
    names = [rule.name for rule in rules.PAIR_RULES]
    body = [[law.title, *(cell(found.of("pairs", name, law=law.name)) for name in names)] for law in laws.LAWS]
    return _grid(["law", *names], body)


def _worst(rows: Sequence[Row], what: str) -> tuple[float, float]:
    """Rate and upper end of the row with the largest rate."""
    row = max(rows, key=lambda row: row.rate(what))
    return row.rate(what), row.limits(what)[1]


def _error(rows: list[Row]) -> str:
    rate, high = _worst([row for row in rows if row.truth == NO_STOP], "wrong")
    return f"{_precise(rate)} ({_precise(high)})"


def _coverage(rows: list[Row]) -> str:
    rate, high = _worst([row for row in rows if row.truth in SHIFTS], "missed 0")
    return f"{_precise(1 - rate)} ({_precise(1 - high)})"


def _equivalence(rows: list[Row]) -> str:
    rate, high = _worst([row for row in rows if row.truth == "margin"], "equivalent")
    return f"{_precise(rate)} ({_precise(high)})"


def _power(found: Found) -> str:
    body = []
    for rule in rules.PAIR_RULES:
        line = [rule.name]
        for rho in RHOS:
            (row,) = found.of("pairs", rule.name, law="normal", truth="d=1", rho=rho)
            line.append(f"{_percent(row.rate('claims'))} ({row.rate('replicates'):.1f})")
        for rho in RHOS:
            (row,) = found.of("pairs", rule.name, law="normal", truth="none", rho=rho)
            line.append(_percent(row.rate("equivalent")))
        body.append(line)
    head = ["rule", *(f"correlation {rho:g}" for rho in RHOS), *(f"equivalent, {rho:g}" for rho in RHOS)]
    return _grid(head, body)


def _collapses(found: Found) -> str:
    body = []
    for name in ("10 pairs", "20 pairs"):
        powers = [found.of("pairs", name, law="collapses", truth="d=1", rho=rho)[0].rate("claims") for rho in RHOS]
        body.append([name, *map(_percent, powers)])
    return _grid(["rule", *(f"correlation {rho:g}" for rho in RHOS)], body)


def stops(found: Sequence[Row]) -> str:
    """The tables of stops for futility, and of plans in which positions cannot matter."""
    tables, body = Found(found), []
    for rule in rules.STOP_RULES:
        for sd in STOP_SPREADS:
            line, both = [f"{rule.name}, SD {sd:g}"], (rule.name, rules.FUTILE_RULES[rule.name].name)
            none, margin = (
                [tables.of("stops", name, truth=f"{truth}, SD {sd:g}")[0] for name in both]
                for truth in ("none", "margin")
            )
            line += [f"{_precise(row.rate('false'))} ({_precise(row.limits('false')[1])})" for row in none]
            line += [_percent(row.rate("found")) for row in margin]
            line += [_percent(none[1].rate("futile")), _percent(margin[1].rate("stopped"))]
            line += ["{:.1f} → {:.1f}".format(*(row.rate("replicates") for row in rows)) for rows in (none, margin)]
            body.append(line)
    head = [
        "rule, SD of runs", "false", "false, with stops", "found", "found, with stops", "stopped, none",
        "stopped, margin", "pairs, none", "pairs, margin",
    ]  # fmt: skip
    free = []
    for rule in rules.PAIR_RULES[: len(rules.FREE_RULES)]:
        line = [rule.name]
        for name in (rule.name, f"{rule.name}, positions cannot matter"):
            rate, high = _worst(tables.of("positions", name, truth=NO_STOP), "wrong")
            line.append(f"{_precise(rate)} ({_precise(high)})")
            for rho in RHOS:
                (row,) = tables.of("positions", name, law="normal", truth="d=1", rho=rho)
                line.append(_percent(row.rate("claims")))
        free.append(line)
    powers = [f"power, {rho:g}" for rho in RHOS]
    experiments = tables.of("positions", "6 pairs", law="normal")[0].experiments
    return "\n\n".join([
        f"**Stops for futility** (`--futility {rules.KEPT:g}`; margin {rules.MARGIN:g}; {found[0].experiments:,} "
        "experiments, normal law without correlation, each rule as it is and with stops, on the same runs). False "
        "claims of any kind where nothing differs, with the upper end of the 95 % interval (limit 5.6); differences of "
        f"the margin that are found; stopped where nothing differs, and where one group is a margin higher (limit "
        f"{100 * (1 - rules.KEPT):.0f} for each comparison that differs; here: any); pairs used on average, without → "
        "with stops, of the comparison that takes most.",
        _grid(head, body),
        f"**Plans in which the order cannot matter**, which adjust for nothing, beside those that adjust: false claims "
        f"where nothing differs (worst law without lanes and correlation), and power at d = 1, normal law, by "
        f"correlation within pairs; {experiments:,} experiments per law and correlation.",
        _grid(["rule", "false, adjusted", *powers, "false, not adjusted", *powers], free),
    ])  # fmt: skip


def of_families(found: Sequence[Row]) -> str:
    """The table of several tasks with their mean, and that of clusters."""
    tables, body = Found(found), []
    for rule in families.RULES:
        rows = tables.of("families", rule.name)
        normal, beside = [row for row in rows if row.law == "normal"], [row for row in rows if row.law != "normal"]
        line = [rule.name, *("{} ({})".format(*map(_precise, _worst(part, "false"))) for part in (normal, beside))]
        body.append([*line, *(_precise(1 - _worst(part, "missed at once")[0]) for part in (normal, beside))])
    size = tables.of("families", families.RULES[0].name)[0].experiments
    others = "; ".join(law.title for law in families.LAWS[1:])
    grouped = []
    for clustering in families.CLUSTERINGS:
        cells = (_worst(tables.of("clusters", f"{clustering.name}, {how}"), "wrong") for how in families.WAYS)
        grouped.append([clustering.name, *("{} ({})".format(*map(_precise, cell)) for cell in cells)])
    bests = [_worst(tables.of("clusters", f"own best, {way}"), "wrong") for way in families.BESTS]
    return "\n\n".join([
        "**Several tasks and their mean**: any false claim of any comparison in any task or in the mean, as above "
        "(limit: upper end 5.6), and how often all simultaneous intervals hold. True differences of tasks, in margins: "
        f"{'; '.join(families.PATTERNS)}. The worst of these, of runs with an SD of "
        f"{', '.join(f'{sd:g}' for sd in SPREADS[:-1])} points, and of tasks whose differences are independent or half "
        f"common; {size:,} experiments each. Other laws, with the first two patterns and SDs of 1.6 and 2: {others}.",
        _grid(["rule", "false, normal", "false, other laws", "at once, normal", "at once, other laws"], body),
        "**Pairs in clusters**, nothing differs, two thirds of the variance of differences common to a cluster: false "
        "claims of the t of cluster means, as `judge` without a plan takes them (limit: upper end 5.6), and of all "
        "pairs taken as independent.",
        _grid(["clusters", "means of clusters", "pairs as independent"], grouped),
        f"**Each group at its own best** of {families.CELLS} cells by the mean of {families.CHOOSING} seeds, judged by "
        f"the t of {families.JUDGED} pairs: false claims where the best cells are equal, and one group has "
        f"{families.CELLS} of them and the other one (limit of fresh seeds: upper end 5.6).",
        _grid(families.BESTS, [["{} ({})".format(*map(_precise, cell)) for cell in bests]]),
    ])  # fmt: skip


def _wrong_winner(found: Found) -> str:
    said = []
    for pairs in (1, 6):
        (row,) = found.of("naive", f"winner of the last episode, {pairs}", law="normal", truth="d=1", rho=0.0)
        said.append(f"{_percent(row.rate('wrong'))} % with {pairs} {'pair' if pairs == 1 else 'pairs'}")
    return " and ".join(said)


def _naive(found: Found) -> str:
    counts = (1, 6, 10, 20)
    body = []
    for name, (_, tried) in naive.RULES.items():
        line = [name]
        for pairs in counts:
            if pairs not in tried:
                line.append("")
                continue
            (plain,) = found.of("naive", f"{name}, {pairs}", law="normal", truth="none", rho=0.0)
            worst, _ = _worst(found.of("naive", f"{name}, {pairs}", truth="none"), "claims")
            line.append(f"{_percent(plain.rate('claims'))} ({_percent(worst)})")
        body.append(line)
    name = "paired t, one look, lanes ignored"
    worst_lane = [
        _percent(_worst(found.of("naive", f"{name}, {pairs}", law=laws.FIXED_LANES.name), "claims")[0])
        for pairs in counts[1:]
    ]
    body.append([f"the same, {laws.FIXED_LANES.title}", "", *(f"({share})" for share in worst_lane)])
    return _grid(["rule", *(f"{pairs} {'pair' if pairs == 1 else 'pairs'}" for pairs in counts)], body)
