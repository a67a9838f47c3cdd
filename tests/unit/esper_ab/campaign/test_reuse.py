"""The folder of kept runs before and after an experiment: what can go wrong harms no result."""

import pytest
from msgspec.structs import replace
from support.journals.kept_experiments import COST, MACHINE, POLICY, finished_experiment, synthetic

from esper_ab.campaign.campaign import PartPlan, PriorResults
from esper_ab.campaign.reuse import kept_afterwards, place_policies, references_of, with_offers
from esper_ab.contracts.errors import UsageError
from esper_ab.kept_runs.folder import stored_files
from esper_ab.kept_runs.keeping import keep_runs
from esper_ab.readers.joint_directory import Joint
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.references import References


def part_with_offers(tmp_path, folder):
    (tmp_path / "new").mkdir()
    part = PartPlan(
        name="",
        asked=AskedExperiment(groups=()),
        machine=MACHINE,
        plan=synthetic().plan(),
        cost=COST,
        folder=tmp_path / "new",
        prior=PriorResults(),
    )
    return with_offers(part, References(folder=folder, limit_bytes=10**9), ())


def test_the_policies_of_runs_that_may_be_reused_are_placed(tmp_path):
    keep_runs(finished_experiment(tmp_path / "one", tmp_path / "kept", synthetic(replicates=3)))
    place_policies(part_with_offers(tmp_path, tmp_path / "kept"))
    files = {path.relative_to(tmp_path / "new").as_posix(): path.read_bytes() for path in tmp_path.glob("new/*/*/*.pt")}
    assert files == {f"reused/{group}/{seed}.pt": POLICY for group in "ab" for seed in (1, 2)}


def test_a_folder_that_cannot_be_created_is_refused_before_the_first_run(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    part = part_with_offers(tmp_path, tmp_path / "file" / "kept")
    with pytest.raises(UsageError, match=r"--references .*/file/kept: this folder cannot be created: .*; name another"):
        place_policies(part)


def test_an_experiment_without_a_folder_places_nothing(tmp_path):
    part = part_with_offers(tmp_path, tmp_path / "kept")
    place_policies(with_offers(type(part)(**{**vars(part), "offers": None}), None, ()))
    assert list((tmp_path / "new").iterdir()) == []


def test_runs_are_kept_when_an_experiment_fails(tmp_path):
    experiment = finished_experiment(tmp_path / "one", tmp_path / "kept", synthetic())
    with pytest.raises(KeyError), kept_afterwards(experiment, is_asked=True):
        raise KeyError
    assert len(stored_files(tmp_path / "kept")) == 12


def test_runs_that_cannot_be_kept_are_named_and_harm_nothing(tmp_path, capsys):
    (tmp_path / "file").write_text("", encoding="utf-8")
    experiment = finished_experiment(tmp_path / "one", tmp_path / "file" / "kept", synthetic())
    with kept_afterwards(experiment, is_asked=True):
        pass
    assert capsys.readouterr().err.startswith("runs were not kept for later experiments: ")


def test_a_joint_experiment_records_its_folder(tmp_path):
    joint_experiment = Joint(parts=(), scores={})
    assert references_of(joint_experiment) is None
    with_folder = replace(joint_experiment, references=str(tmp_path), references_limit_bytes=5)
    assert references_of(with_folder) == References(folder=tmp_path, limit_bytes=5)
