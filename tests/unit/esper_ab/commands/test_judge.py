import json
import shlex

import pytest
from support.commands.in_process import esper_ab, stdout_of
from support.journals.ready_journals import write
from support.journals.synthetic import Shape, Synthetic
from support.outcomes.csv_outcomes import csv_text, drawn, rows, scales

from esper_ab import compare_outcomes, judge_outcomes
from esper_ab.contracts.errors import UsageError
from esper_ab.readers.external_plan import make_external_plan, save_plan
from esper_ab.readers.joint_directory import Joint, JointPart, write_joint
from esper_ab.settings.parts import folder_of
from esper_ab.verdict.analysis_plan import Rule


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A plan for ten seeds, and outcomes of all of them in which new is better."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results.csv").write_text(csv_text(rows(*drawn(10, 8.0))))
    stdout_of("design", "--groups", "new,old", "--seeds", "10", "--margin", "2")
    return tmp_path


def test_judge_checks_a_requirement_under_a_plan(files):
    judge_arguments = "judge", "plan.json", "results.csv"
    assert "new is better than old" in stdout_of(*judge_arguments, "--fail-unless", "new better-than old")
    refused_result = esper_ab(*judge_arguments, "--fail-unless", "old better-than new")
    assert refused_result.returncode == 12
    assert refused_result.stderr.startswith('error: "old better-than new" does not hold')
    assert json.loads(stdout_of(*judge_arguments, "--json"))["comparisons"][0]["verdict"] == "BETTER"


def test_a_fulfilled_requirement_is_printed_with_possible_unseen_failures(files):
    new_outcomes, old_outcomes = drawn(16, 0.0)
    stdout_of("design", "--groups", "new,old", "--seeds", "16", "--margin", "9", "--out", "level.json")
    (files / "level.csv").write_text(csv_text(rows(new_outcomes, old_outcomes)))
    met_result = esper_ab("judge", "level.json", "level.csv", "--fail-unless", "new not-worse-than old")
    assert met_result.returncode == 0
    assert met_result.stderr.startswith(
        'note: "new not-worse-than old" holds, but failures in up to 17 % of a group\'s runs'
    )
    assert "note:" not in esper_ab("judge", "plan.json", "results.csv", "--fail-unless", "new better-than old").stderr


def test_a_design_keeps_the_given_order_of_seeds(files):
    design = "design --groups a,b --seeds 7,3,5,1,9,11 --margin 1 --out p.json --json"
    assert json.loads(stdout_of(*design.split()))["looks"] == [6]
    assert json.loads((files / "p.json").read_text())["plan"]["replicates"] == ["7", "3", "5", "1", "9", "11"]


def scored(folder, design, table):
    """What is said of these rows by a plan of that design."""
    (folder / "found.csv").write_text(csv_text(table, header="group,seed,outcome,task"))
    (folder / "plan.json").unlink()
    stdout_of("design", "--groups", "new,old", "--margin", "2", *design.split())
    return esper_ab("judge", "plan.json", "found.csv", "--scores", "0..100").stdout


def test_scores_are_withheld_until_every_task_has_runs(files):
    table = rows(*drawn(10, 8.0), task="A")
    text_of_one_task = scored(files, "--seeds 10 --tasks A,B", table)
    assert ("The next look is after " in text_of_one_task, "Scores over all tasks" in text_of_one_task) == (True, False)
    both_tasks = scored(files, "--seeds 10 --tasks A,B", [*table, *rows(*drawn(10, 8.0), task="B")])
    assert "Scores over all tasks" in both_tasks
    text_of_choice = scored(files, "--seeds 8 --cells p,q --choose 2", rows(*drawn(2, 8.0), task="p"))
    assert "Cells must be chosen" in text_of_choice


def test_an_answer_without_a_plan_is_called_exploratory(files):
    output = stdout_of("judge", "results.csv", "--margin", "2", "--unit", "%")
    assert output.startswith("EXPLORATORY.")
    assert "points" in output


@pytest.mark.parametrize("parts", [("digits", "mixture"), ("digits, ppo.lr=1e-4", "digits, ppo.lr=1e-3")])
def test_judge_names_the_parts_when_it_refuses_a_joint_directory(tmp_path, monkeypatch, parts):
    monkeypatch.chdir(tmp_path)
    shapes = {"new": Shape(accuracy=90.0), "old": Shape(accuracy=60.0, mode="simplified")}
    for part in parts:
        write(tmp_path / "both" / folder_of(part), Synthetic(groups=shapes, replicates=6).events())
    plan = make_external_plan(tuple(shapes), tuple("012345"), scales(tasks=parts), Rule())
    joint_experiment = Joint(
        parts=tuple(JointPart(name=part_name, folder=folder_of(part_name), digest="0" * 64) for part_name in parts),
        scores={},
    )
    write_joint(tmp_path / "both", joint_experiment, {})
    save_plan(plan, tmp_path / "both" / "plan.json")
    result = esper_ab("judge", "both/plan.json", "both")
    assert result.returncode == 2
    named_parts = shlex.split(result.stderr.rpartition("judge takes them by name: ")[2])
    assert "new is better than old" in stdout_of("judge", "both/plan.json", *named_parts)
    with pytest.raises(UsageError, match="judge_outcomes takes them by name"):
        judge_outcomes(plan, "both")


SWEEP = [
    {"group": f"lr{group}", "seed": seed, "outcome": 50.0 + group + seed} for group in range(9) for seed in range(3)
]


def test_a_sweep_with_too_few_seeds_is_answered_in_one_paragraph(files):
    (files / "sweep.csv").write_text(csv_text(SWEEP))
    result = esper_ab("judge", "sweep.csv", "--margin", "2")
    text = " ".join(result.stdout.split())
    assert result.returncode == 3
    assert text.count("NO INFERENCE") == 1
    assert "No group has 6 seeds, so no difference between the 9 groups can be judged." in text
    assert "all 9 at once with 95 % confidence: lr8 59.00 (55.42 to 62.58), lr7 58.00 (54.42 to 61.58), " in text
    assert "esper-ab design --groups lr8,lr7,lr6 --seeds 3..22 --margin 2`" in text
    text_for_lower = " ".join(esper_ab("judge", "sweep.csv", "--margin", "2", "--better", "lower").stdout.split())
    assert "95 % confidence: lr0 51.00 (47.42 to 54.58), lr1 52.00 " in text_for_lower
    assert "--groups lr0,lr1,lr2 --seeds 3..22 --margin 2 --better lower`" in text_for_lower


@pytest.mark.parametrize(("seeds", "status"), [(3, 3), (10, 0)])
def test_the_exit_status_of_judge_shows_whether_a_verdict_exists(files, seeds, status):
    (files / "some.csv").write_text(csv_text([row for row in rows(*drawn(10, 8.0)) if int(row["seed"]) < seeds]))
    assert esper_ab("judge", "some.csv", "--margin", "2").returncode == status
    assert esper_ab("judge", "plan.json", "some.csv").returncode == status


@pytest.mark.parametrize("path", ["results.csv", "folder"])
def test_files_and_folders_are_judged_together(files, path):
    (files / "folder").mkdir()
    new_outcomes, old_outcomes = drawn(10, 8.0)
    more_rows = [
        {**row, "seed": int(row["seed"]) + 10, "outcome": float(row["outcome"]) + 0.123 + int(row["seed"]) / 100}
        for row in rows(new_outcomes, old_outcomes)
    ]
    (files / "more.csv").write_text(csv_text(more_rows))
    (files / "folder/results.csv").write_text((files / "results.csv").read_text())
    output = stdout_of("judge", path, "more.csv", "--margin", "2")
    assert "in 20 of 20 pairs" in " ".join(output.split())


def test_a_row_that_occurs_in_two_files_is_refused(files):
    (files / "again.csv").write_text((files / "results.csv").read_text())
    result = esper_ab("judge", "results.csv", "again.csv", "--margin", "2")
    assert result.returncode == 2
    assert "group new also has seed 0 in row 1" in result.stderr


def test_a_plan_can_be_judged_with_several_files(files):
    content = (files / "results.csv").read_text().splitlines(keepends=True)
    (files / "a.csv").write_text("".join(content[:8]))
    (files / "b.csv").write_text("".join([content[0], *content[8:]]))
    assert "new is better than old" in stdout_of("judge", "plan.json", "a.csv", "b.csv")
    result = esper_ab("judge", "plan.json", "a.csv", "--margin", "2")
    assert result.stderr.startswith("error: --margin is only for outcomes without a plan")
    assert esper_ab("judge", "plan.json").stderr.startswith("error: judge plan.json: name the outcomes as well")


def curves(folder, groups=("small", "large"), seeds=6):
    """Write a monitor.csv per run, in folders whose names tell group and seed."""
    for place, group in enumerate(groups):
        for seed in range(seeds):
            run = folder / f"{group}-seed{seed}"
            run.mkdir(parents=True)
            lines = [f"{10 * place + seed + episode / 7},100,{episode}.0" for episode in range(5)]
            text = "\n".join(['#{"t_start": 1.5, "env_id": "X"}', "r,l,t", *lines]) + "\n"
            (run / "monitor.csv").write_text(text)


def test_groups_and_seeds_read_from_names_are_shown_before_the_answer(files):
    curves(files / "runs")
    result = esper_ab("judge", "runs", "--margin", "2")
    assert result.returncode == 0
    assert result.stderr.splitlines() == [
        "Groups and seeds from names: --runs '{group}-seed{seed}'",
        "large: seeds 0-5; small: seeds 0-5",
    ]
    assert result.stdout.startswith("The outcome of a run is the mean r of its last 100 episodes, up to step 500;")
    told = esper_ab("judge", "runs", "--margin", "2", "--runs", "{group}-seed{seed}", "--mean-last", "100")
    assert told.stdout == result.stdout


def test_the_refusal_of_names_without_a_pattern_completes_the_command(files):
    curves(files / "runs", groups=("small",))
    curves(files / "runs/deeper", groups=("large",))
    result = esper_ab("judge", "runs", "--margin", "2")
    assert result.returncode == 2
    assert result.stderr.rstrip().endswith("esper-ab judge runs --margin 2 --runs '{group}-s{seed}'")


@pytest.mark.parametrize(("flags", "message"), [(("--at", "100"), ""), (("--at", "150"), "nearest are at 100 and 200")])
def test_judge_can_take_outcomes_at_a_given_step(files, flags, message):
    curves(files / "runs")
    result = esper_ab("judge", "runs", "--margin", "2", *flags)
    assert (result.returncode, message in result.stderr) == (2 if message else 0, True)


def test_compare_outcomes_accepts_the_same_paths_as_judge(files):
    curves(files / "runs")
    every = sorted((files / "runs").iterdir())
    answer = compare_outcomes(every, margin=2)
    assert answer.verdicts == compare_outcomes(files / "runs", margin=2, runs="{group}-seed{seed}").verdicts
    assert "large: seeds 0-5; small: seeds 0-5." in answer.observations.reading
    with pytest.raises(UsageError, match="apply to files and folders"):
        compare_outcomes({"a": [1.0], "b": [2.0]}, margin=2, at=3)


@pytest.fixture(scope="module")
def folder_of_done(tmp_path_factory):
    """A folder with a small finished experiment."""
    folder = tmp_path_factory.mktemp("experiments")
    write(folder / "done", Synthetic(replicates=8, episodes=2, n_envs=2, eval_episodes=2).events())
    return folder


@pytest.mark.parametrize("flags", [("-v",), ("--json",), ("--fail-unless", "simplified better-than shaped")])
def test_an_experiment_is_judged_by_its_own_plan(folder_of_done, monkeypatch, flags):
    """A gate on it needs no file with a plan, either."""
    monkeypatch.chdir(folder_of_done)
    judged = esper_ab("judge", "done", *flags)
    reported = esper_ab("report", "done", *flags)
    assert (judged.returncode, judged.stdout, judged.stderr) == (
        reported.returncode,
        reported.stdout,
        reported.stderr,
    )
    assert judged.returncode == (12 if "--fail-unless" in flags else 0)


def test_flags_that_the_plan_of_an_experiment_replaces_are_refused(folder_of_done, monkeypatch):
    monkeypatch.chdir(folder_of_done)
    refused = esper_ab("judge", "done", "--margin", "2")
    assert refused.returncode == 2
    assert "--margin does not apply to done, an experiment with a plan of its own; leave it out" in refused.stderr
