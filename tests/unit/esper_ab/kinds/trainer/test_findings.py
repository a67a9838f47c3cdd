"""The findings of a trainer's rehearsal that stand beside a verdict."""

import msgspec
import pytest
from support.journals.ready_journals import planted_effect
from support.plans.requests import rehearsed

from esper_ab.journal.fold import fold
from esper_ab.kinds.trainer.findings import KIND
from esper_ab.verdict.finding import SEED


@pytest.mark.parametrize(("repeats", "count"), [(True, 0), (False, 1)])
def test_a_seed_whose_outcome_did_not_repeat_is_a_finding(repeats, count):
    history = fold(planted_effect())
    facts = rehearsed(outcome_repeats=repeats).trainer
    history.started = msgspec.structs.replace(
        history.started, plan=msgspec.structs.replace(history.plan, trainer=facts)
    )
    sentences = [finding.sentence for finding in KIND.findings(history, {}) if finding.kind == SEED]
    assert len(sentences) == count
    assert all("the pairs may share nothing" in sentence for sentence in sentences)
