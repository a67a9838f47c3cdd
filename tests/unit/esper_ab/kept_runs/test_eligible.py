"""Groups whose runs may be kept, and the reason why those of others may not."""

import pytest
from msgspec.structs import replace
from support.plans import requests

from esper_ab.kept_runs.eligible import eligible_groups

GROWTH = ("a", "b")


def trainer_plan(trainer="mine.py", outcome_unit="J", guardrails=(), **facts):
    machine = requests.rehearsed(settings={"slow": {}, "fast": {}}, **facts)
    outcome = replace(machine.tasks[0].measures.outcome, unit=outcome_unit)
    tasks = tuple(replace(task, measures=replace(task.measures, outcome=outcome)) for task in machine.tasks)
    machine = replace(machine, tasks=tasks)
    task = {"mine.py": "mine", "python run.py {seed}": "python"}[trainer]
    asked = requests.experiment(
        ("slow", "fast"),
        trainer=trainer,
        task=f"trainer:{task}",
        margin=1.0,
        control="slow",
        guardrails=guardrails,
        seeds=20,
    )
    return requests.planned(asked, machine), machine


def eligible(plan, machine):
    return eligible_groups(plan, machine, None, ())


def test_runs_of_growth_on_a_cpu_repeat():
    machine = requests.machine()
    groups, refused = eligible(requests.planned(requests.experiment(GROWTH), machine), machine)
    assert refused == ()
    assert {name: group.repeats for name, group in groups.items()} == {"a": True, "b": True}
    assert len({group.identity for group in groups.values()}) == 2
    assert {*groups["a"].conditions} == {"esper_ab", "system", "processor", "packages"}


def test_runs_of_growth_on_gpus_are_refused():
    machine = requests.machine(gpus=2)
    groups, refused = eligible(requests.planned(requests.experiment(GROWTH), machine), machine)
    assert groups == {}
    assert refused == (
        "Runs of a and b are neither kept nor reused: they may not repeat to the bit, because cuda:0 is not a CPU "
        "core.",
    )


def test_runs_on_other_machines_are_refused():
    machine = requests.machine()
    machine = replace(machine, devices=tuple(replace(device, node="node3") for device in machine.devices))
    groups, (sentence,) = eligible(requests.planned(requests.experiment(GROWTH), machine), machine)
    assert groups == {}
    assert "workers are on other machines" in sentence


@pytest.mark.parametrize(
    ("guardrail", "word"), [("lower wall_s margin 10%", "times"), ("lower crashes margin 0.5", "failed runs")]
)
def test_guardrails_that_kept_runs_cannot_have_are_named(guardrail, word):
    groups, (sentence,) = eligible(*trainer_plan(guardrails=(guardrail,)))
    assert groups == {}
    assert word in sentence


@pytest.mark.parametrize("repeats", [True, False])
def test_a_python_trainer_is_known_by_its_files(repeats):
    groups, refused = eligible(*trainer_plan(repeats=repeats))
    assert refused == ()
    assert {group.repeats for group in groups.values()} == {repeats}
    others, _ = eligible(*trainer_plan(repeats=repeats, sha256="b" * 64))
    assert all(groups[name].identity != others[name].identity for name in groups)


def test_an_outcome_in_seconds_is_refused_if_it_does_not_repeat():
    assert eligible(*trainer_plan(outcome_unit="s", repeats=True))[1] == ()
    groups, (sentence,) = eligible(*trainer_plan(outcome_unit="steps/s", repeats=False))
    assert groups == {}
    assert "measured in steps/s" in sentence


def test_a_command_that_does_not_repeat_needs_states_of_the_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.py").write_text("", encoding="utf-8")
    plan, machine = trainer_plan("python run.py {seed}", repeats=False)
    plan = replace(plan, experiment=replace(plan.experiment, trainer_folder=str(tmp_path)))
    groups, (sentence,) = eligible(plan, machine)
    assert groups == {}
    assert "only with states of the code" in sentence


def test_a_command_that_repeats_is_known_by_the_files_around_it(tmp_path):
    def identities():
        plan, machine = trainer_plan("python run.py {seed}", repeats=True)
        plan = replace(plan, experiment=replace(plan.experiment, trainer_folder=str(tmp_path)))
        groups, refused = eligible_groups(plan, machine, None, [tmp_path / "experiments"])
        assert refused == ()
        return {group.identity for group in groups.values()}

    (tmp_path / "helper.py").write_text("one", encoding="utf-8")
    before = identities()
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "result.csv").write_text("", encoding="utf-8")
    assert identities() == before
    (tmp_path / "helper.py").write_text("two", encoding="utf-8")
    assert not identities() & before
