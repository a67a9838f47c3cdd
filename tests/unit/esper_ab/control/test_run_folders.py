"""One folder per run with its resolved settings, made when the run starts."""

from support.plans import fake_plans

from esper_ab.control.run_folders import RunFolders
from esper_ab.journal.events import PlanExtended, RunStarted
from esper_ab.plan.blocks import extend
from esper_ab.plan.settings_toml import run_toml

# The folder of each run: made when the run starts, once, with settings that `launch` reads back.


PLAN = fake_plans.plan(seeds=2, looks=(2,), control="b", early_stop=False)


FIRST = PLAN.blocks[0].runs[0]


def started(spec):
    return RunStarted(run=spec.ref, worker="w00", incarnation=1)


def test_only_runs_that_start_get_one_and_those_added_later_do_too(tmp_path):
    folders = RunFolders(tmp_path, PLAN, PLAN.blocks)
    folders.observe(started(PLAN.blocks[1].runs[0]))
    added = extend(PLAN, PLAN.design, 2, 1)
    folders.observe(PlanExtended(extension=added))
    folders.observe(started(added.blocks[0].runs[0]))
    names = {f"{spec.ref.group_id}-{spec.ref.replicate}" for spec in (PLAN.blocks[1].runs[0], added.blocks[0].runs[0])}
    assert {path.name for path in (tmp_path / "runs").iterdir()} == names


def test_a_run_that_is_taken_up_again_keeps_its_file(tmp_path):
    folders = RunFolders(tmp_path, PLAN, PLAN.blocks)
    folders.observe(started(FIRST))
    file = tmp_path / "runs" / f"{FIRST.ref.group_id}-0" / "config.toml"
    file.write_text("untouched")
    folders.observe(started(FIRST))
    assert file.read_text() == "untouched"


def test_the_first_line_says_how_to_train_it_again():
    assert "--groups a,wait --name again" in run_toml(PLAN, FIRST).splitlines()[0]
