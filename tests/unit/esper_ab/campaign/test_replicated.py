"""The plan of the experiment whose own settings are launched again."""

import shutil

from support.journals.over_tasks import parts_of, write_over_tasks
from support.journals.ready_journals import write
from support.journals.replications import experiment

from esper_ab.campaign.replicated import parts_beside, plan_beside
from esper_ab.readers.joint import digest_of


def test_the_journal_beside_the_settings_has_the_plan(tmp_path):
    write(tmp_path / "demo", experiment(1).events())
    assert plan_beside(tmp_path / "demo" / "experiment.toml") == experiment(1).plan()


def test_without_a_readable_journal_there_is_none(tmp_path):
    assert plan_beside(tmp_path / "experiment.toml") is None
    (tmp_path / "events.jsonl").write_bytes(b"damaged\n")
    assert plan_beside(tmp_path / "experiment.toml") is None


def plans_of(rng_seed, **changes):
    return {task: part.plan() for task, part in parts_of(rng_seed, **changes).items()}


def test_the_plans_of_all_parts_are_beside_the_settings_over_several_tasks(tmp_path):
    first = write_over_tasks(tmp_path / "first", parts_of(1))
    again = write_over_tasks(tmp_path / "again", parts_of(2), earlier=[first])
    original = parts_beside(again / "experiment.toml")
    assert original.plans == plans_of(2)
    assert [(earlier.name, earlier.digest) for earlier in original.earlier] == [
        (folder.name, digest_of(folder)) for folder in (first, again)
    ]


def test_parts_are_replicated_by_the_same_plans_on_another_rng_seed(tmp_path):
    original = parts_beside(write_over_tasks(tmp_path / "first", parts_of(1)) / "experiment.toml")
    assert original.replicated_by(plans_of(2))
    assert not original.replicated_by(plans_of(1))  # the same seeds
    assert not original.replicated_by(plans_of(2, replicates=8))
    assert not original.replicated_by(plans_of(2, tasks=("digits", "blobs")))
    assert not original.replicated_by({**plans_of(2), "mixture": plans_of(2, episodes=9)["mixture"]})


def test_parts_of_which_one_cannot_be_read_are_no_original(tmp_path):
    assert parts_beside(tmp_path / "experiment.toml") is None
    first = write_over_tasks(tmp_path / "first", parts_of(1))
    shutil.rmtree(first / "mixture")
    assert parts_beside(first / "experiment.toml") is None
    (first / "joint.json").write_text("damaged")
    assert parts_beside(first / "experiment.toml") is None
