"""The code blocks of the A/B testing document that labs follow, with only imports and trainer keys changed."""

import json
import runpy
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

import pytest
from support.commands.in_process import stdout_of
from support.coordinators.disturbed import digests

import esper_ab
from esper_ab.api.files import load_declaration
from esper_ab.api.requested import parse_experiment, tracking_of
from esper_ab.journal.load import load

BLOCKS = Path(__file__).parents[1] / "support" / "document"
RATES = {"variant_a": 0.001, "variant_b": 0.0001}


def rates(declaration):
    return {group.name: group.settings.ppo.lr for group in declaration.asked.groups}


def test_the_first_example_declares_one_experiment_under_two_names():
    declaration = load_declaration(BLOCKS / "my_experiment.py")
    assert rates(declaration) == RATES
    assert (declaration.asked.seeds, declaration.asked.name) == (5, "my_experiment")
    assert declaration.about["description"] == "My A/B test experiment"
    assert declaration.about["variants"]["variant_b"]["run"] == "variant_b"


def test_a_dry_run_shows_the_configuration_without_creating_files(tmp_path):
    flags = ("--dry-run", "-v", "--output-dir", "results/exp1")
    output = stdout_of("launch", BLOCKS / "my_experiment.py", *flags, folder=tmp_path)
    assert "2 groups x 5 seeds = 10 runs" in output
    assert "ppo.lr  0.001      0.0001" in output
    assert list(tmp_path.iterdir()) == []


def test_the_complete_example_declares_its_wandb_settings_and_tags():
    declaration = load_declaration(BLOCKS / "curriculum_comparison.py")
    assert {group.name: group.settings.reward.mode for group in declaration.asked.groups} == {
        "learning_progress": "shaped",
        "prioritized_regressed": "simplified",
    }
    tracking = declaration.tracking
    assert (tracking.wandb, tracking.wandb_entity, tracking.wandb_project) == ("online", "metta-research", "")
    assert tracking.tags == {"learning_progress": ("curriculum_lp",), "prioritized_regressed": ("curriculum_pr",)}


def test_a_custom_experiment_class_can_be_modified_after_loading(monkeypatch):
    declaration = load_declaration(BLOCKS / "custom_class.py")
    assert rates(declaration) == RATES
    assert declaration.asked.seeds == 10
    monkeypatch.syspath_prepend(BLOCKS)
    from custom_class import MyCustomExperiment

    changed_experiment = MyCustomExperiment()
    changed_experiment.runs_per_variant = 3
    changed_experiment.variants[0].overrides["ppo__lr"] = 0.01
    assert parse_experiment(changed_experiment).seeds == 3
    assert parse_experiment(changed_experiment).groups[0].settings.ppo.lr == 0.01
    assert parse_experiment(MyCustomExperiment()).groups[0].settings.ppo.lr == 0.001
    assert tracking_of(changed_experiment).tags == {}


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory, warm_children: None) -> tuple[Path, str]:
    """Run the block for programmatic execution in threads of this process."""
    folder = tmp_path_factory.mktemp("document")
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as output:
        patch.chdir(folder)
        patch.syspath_prepend(BLOCKS)
        patch.setattr(esper_ab, "run_ab_test", partial(esper_ab.run_ab_test, launcher="inline"))
        runpy.run_path(str(BLOCKS / "programmatic.py"))
    return folder / "custom_results" / "my_experiment", output.getvalue()


def test_a_run_is_successful_when_all_its_records_arrived(executed):
    experiment_dir, printed_text = executed
    assert printed_text.splitlines()[-2:] == ["variant_a: 5/5 successful", "variant_b: 5/5 successful"]
    history = load(experiment_dir).history
    assert len(history.runs) == 10
    assert all(run.evaluation is not None and len(run.episodes) == 1 for run in history.runs.values())


def test_the_output_has_the_structure_that_the_document_describes(executed):
    experiment_dir, _ = executed
    assert 'description = "My A/B test experiment"' in (experiment_dir / "experiment.toml").read_text()
    assert "variant_a" in (experiment_dir / "summary.txt").read_text()
    runs = {f"{variant}-{replicate}" for variant in RATES for replicate in range(5)}
    assert {path.name for path in (experiment_dir / "runs").iterdir()} == runs
    for name in runs:
        text = (experiment_dir / "runs" / name / "config.toml").read_text()
        assert f'groups = ["{name.partition("-")[0]}"]' in text
        assert f"lr = {RATES[name.partition('-')[0]]}" in text


def test_the_config_file_of_a_run_reproduces_its_records(executed, tmp_path):
    experiment_dir, _ = executed
    config = experiment_dir / "runs" / "variant_b-1" / "config.toml"
    stdout_of(
        "launch",
        config,
        "--groups",
        "variant_b,wait",
        "--name",
        "again",
        "--output-dir",
        tmp_path,
        "--quiet",
        "--launcher",
        "inline",
    )
    original_digests, repeated_digests = (digests(path)["variant_b/1"] for path in (experiment_dir, tmp_path / "again"))
    assert len(repeated_digests) == 2, "an episode and the evaluation"
    assert repeated_digests == original_digests


def test_tidy_and_list_ignore_the_folders_of_runs(executed):
    experiment_dir, _ = executed
    assert "no damage found" in stdout_of("tidy", "--check", experiment_dir)
    experiments = json.loads(stdout_of("list", experiment_dir.parent, "--json"))
    assert [Path(entry["experiment_dir"]).name for entry in experiments] == ["my_experiment"]
    removable_names = json.loads(stdout_of("tidy", experiment_dir, "--check", "--json"))[0]["removable"]
    assert not [name for name in removable_names if name.startswith("runs/")]
