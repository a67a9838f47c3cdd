"""Tables of a reward audit."""

from __future__ import annotations

from statistics import fmean

from esper_ab.analysis.reward_audit import RewardAuditFindings, RewardFindings, Sensitivity
from esper_ab.contracts.reward_audit import Played
from esper_ab.report.tables.table import NONE, Table, number, signed

_CONSTANTS = 5  # rows of each reward
# Smaller changes would not show in two decimals.
_LEAST_POINTS = 0.05
_SAME_ORDER = 0.995


def tables(audit: RewardAuditFindings) -> tuple[Table, ...]:
    """Return all tables in reading order; some may be empty."""
    return (
        _choosing_table(audit),
        _search_table(audit),
        _pairs_table(audit),
        _behaviours_table(audit),
        _scale_table(audit),
        _constants_table(audit),
    )


def made_from(audit: RewardAuditFindings) -> str:
    """Describe the behaviours that were played, in one sentence."""
    question = audit.reward_audit.question
    answer = audit.reward_audit.answer
    references = sum(behaviour.kind == "reference" for behaviour in answer.behaviours)
    return (
        f"{references} reference behaviours and {question.schedules} random schedules of {question.steps} steps, "
        f"each on {question.hosts} hosts of {question.task}, rng seed {question.rng_seed}, trained by "
        f"{answer.arithmetic.kernel}; every reward scores the same plays."
    )


def sentences(audit: RewardAuditFindings) -> tuple[str, ...]:
    """Describe the cost of choosing by each reward, in one sentence each."""
    return tuple(_sentence(reward, audit) for reward in audit.rewards)


def _sentence(reward: RewardFindings, audit: RewardAuditFindings) -> str:
    n = len(audit.own_curve)
    reward_outcome = reward.curve[-1]
    best_outcome = audit.own_curve[-1]
    random_outcome = reward.curve[0]
    lost_outcome = best_outcome - reward_outcome
    if lost_outcome < 0.05:
        choice = f"of {n} random schedules it prefers the best one, {reward_outcome:.1f} %"
    elif reward_outcome < random_outcome:
        choice = (
            f"its favourite of {n} random schedules ({reward_outcome:.1f} %) is worse than one chosen blindly "
            f"({random_outcome:.1f} %); "
            f"the best has {best_outcome:.1f} %"
        )
    else:
        choice = (
            f"its favourite of {n} random schedules has {reward_outcome:.1f} %, {lost_outcome:.1f} points less than "
            "the best"
        )
    return f"{reward.name}: {choice}."


def _choosing_table(audit: RewardAuditFindings) -> Table:
    sizes = audit.shown_n
    rows = []
    for reward in audit.rewards:
        choices = [number(reward.curve[n - 1], 1) for n in sizes]
        worst_loss = reward.pairs[0].loss if reward.pairs else 0.0
        losses = [number(points, 1) for points in (reward.regret, worst_loss, reward.distance)]
        rows.append((reward.name, *choices, *losses, number(reward.rank_correlation)))
    best_words = [number(audit.own_curve[n - 1], 1) for n in sizes]
    rows.append(("the outcome itself", *best_words, "0.0", "0.0", "0.0", "1.00"))
    best_titles = [f"best of {n}" for n in sizes]
    return Table(
        "What it costs to choose by each reward",
        note=f"{made_from(audit)} Held-out accuracy, %, of the reward's favourite of n random schedules, averaged over "
        "random choices of the n. Regret: that of its favourite among all behaviours, points. Worst pair: the largest "
        "regret in any selection of them. Distance: the least error of a rising straight line from return to "
        "outcome, points; no pair loses more than twice the distance. The rank correlation, over the random "
        "schedules, says little about the best behaviours, towards which a learner moves.",
        rows=tuple(rows),
        columns=("reward", *best_titles, "regret", "worst pair", "distance", "rank corr."),
    )


def _search_table(audit: RewardAuditFindings) -> Table:
    by_accuracy = audit.reward_audit.answer.found_by_accuracy
    searches = [(reward.name, reward.found) for reward in audit.rewards]
    searches.append(("validation accuracy", by_accuracy))
    rows = []
    for name, search in searches:
        if search is not None:
            accuracy = fmean(search.behaviour.held_out_accuracy)
            rows.append((name, number(accuracy, 1), search.behaviour.words))
    tried_count = by_accuracy.tried if by_accuracy else 0
    note = (
        "The schedule with the highest return on the hosts of this reward audit, among the random schedules and "
        f"{tried_count} neighbours of the best so far. It is then grown on other hosts, whose held-out accuracy, %, is "
        "shown."
        " The last row is a search for validation accuracy itself, which a reward can beat only by luck."
    )
    return Table(
        "What a short search for the reward finds",
        ("searched for", "accuracy", "finds"),
        tuple(rows),
        note=note,
        words=3,
    )


def _pairs_table(audit: RewardAuditFindings) -> Table:
    def pay_words(reward: RewardFindings, behaviour: int) -> str:
        name = described(audit.behaviours[behaviour])
        pays = f"{reward.returns[behaviour]:.4g}"
        return f"{name}: pays {pays}, {audit.outcomes[behaviour]:.1f} %"

    rows = []
    for reward in audit.rewards:
        for pair in reward.pairs:
            preference = f"{pay_words(reward, pair.preferred)}; rather than {pay_words(reward, pair.better)}"
            rows.append((reward.name, number(pair.loss, 1), preference))
    return Table(
        "The worst pairs that a reward puts in the wrong order",
        rows=tuple(rows),
        words=3,
        columns=("reward", "points", "the behaviour that it prefers, and the better one"),
        note="Points of held-out accuracy that each preference costs. No behaviour is in two pairs of a reward.",
    )


def described(behaviour: Played) -> str:
    """Return the name of a behaviour; for a random behaviour, add its description."""
    if behaviour.kind == "reference":
        return behaviour.name
    return f"{behaviour.name} ({behaviour.words})"


def _behaviours_table(audit: RewardAuditFindings) -> Table:
    rows = []
    for index, behaviour in enumerate(audit.behaviours):
        if behaviour.kind != "reference":
            continue
        growth = (
            number(audit.outcomes[index], 1),
            number(behaviour.params_added, 0),
            number(behaviour.fossilized, 1),
            number(behaviour.pruned, 1),
        )
        returns = [f"{reward.returns[index]:.4g}" for reward in audit.rewards]
        rows.append((behaviour.name, behaviour.words, *growth, *returns))
    rewards = [reward.name for reward in audit.rewards]
    return Table(
        "Reference behaviours",
        ("behaviour", "what it does", "accuracy", "params", "fossils", "pruned", *rewards),
        tuple(rows),
        note="Held-out accuracy, %; the rest are means over hosts. Returns of different rewards have different units.",
        words=2,
    )


def _scale_table(audit: RewardAuditFindings) -> Table:
    rows = []
    for reward in audit.rewards:
        half_paid_words = NONE if reward.half_paid is None else str(reward.half_paid)
        last_step_words = NONE if reward.on_last_step is None else f"{reward.on_last_step:.0%}"
        rows.append((reward.name, f"{reward.spread:.4g}", f"{reward.largest:.4g}", half_paid_words, last_step_words))
    steps = audit.reward_audit.question.steps
    return Table(
        "Scale, and when in the episode it pays",
        rows=tuple(rows),
        note=f"Of the magnitudes of all rewards over {steps} steps; spread: SD of the returns of random schedules.",
        wide=False,
        columns=("reward", "spread", "largest in a step", "half paid by step", "on the last step"),
    )


def _constants_table(audit: RewardAuditFindings) -> Table:
    rows = []
    omitted_words = []
    for reward in audit.rewards:
        effective_constants = list(filter(_matters, reward.sensitivity))[:_CONSTANTS]
        rows += [_constant_row(reward.name, sensitivity) for sensitivity in effective_constants]
        omitted_count = len(reward.sensitivity) - len(effective_constants)
        if omitted_count:
            omitted_words.append(f"{omitted_count} of {reward.name}")
    note = (
        "One constant halved, doubled or switched. Favourite: change of the outcome of the favourite of all random "
        "schedules, points. Order: rank correlation of the returns of all behaviours with the original returns."
    )
    if omitted_words:
        constants = ", ".join(omitted_words)
        note += f" Not shown: {constants} with less effect, or only on the scale; reward_audit.json has them."
    return Table(
        "Sensitivity to the reward's constants",
        rows=tuple(rows),
        words=2,
        note=note,
        columns=("reward", "constant", "from", "to", "favourite", "order"),
    )


def _constant_row(reward: str, sensitivity: Sensitivity) -> tuple[str, ...]:
    variation = sensitivity.varied
    change = signed(sensitivity.favourite_change)
    return (reward, variation.constant, variation.was, variation.now, change, number(sensitivity.order))


def _matters(sensitivity: Sensitivity) -> bool:
    """Return whether an alteration changes the favourite, or changes the order enough for two decimals to show."""
    if abs(sensitivity.favourite_change or 0.0) >= _LEAST_POINTS:
        return True
    return sensitivity.order is not None and sensitivity.order < _SAME_ORDER
