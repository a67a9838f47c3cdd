"""What the audit finds in policy updates: pathologies, an update that saw something else, heads without a choice."""

import pytest
from support.audited import episodes, found, only, planned, replace, updates
from support.journals import Shape, Synthetic, planted_effect

from esper_ab.contracts.records import HeadUse
from esper_ab.contracts.settings import PPOSettings
from esper_ab.journal.events import EpisodeRecorded

PATHOLOGIES = {
    "no step": {"grad_norm": None},
    "ratio explosion": {"ratio_max": 6.0},
    "ratio collapse": {"clip_fraction": 0.6},
    "entropy collapse": {"entropy": 1e-6},
}
UNINFORMED = {"explained_variance": -0.1, "value_loss": 0.7}


@pytest.mark.parametrize(("kind", "change"), PATHOLOGIES.items())
def test_pathologies_are_noted_and_cap_when_a_group_never_trained(kind, change):
    some = updates(planted_effect(), which=lambda record: record.episode == 3, **change)
    assert only(some) == ((kind, "notes", ("simplified",)), f"simplified: {kind} in 6 of 48 updates, 6 of 6 runs.")
    most = updates(planted_effect(), which=lambda record: record.episode >= 3, **change)
    (key, sentence) = only(most)
    assert key == (kind, "caps", ("simplified",))
    assert "(30 of 48 updates, 6 of 6 runs): it did not train." in sentence
    all_but_one_run = updates(planted_effect(), which=lambda record: record.run.replicate > 0, **change)
    assert only(all_but_one_run)[0] == (kind, "notes", ("simplified",))


def test_a_policy_without_a_choice_has_collapsed_from_nothing():
    """As in growth by episodes of one step, where there is only WAIT; that its heads are dead is said."""
    none = {"op": HeadUse(entropy=None, learnable=0.0), "slot": HeadUse(entropy=None, learnable=0.0)}
    (key, _) = only(updates(planted_effect(), entropy=0.0, heads=none))
    assert key[0] == "dead heads"


@pytest.mark.parametrize("entropy", [0.0, -3.0])
def test_continuous_decisions_have_no_entropy_at_which_they_collapse(entropy):
    """Theirs is that of a density: below 0 for every narrow one, and a policy without heads has nothing else."""
    assert found(updates(planted_effect(), entropy=entropy, heads={})) == {}


def test_a_critic_is_judged_after_its_first_updates_only():
    assert found(updates(Synthetic(episodes=10).events(), **UNINFORMED)) == {}
    some = updates(Synthetic(episodes=12, replicates=6).events(), **UNINFORMED)
    said = "simplified: value collapse in 12 of 72 updates, 6 of 6 runs."
    assert only(some) == (("value collapse", "notes", ("simplified",)), said)
    (key, sentence) = only(updates(Synthetic(episodes=21, replicates=2).events(), **UNINFORMED))
    assert key == ("value collapse", "caps", ("simplified",))
    assert "(22 of 42 updates, 2 of 2 runs): it did not train." in sentence


def test_an_untrained_critic_is_what_a_learning_rate_of_0_asks_for():
    def judged(lr):
        groups = {"shaped": Shape(accuracy=80.0), "simplified": Shape(accuracy=66.0, ppo=PPOSettings(lr=lr))}
        return found(updates(Synthetic(groups=groups, episodes=21, replicates=6).events(), **UNINFORMED))

    assert [kind for kind, _, _ in judged(3e-4)] == ["value collapse"]
    assert judged(0.0) == {}


def test_an_update_that_does_not_see_what_the_policy_saw_blocks():
    events = updates(planted_effect(), which=lambda record: record.episode == 2, first_ratio_error=0.25)
    (key, sentence) = only(events)
    assert key == ("ratio mismatch", "blocks", ("simplified",))
    assert "differed from 1 by up to 2.5e-01 (6 of 48 updates, 6 of 6 runs)" in sentence


def heads(events, head, which=lambda record: True):
    """No choice for one head of `simplified`."""

    def change(record):
        unused = {**record.ppo.heads, head: HeadUse(entropy=None, learnable=0.0)}
        return replace(record, ppo=replace(record.ppo, heads=unused))

    return episodes(events, change, which=which)


def test_heads_without_a_choice_throughout_a_run_are_dead():
    assert found(heads(planted_effect(), "slot", lambda record: record.episode > 0)) == {}
    (key, sentence) = only(heads(planted_effect(), "slot", lambda record: record.run.replicate < 2))
    assert key == ("dead heads", "notes", ("simplified",))
    assert "slot (2 of 6 runs)" in sentence
    (key, sentence) = only(heads(planted_effect(), "op"))
    assert key == ("dead heads", "caps", ("simplified",))
    assert sentence.endswith("it did not train.")


def test_a_head_that_has_one_choice_by_its_settings_is_not_dead():
    def one_slot(plan):
        blocks = tuple(
            replace(block, runs=tuple(replace(spec, slots=("early",)) for spec in block.runs)) for block in plan.blocks
        )
        return replace(plan, blocks=blocks)

    assert found(planned(heads(planted_effect(), "slot"), one_slot)) == {}


def test_a_run_in_progress_has_no_dead_head_yet():
    events = heads(planted_effect(), "slot")
    cut = next(i for i, event in enumerate(events) if isinstance(event, EpisodeRecorded) and event.record.episode == 3)
    assert found(events[:cut]) == {}
