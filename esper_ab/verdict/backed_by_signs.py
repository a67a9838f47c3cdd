"""Whether the exact sign-flip test supports the t-test of few pairs, as a claim of these needs. Pure."""

from __future__ import annotations

from esper_ab.stats.adjusted_difference import AdjustedDifference
from esper_ab.stats.exact_signs import BACKED_BY_SIGNS, signs_p
from esper_ab.stats.item_difference import ItemDifference
from esper_ab.stats.least_pairs import smallest_p
from esper_ab.stats.pair import Data, Samples
from esper_ab.stats.proportions import Proportions
from esper_ab.verdict.effect import Effect


def is_backed_by_signs(used_data: Data, effect: Effect | None, alpha: float) -> bool:
    """True unless the exact sign-flip test must support the t-test of so few pairs at `alpha` and does not.

    It is not required if so few pairs could never reach `alpha`, as when many comparisons share it.
    """
    if isinstance(used_data, Samples) or len(used_data) not in BACKED_BY_SIGNS or effect is None:
        return True
    if isinstance(effect, Proportions) or (isinstance(effect, ItemDifference) and effect.level == "checkpoints"):
        return True
    positions = effect.positions if isinstance(effect, AdjustedDifference) else ()
    means = {position.position: position.mean for position in positions}
    position_effects = [means.get(a, 0.0) - means.get(b, 0.0) for a, b in used_data.sides.tolist()]
    p = float(signs_p(used_data.differences - position_effects))
    return p <= alpha or smallest_p(len(used_data)) > alpha
