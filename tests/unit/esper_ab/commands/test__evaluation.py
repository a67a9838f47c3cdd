"""`design --level checkpoints`, and `judge` on the order of trials that it writes."""

import csv
import json

import pytest
from support.commands.in_process import esper_ab, stdout_of

import esper_ab as package
from esper_ab.readers.external_plan import read_plan

DESIGN = "design --level checkpoints --binary --groups new,old --margin 0.1 --order-seed 4"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fill(folder, count):
    """Fill in the first trials: new succeeds always, old never."""
    plan = read_plan(folder / "plan.json")
    file = folder / "order.csv"
    rows = list(csv.DictReader(file.read_text().splitlines()))
    for row in rows[:count]:
        row["outcome"] = str(int(plan.evaluation.group_of(row["arm"]) == "new"))
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def test_an_evaluation_plan_states_looks_error_rate_and_power(folder):
    text = " ".join(stdout_of(*DESIGN.split(), "--items", "40", "--unpaired").split())
    assert text.startswith("plan.json, order.csv: checkpoints new and old, 40 trials each, which form no pairs")
    assert "looks after 20 trials (p <= 0.0028), 30 trials" in text
    assert "False claims: at most 4.9 %, whatever chance the two share." in text
    assert "0.95 and 0.5 99.9 %" in text
    assert "judge plan.json order.csv" in text
    plan = read_plan(folder / "plan.json")
    assert plan.replicates == tuple(map(str, range(1, 41)))
    assert plan.digest in text.replace(" ", "")


def test_an_evaluation_plan_can_be_printed_as_json(folder):
    design_arguments = [*DESIGN.split(), "--items", "20", "--unpaired", "--chances", ".95:.5", "--json", "--dry-run"]
    tree = json.loads(stdout_of(*design_arguments))
    assert tree["looks"] == [10, 15, 20]
    assert tree["error"] <= 0.05
    (power,) = tree["power"]
    assert power["needed"] == 14
    assert power["power"] > 0.9
    assert list(folder.iterdir()) == []


def test_judge_reports_the_early_stop_of_an_evaluation(folder):
    stdout_of(*DESIGN.split(), "--items", "20", "--unpaired")
    fill(folder, 13)
    text = " ".join(stdout_of("judge", "plan.json", "order.csv").split())
    assert "Look 1 of 3 is after trial 20 (10 trials for each arm): 7 outcomes are missing." in text
    fill(folder, 20)
    judge_arguments = "judge", "plan.json", "order.csv"
    text = " ".join(stdout_of(*judge_arguments, "--fail-unless", "new better-than old").split())
    assert "Decided after 10 of 20 trials for each arm: stop." in text
    assert "On these 10 trials, checkpoint new is better than checkpoint old" in text
    assert esper_ab(*judge_arguments, "--fail-unless", "old better-than new").returncode == 12
    assert json.loads(stdout_of(*judge_arguments, "--json"))["level"] == "checkpoints"
    assert package.judge_outcomes("plan.json", "order.csv").verdicts == {("new", "old", ""): "BETTER"}


def test_paired_items_are_judged_by_the_exact_mcnemar_test(folder):
    stdout_of(*DESIGN.split(), "--items", "a,b,c,d,e,f,g,h,i,j,k,l")
    fill(folder, 24)
    answer = package.judge_outcomes("plan.json", "order.csv")
    assert answer.comparisons[0].test == "exact McNemar test"
    assert "in 9 of 9 items" in answer.comparisons[0].headline


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("", "needs --items N"),
        ("--items 5", "items: at least 6 needed"),
        ("--items 301", "exact bounds exist for up to 300"),
        ("--items 20 --seeds 4", "--seeds is for plans of runs"),
        ("--items 20 --worst 0", "--worst is for plans of runs"),
        ("--items 20 --tasks a,b", "--tasks is for plans of runs"),
        ("--items 20 --futility 0.8", "--futility is for plans of runs"),
        ("--items 20 --unpaired --correlation 0.5", "--correlation is for items that both checkpoints try"),
        ("--items 20 --chances .9", "expected pairs of numbers from 0 to 1"),
        ("--items 20 --chances .9:1.5", "expected pairs of numbers from 0 to 1"),
        ("--items 20 --chances .9:.5 --correlation .9", "cannot have the correlation 0.9"),
        ("--items 20 --looks 3,20", "looks must ascend from 6 items or more and end at 20"),
        ("--items 20 --looks 10,15", "looks must ascend from 6 items or more and end at 20"),
        ("--items 20 --alpha 0.7", "must be above 0 and below 0.5"),
        ("--items 6 --alpha 0.001", "cannot show any difference at alpha 0.001"),
        ("--items a,a,b,c,d,e", "item 'a' occurs twice"),
    ],
)
def test_impossible_evaluation_plans_are_refused_in_one_line(folder, flags, message):
    result = esper_ab(*DESIGN.split(), *flags.split())
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--groups new,old --margin 0.1", "needs --binary"),
        ("--groups a,b,c --margin 0.1 --binary", "compares two groups, not 3"),
        ("--groups a,b --margin 10 --binary", "margin 10: outcomes range from 0 to 1"),
    ],
)
def test_unsupported_evaluation_designs_are_refused(flags, message):
    result = esper_ab("design", "--level", "checkpoints", "--items", "20", *flags.split())
    assert result.returncode == 2
    assert message in result.stderr


def test_evaluation_flags_require_the_level_checkpoints():
    result = esper_ab("design", "--groups", "new,old", "--seeds", "20", "--margin", "2", "--binary")
    assert "--binary needs --level checkpoints" in result.stderr
    result_without_seeds = esper_ab("design", "--groups", "new,old", "--margin", "2")
    assert "Missing option '--seeds'" in result_without_seeds.stderr


def test_an_existing_plan_or_order_file_is_not_replaced(folder):
    stdout_of(*DESIGN.split(), "--items", "20")
    order_before = (folder / "order.csv").read_bytes()
    assert "order.csv exists already" in esper_ab(*DESIGN.split(), "--items", "20", "--out", "p.json").stderr
    assert "plan.json exists already" in esper_ab(*DESIGN.split(), "--items", "20", "--order", "o.csv").stderr
    assert sorted(path.name for path in folder.iterdir()) == ["order.csv", "plan.json"]
    assert (folder / "order.csv").read_bytes() == order_before


def test_an_evaluation_plan_can_only_be_judged_with_its_order_file(folder):
    stdout_of(*DESIGN.split(), "--items", "20")
    fill(folder, 40)
    (folder / "results.csv").write_text("group,seed,outcome\nnew,1,1\n")
    assert "has no column 'trial'" in esper_ab("judge", "plan.json", "results.csv").stderr
    assert "judged on one file" in esper_ab("judge", "plan.json", "order.csv", "order.csv").stderr
    assert "do not apply" in esper_ab("judge", "plan.json", "order.csv", "--columns", "outcome=x").stderr


def test_the_trial_order_is_random_without_a_seed(folder):
    design = "design --level checkpoints --binary --groups new,old --margin 0.1 --items 40 --json"
    first_plan = json.loads(stdout_of(*design.split(), "--out", "a.json", "--order", "a.csv"))
    second_plan = json.loads(stdout_of(*design.split(), "--out", "b.json", "--order", "b.csv"))
    assert first_plan["sha256"] != second_plan["sha256"]
    assert (folder / "a.csv").read_bytes() != (folder / "b.csv").read_bytes()
