"""`esper-ab power`: what a number of replicates can resolve and what a margin asks for, before anything is spent.

Imports little: everything heavy comes when it is called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from esper_ab.commands._examples import epilog

if TYPE_CHECKING:
    from esper_ab.design.design import Design
    from esper_ab.design.power import PairSpread, PowerQuestion, PowerRow, PowerTable, ReplicatesNeeded
    from esper_ab.journal.fold import History
    from esper_ab.plan.blocks import Plan
    from esper_ab.stats.pair import Pair

ROWS = (6, 8, 10, 12, 16, 20, 24, 30)  # replicates of the table
RHO = (0.0, 0.3, 0.6)  # nobody knows the pair correlation before the first pairs


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The spread to plan with: where from, and SD of runs in points with its degrees of freedom.

    `rho`: the pair correlation, where it was given; `sd_pairs`: that of the differences of the pairs seen, in points,
    positions removed where the plan adjusts for them, with its degrees of freedom. None: unknown.
    """

    source: str
    sd: float
    df: int | None = None
    rho: float | None = None
    sd_pairs: float | None = None
    df_pairs: int | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Tables by pair correlation; the first one is that of the pairs seen, or of the given `rho`, if there is one."""

    known: Known
    replicates: int
    tables: tuple[PowerTable, ...]


@click.command(
    "power",
    epilog=epilog(
        "esper-ab power --sd-run 3.5 --replicates 10",
        "esper-ab power --run runs/RUN --margin 1 --comparisons 3",
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.option("--sd-run", type=float, metavar="SD", help="Standard deviation of runs of one condition, in points.")
@click.option("--calibration", type=click.Path(path_type=Path), metavar="FILE", help="Take it from a "
              "calibration.json.")
@click.option("--run", type=click.Path(path_type=Path), metavar="RUN", help="Take it, and the pair correlation, "
              "from the pairs of an earlier run directory.")
@click.option("--rho", type=float, metavar="R", help="Correlation of the two runs of a pair. [default: of RUN; else a "
              "column each for 0, 0.3, 0.6]")
@click.option("--replicates", type=int, default=10, show_default=True, metavar="R", help="Of the plan in question.")
@click.option("--margin", type=float, default=2.0, show_default=True, metavar="POINTS", help="The smallest difference "
              "worth acting on.")
@click.option("--alpha", type=float, default=0.05, show_default=True, metavar="P", help="Error rate of the whole "
              "experiment.")
@click.option("--comparisons", type=int, default=1, show_default=True, metavar="M", help="Comparisons that share it.")
@click.option("--json", is_flag=True, help="Machine-readable output, nothing else on stdout.")
def command(**options: Any) -> None:
    """The smallest difference that R replicates resolve with 80 % power, and the replicates that a margin needs."""
    from esper_ab.design.power import PowerQuestion

    _check(options)
    known = _known(options)
    question = PowerQuestion(margin=options["margin"], alpha=options["alpha"], comparisons=options["comparisons"])
    found = answer(known, options["replicates"], question)
    click.echo(msgspec.json.encode(found) if options["json"] else power_text(found))


def _check(options: dict[str, Any]) -> None:
    from esper_ab.contracts.errors import UsageError

    sources = [name for name in ("sd_run", "calibration", "run") if options[name] is not None]
    if len(sources) != 1:
        raise UsageError("say how much runs differ, once: --sd-run SD, --calibration FILE or --run RUN")
    rules: dict[str, Callable[[float], bool]] = {
        "sd_run": lambda x: 0.0 < x < math.inf,
        "rho": lambda x: -1.0 <= x < 1.0,
        "replicates": lambda x: x >= 1,
        "margin": lambda x: 0.0 < x < math.inf,
        "alpha": lambda x: 0.0 < x < 0.5,
        "comparisons": lambda x: x >= 1,
    }
    points = "a positive number of points"
    right = {"rho": "from -1 to below 1", "alpha": "above 0 and below 0.5", "sd_run": points, "margin": points}
    for name, holds in rules.items():
        if options[name] is not None and not holds(options[name]):
            flag = name.replace("_", "-")
            raise UsageError(f"--{flag} {options[name]:g}: it must be {right.get(name, '1 or more')}")


def _known(options: dict[str, Any]) -> Known:
    rho = options["rho"]
    if options["sd_run"] is not None:
        return Known(source="given", sd=options["sd_run"], rho=rho)
    if options["calibration"] is not None:
        from esper_ab.design.calibration_file import load_calibration

        found = load_calibration(options["calibration"])
        source = f"{found.spread.runs} runs of {found.mode} in {options['calibration']}"
        return _varied(Known(source=source, sd=found.spread.sd, df=found.spread.runs - 1, rho=rho))
    from esper_ab.journal.load import load

    known = known_from_pairs(load(options["run"]).history, str(options["run"]))
    return known if rho is None else msgspec.structs.replace(known, rho=rho, sd_pairs=None, df_pairs=None)


def known_from_pairs(history: History, name: str) -> Known:
    """Spread within groups and of the pairs' differences, from all compared pairs; never from the differences' mean.

    Pooled over groups and over comparisons by degrees of freedom. UsageError with fewer than two pairs.
    """
    import numpy as np

    from esper_ab.analysis.pairs import pairs_of
    from esper_ab.contracts.errors import UsageError

    groups: dict[str, dict[int, float]] = {}
    residuals = []
    for contrast in history.design.comparisons:
        pairs = pairs_of(history, contrast)
        groups.setdefault(contrast.a, {}).update({pair.replicate: pair.a for pair in pairs})
        groups.setdefault(contrast.b, {}).update({pair.replicate: pair.b for pair in pairs})
        residuals.append(residual_sd(history.design, pairs))
    samples = [np.array(list(values.values())) for values in groups.values() if len(values) > 1]
    df = sum(sample.size - 1 for sample in samples)
    if not df:
        raise UsageError(f"--run {name}: a spread needs two finished replicates at least; give --sd-run")
    square = math.fsum(float(np.sum((sample - sample.mean()) ** 2)) for sample in samples)
    known = _varied(Known(source=f"{len(groups)} groups of {name}", sd=math.sqrt(square / df), df=df))
    df_pairs = sum(one_df for _, one_df in residuals)
    sd_pairs = math.sqrt(math.fsum(sd**2 * one_df for sd, one_df in residuals) / df_pairs) if df_pairs else 0.0
    if not sd_pairs:
        return known
    return msgspec.structs.replace(known, sd_pairs=sd_pairs, df_pairs=df_pairs)


def residual_sd(design: Design, pairs: Sequence[Pair]) -> tuple[float, int]:
    """SD of the pairs' differences as the design's test sees them, points, and its degrees of freedom; 0.0, 0: none."""
    from esper_ab.stats.adjusted_difference import adjusted_difference

    positions = design.positions if design.adjusted and design.test == "t" else 1
    sides = [(pair.position_a, pair.position_b) for pair in pairs]
    found = adjusted_difference([pair.a for pair in pairs], [pair.b for pair in pairs], sides, positions)
    return (0.0, 0) if found is None or found.sd is None else (found.sd, found.df)


def _varied(known: Known) -> Known:
    from esper_ab.contracts.errors import UsageError

    if known.sd == 0.0:
        raise UsageError(f"{known.source}: runs do not differ at all there; nothing can be planned with a spread of 0")
    return known


def answer(known: Known, replicates: int, question: PowerQuestion, rows: Sequence[int] = ROWS) -> Answer:
    """For `replicates` and for the `rows` of the table. Simulated power is seeded by what is asked."""
    rhos = RHO if known.rho is None else (known.rho, *(rho for rho in RHO if rho != known.rho))
    tables = power_tables(known, rhos, sorted({*rows, replicates}), question)
    return Answer(known=known, replicates=replicates, tables=tables)


def spreads(known: Known, rhos: Sequence[float]) -> tuple[PairSpread, ...]:
    """One for each pair correlation, and before them that of the pairs that were seen, where there were any."""
    from esper_ab.design.power import RunSpread, assumed, observed

    supposed = tuple(assumed(RunSpread(sd=known.sd, df=known.df), rho) for rho in rhos)
    if known.sd_pairs is None or known.df_pairs is None:
        return supposed
    return (observed(known.sd, known.sd_pairs, known.df_pairs), *supposed)


def power_tables(
    known: Known, rhos: Sequence[float], replicates: Sequence[int], question: PowerQuestion
) -> tuple[PowerTable, ...]:
    """One table for each of the `spreads`, from the same draws."""
    import hashlib

    import numpy as np

    from esper_ab.design.boundary_cache import calibrate
    from esper_ab.design.power import power_table

    digest = hashlib.sha256(msgspec.json.encode([question, list(replicates)])).digest()
    return tuple(
        power_table(
            spread, replicates, question, calibrate,
            np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little"))),
        )
        for spread in spreads(known, rhos)
    )  # fmt: skip


def power_text(found: Answer) -> str:
    """Two sentences for each pair correlation, then the table."""
    known, question = found.known, found.tables[0].question
    df = f", {known.df} degrees of freedom" if known.df else ""
    lines = [
        f"Run SD {known.sd:.3g} points ({known.source}{df}); margin {question.margin:g} points; alpha "
        f"{question.alpha:g} shared by {question.comparisons} comparison{'s' if question.comparisons > 1 else ''}.",
    ]
    if known.rho is None and known.sd_pairs is None:
        lines.append("Pair correlation unknown: it depends on how much of the shared randomness survives training.")
    for index, table in enumerate(found.tables):
        row = next(row for row in table.rows if row.replicates == found.replicates)
        lines += ["", f"Pair correlation {table.rho:.2g}{_where_from(known, table) if index == 0 else ''}:"]
        lines += [f"  {_resolves(row)}", f"  {_needs(table.needed, question.margin)}"]
    return "\n".join([*lines, "", *table_lines(found.tables)])


def _where_from(known: Known, table: PowerTable) -> str:
    """Of the first table: whether its pair correlation is known, and how."""
    if known.sd_pairs is not None:
        return f" (the pairs seen: their differences have an SD of {table.sd:.3g}, {known.df_pairs} degrees of freedom)"
    return "" if known.rho is None else " (known)"


def _resolves(row: PowerRow) -> str:
    if row.smallest is None:
        return f"{row.replicates} replicates cannot carry a verdict at all; 6 are the least."
    from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS

    looks = ", ".join(map(str, row.looks))
    short = f" EQUIVALENT takes {LEAST_EQUIVALENCE_PAIRS} pairs." if row.replicates < LEAST_EQUIVALENCE_PAIRS else ""
    return (
        f"{row.replicates} replicates (looks at {looks}) find a difference of {row.smallest:.2g} points"
        f"{_range(row.smallest_low, row.smallest_high, '.2g')} with 80 % power; one of the margin's size with "
        f"{row.power:.0%}.{short}"
    )


def _needs(needed: ReplicatesNeeded, margin: float) -> str:
    def count(number: int | None) -> str:
        return "more than 10,000" if number is None else str(number)

    if needed.low == needed.high == needed.replicates:
        return f"{margin:g} points need {count(needed.replicates)} replicates."
    return (
        f"{margin:g} points need about {count(needed.replicates)} replicates (80 % range {count(needed.low)} to "
        f"{count(needed.high)})."
    )


def _range(low: float | None, high: float | None, form: str) -> str:
    return "" if low is None or high is None else f" (80 % range {low:{form}} to {high:{form}})"


def table_lines(tables: Sequence[PowerTable]) -> list[str]:
    """Smallest difference with 80 % power and power at the margin, by replicates and pair correlation."""
    margin = tables[0].question.margin
    head = ["replicates", "looks", *(f"rho {table.rho:.2g}" for table in tables)]
    rows = [head]
    for same in zip(*(table.rows for table in tables), strict=True):
        cells = ["no verdict" if row.smallest is None else f"{row.smallest:.2f} / {row.power:.0%}" for row in same]
        rows.append([str(same[0].replicates), ",".join(map(str, same[0].looks)), *cells])
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return [
        f"Smallest difference in points found with 80 % power / power at {margin:g} points:",
        *("  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows),
    ]


def plan_power(plan: Plan, df: int) -> str:
    """What a plan can resolve when its runs differ as calibrated, `df` degrees of freedom; for the plan's own looks."""
    from esper_ab.design.power import PowerQuestion

    assert plan.run_sd is not None
    design = plan.design
    if not design.looks:
        return f"runs differ by {plan.run_sd:.2g} points (SD, calibrated); without a maximum every difference is found"
    question = PowerQuestion(
        margin=design.margin, alpha=design.alpha, groups=design.positions, comparisons=len(design.comparisons),
        looks=design.looks,
    )  # fmt: skip
    tables = power_tables(Known(source="", sd=plan.run_sd, df=df), RHO, [design.looks[-1]], question)
    said = (f"pair correlation {table.rho:g}: {_resolves(table.rows[0])}" for table in tables)
    return f"runs differ by {plan.run_sd:.2g} points (SD, calibrated). " + " ".join(said)
