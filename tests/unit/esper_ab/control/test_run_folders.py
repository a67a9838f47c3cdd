"""One folder per run with its resolved settings, made when the run starts."""

from support.plans import fake_plans

from esper_ab.control.run_folders import RunFolders
from esper_ab.journal.events import PlanExtended, RunStarted
from esper_ab.plan.blocks import extend
from esper_ab.plan.settings_toml import run_toml

PLAN = fake_plans.plan(seeds=2, looks=(2,), control="b", early_stop=False)


FIRST = PLAN.blocks[0].runs[0]


def start_of(spec):
    return RunStarted(run=spec.ref, worker="w00", incarnation=1)


def test_only_started_runs_have_a_folder(tmp_path):
    folders = RunFolders(tmp_path, PLAN, PLAN.blocks)
    folders.observe(start_of(PLAN.blocks[1].runs[0]))
    extension = extend(PLAN, PLAN.design, 2, 1)
    folders.observe(PlanExtended(extension=extension))
    folders.observe(start_of(extension.blocks[0].runs[0]))
    names = {
        f"{spec.ref.group_id}-{spec.ref.replicate}" for spec in (PLAN.blocks[1].runs[0], extension.blocks[0].runs[0])
    }
    assert {path.name for path in (tmp_path / "runs").iterdir()} == names


def test_a_restarted_run_keeps_its_config_file(tmp_path):
    folders = RunFolders(tmp_path, PLAN, PLAN.blocks)
    folders.observe(start_of(FIRST))
    file = tmp_path / "runs" / f"{FIRST.ref.group_id}-0" / "config.toml"
    file.write_text("untouched")
    folders.observe(start_of(FIRST))
    assert file.read_text() == "untouched"


def test_the_config_of_a_run_begins_with_the_command_to_repeat_it():
    assert "--groups a,wait --name again" in run_toml(PLAN, FIRST).splitlines()[0]
