"""The transition table of a seed's life, and the only function that changes a stage."""

from __future__ import annotations

import numpy as np

from workers.arrays import Bools, Floats, all_false
from workers.growth.rules.seeds import SeedTable
from workers.vocabulary import Stage

TRANSITIONS: dict[Stage, tuple[Stage, ...]] = {
    Stage.UNKNOWN: (Stage.DORMANT,),
    Stage.DORMANT: (Stage.GERMINATED,),
    Stage.GERMINATED: (Stage.TRAINING, Stage.PRUNED),
    Stage.TRAINING: (Stage.BLENDING, Stage.PRUNED),
    Stage.BLENDING: (Stage.HOLDING, Stage.PRUNED),
    Stage.HOLDING: (Stage.FOSSILIZED, Stage.BLENDING, Stage.PRUNED),
    Stage.FOSSILIZED: (),
    Stage.PRUNED: (Stage.EMBARGOED,),
    Stage.EMBARGOED: (Stage.RESETTING,),
    Stage.RESETTING: (Stage.DORMANT,),
}
_LEGAL = all_false((max(Stage) + 1, max(Stage) + 1))  # [from, to]
for _source, _targets in TRANSITIONS.items():
    _LEGAL[_source, list(_targets)] = True


class IllegalTransition(ValueError):
    """A stage change that the transition table does not allow."""


def transition(table: SeedTable, selected: Bools, target: Stage, val_acc: Floats) -> None:
    """Move every `selected` [E, S] slot to `target`; all or, with IllegalTransition, none.

    `val_acc` [E] is the last validation accuracy, the baseline for improvement within the new stage.
    """
    from_stage = table.stage[selected]
    if not _LEGAL[from_stage, int(target)].all():
        illegal = selected & ~_LEGAL[table.stage, int(target)]
        env, slot = (int(i) for i in np.argwhere(illegal)[0])
        stage = int(table.stage[env, slot])
        raise IllegalTransition(f"environment {env}, slot {slot}: no transition from stage {stage} to {target.name}")
    table.previous_stage[selected] = from_stage
    table.previous_epochs_in_stage[selected] = table.epochs_in_stage[selected]
    table.stage[selected] = int(target)
    table.epochs_in_stage[selected] = 0
    table.acc_at_stage_start[selected] = val_acc[selected.nonzero()[0]]
