"""Tables of a reward audit."""

from __future__ import annotations

from statistics import fmean

from esper_ab.analysis.reward_audit import RewardAuditFindings, RewardFindings, Sensitivity
from esper_ab.contracts.reward_audit import Played
from esper_ab.report.tables.table import NONE, Table, number, signed

_CONSTANTS = 5  # rows of each reward
_LEAST_POINTS, _SAME_ORDER = 0.05, 0.995  # smaller changes would not show in two decimals


def tables(found: RewardAuditFindings) -> tuple[Table, ...]:
    """Return all tables in reading order; some may be empty."""
    return (
        _choosing_table(found),
        _search_table(found),
        _pairs_table(found),
        _behaviours_table(found),
        _scale_table(found),
        _constants_table(found),
    )


def made_from(found: RewardAuditFindings) -> str:
    """Describe the behaviours that were played, in one sentence."""
    asked = found.reward_audit.question
    answer = found.reward_audit.answer
    references = sum(one.kind == "reference" for one in answer.behaviours)
    return (
        f"{references} reference behaviours and {asked.schedules} random schedules of {asked.steps} steps, each on "
        f"{asked.hosts} hosts of {asked.task}, rng seed {asked.rng_seed}, trained by {answer.arithmetic.kernel}; every "
        "reward scores the same plays."
    )


def sentences(found: RewardAuditFindings) -> tuple[str, ...]:
    """Describe the cost of choosing by each reward, in one sentence each."""
    return tuple(_sentence(reward, found) for reward in found.rewards)


def _sentence(reward: RewardFindings, found: RewardAuditFindings) -> str:
    n = len(found.own_curve)
    own = reward.curve[-1]
    best = found.own_curve[-1]
    any_one = reward.curve[0]
    lost = best - own
    if lost < 0.05:
        told = f"of {n} random schedules it prefers the best one, {own:.1f} %"
    elif own < any_one:
        told = (
            f"its favourite of {n} random schedules ({own:.1f} %) is worse than one chosen blindly ({any_one:.1f} %); "
            f"the best has {best:.1f} %"
        )
    else:
        told = f"its favourite of {n} random schedules has {own:.1f} %, {lost:.1f} points less than the best"
    return f"{reward.name}: {told}."


def _choosing_table(found: RewardAuditFindings) -> Table:
    sizes = found.shown_n
    rows = [
        (
            reward.name,
            *(number(reward.curve[n - 1], 1) for n in sizes),
            number(reward.regret, 1),
            number(reward.pairs[0].loss if reward.pairs else 0.0, 1),
            number(reward.distance, 1),
            number(reward.rank_correlation),
        )
        for reward in found.rewards
    ]
    best = (number(found.own_curve[n - 1], 1) for n in sizes)
    return Table(
        "What it costs to choose by each reward",
        note=f"{made_from(found)} Held-out accuracy, %, of the reward's favourite of n random schedules, averaged over "
        "random choices of the n. Regret: that of its favourite among all behaviours, points. Worst pair: the largest "
        "regret in any selection of them. Distance: the least error of a rising straight line from return to "
        "outcome, points; no pair loses more than twice the distance. The rank correlation, over the random "
        "schedules, says little about the best behaviours, towards which a learner moves.",
        rows=(*rows, ("the outcome itself", *best, "0.0", "0.0", "0.0", "1.00")),
        columns=("reward", *(f"best of {n}" for n in sizes), "regret", "worst pair", "distance", "rank corr."),
    )


def _search_table(found: RewardAuditFindings) -> Table:
    by_accuracy = found.reward_audit.answer.found_by_accuracy
    listed = [(reward.name, reward.found) for reward in found.rewards] + [("validation accuracy", by_accuracy)]
    rows = tuple(
        (name, number(fmean(one.behaviour.held_out_accuracy), 1), one.behaviour.words)
        for name, one in listed
        if one is not None
    )
    tried = by_accuracy.tried if by_accuracy else 0
    note = (
        "The schedule with the highest return on the hosts of this reward audit, among the random schedules and "
        f"{tried} neighbours of the best so far. It is then grown on other hosts, whose held-out accuracy, %, is shown."
        " The last row is a search for validation accuracy itself, which a reward can beat only by luck."
    )
    return Table(
        "What a short search for the reward finds",
        ("searched for", "accuracy", "finds"),
        rows,
        note=note,
        words=3,
    )


def _pairs_table(found: RewardAuditFindings) -> Table:
    def told(reward: RewardFindings, place: int) -> str:
        name = described(found.behaviours[place])
        pays = f"{reward.returns[place]:.4g}"
        return f"{name}: pays {pays}, {found.outcomes[place]:.1f} %"

    rows = tuple(
        (
            reward.name,
            number(pair.loss, 1),
            f"{told(reward, pair.preferred)}; rather than {told(reward, pair.better)}",
        )
        for reward in found.rewards
        for pair in reward.pairs
    )
    return Table(
        "The worst pairs that a reward puts in the wrong order",
        rows=rows,
        words=3,
        columns=("reward", "points", "the behaviour that it prefers, and the better one"),
        note="Points of held-out accuracy that each preference costs. No behaviour is in two pairs of a reward.",
    )


def described(played: Played) -> str:
    """Return the name of a behaviour; for a random behaviour, add its description."""
    if played.kind == "reference":
        return played.name
    return f"{played.name} ({played.words})"


def _behaviours_table(found: RewardAuditFindings) -> Table:
    rows = tuple(
        (
            played.name,
            played.words,
            number(outcome, 1),
            number(played.params_added, 0),
            number(played.fossilized, 1),
            number(played.pruned, 1),
            *(f"{reward.returns[place]:.4g}" for reward in found.rewards),
        )
        for place, (played, outcome) in enumerate(zip(found.behaviours, found.outcomes, strict=True))
        if played.kind == "reference"
    )
    columns = ("behaviour", "what it does", "accuracy", "params", "fossils", "pruned")
    return Table(
        "Reference behaviours",
        (*columns, *(reward.name for reward in found.rewards)),
        rows,
        note="Held-out accuracy, %; the rest are means over hosts. Returns of different rewards have different units.",
        words=2,
    )


def _scale_table(found: RewardAuditFindings) -> Table:
    rows = tuple(
        (
            reward.name,
            f"{reward.spread:.4g}",
            f"{reward.largest:.4g}",
            NONE if reward.half_paid is None else str(reward.half_paid),
            NONE if reward.on_last_step is None else f"{reward.on_last_step:.0%}",
        )
        for reward in found.rewards
    )
    steps = found.reward_audit.question.steps
    return Table(
        "Scale, and when in the episode it pays",
        rows=rows,
        note=f"Of the magnitudes of all rewards over {steps} steps; spread: SD of the returns of random schedules.",
        wide=False,
        columns=("reward", "spread", "largest in a step", "half paid by step", "on the last step"),
    )


def _constants_table(found: RewardAuditFindings) -> Table:
    shown = {reward.name: list(filter(_matters, reward.sensitivity))[:_CONSTANTS] for reward in found.rewards}
    rows = tuple(
        (name, one.varied.constant, one.varied.was, one.varied.now, signed(one.favourite_change), number(one.order))
        for name, several in shown.items()
        for one in several
    )
    left = {reward.name: len(reward.sensitivity) - len(shown[reward.name]) for reward in found.rewards}
    more = ", ".join(f"{count} of {name}" for name, count in left.items() if count > 0)
    note = (
        "One constant halved, doubled or switched. Favourite: change of the outcome of the favourite of all random "
        "schedules, points. Order: rank correlation of the returns of all behaviours with the original returns."
        + (f" Not shown: {more} with less effect, or only on the scale; reward_audit.json has them." if more else "")
    )
    return Table(
        "Sensitivity to the reward's constants",
        rows=rows,
        words=2,
        note=note,
        columns=("reward", "constant", "from", "to", "favourite", "order"),
    )


def _matters(one: Sensitivity) -> bool:
    """Return whether an alteration changes the favourite, or changes the order enough for two decimals to show."""
    return abs(one.favourite_change or 0.0) >= _LEAST_POINTS or (one.order is not None and one.order < _SAME_ORDER)
