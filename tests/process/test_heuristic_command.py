"""`esper-ab growth heuristic`: the hand-written controller manages seeds in several slots of one host."""

import json

import pytest
from support.commands.in_process import esper_ab, stdout_of
from support.commands.progress_lines import without_progress

from esper_ab.commands.growth import count_by_slot, count_several_slots, describe_answer, make_question
from esper_ab.contracts.solo import Host, Seed, SoloAnswer
from esper_ab.journal.load import load

HEURISTIC = ("growth", "heuristic", "--json")


def test_seed_modules_grow_in_several_slots_of_one_host():
    answer = json.loads(stdout_of(*HEURISTIC, "--task", "digits", "--episodes", "1", "--slots", "early", "mid", "late"))
    slots = [{seed["slot"] for seed in host["seeds"]} for host in answer["hosts"]]
    assert any(len(used_slots) >= 2 for used_slots in slots)
    assert answer["several_slots"] == sum(len(used_slots) >= 2 for used_slots in slots)
    assert any(seed["end"] == "fossilized" for host in answer["hosts"] for seed in host["seeds"])
    for host in answer["hosts"]:
        births = [seed["germinated"] for seed in host["seeds"]]
        ends = [seed["end_step"] for seed in host["seeds"]]
        assert None not in ends[:-1]  # one at a time, and only the last may be under way
        assert all(end < birth for end, birth in zip(ends, births[1:], strict=False))
        assert all(birth >= host["settled_step"] for birth in births)
    assert answer["by_slot"]["early"]["germinated"] == sum(
        seed["slot"] == "early" for host in answer["hosts"] for seed in host["seeds"]
    )


@pytest.mark.slow
def test_the_heuristic_command_grows_the_same_hosts_as_an_experiment(tmp_path):
    """The command uses the kernel that an experiment would choose, so accuracies are equal to the bit."""
    flags = ("--task", "synthetic", "--episodes", "1", "--steps", "12", "--n-envs", "2")
    stdout_of(
        "launch",
        "--groups",
        "heuristic,wait",
        *flags,
        "--seeds",
        "2",
        "--eval-episodes",
        "2",
        "--output-dir",
        tmp_path,
        "--name",
        "x",
        "--quiet",
    )
    experiment = [host.result.outcome for host in load(tmp_path / "x").history.runs["heuristic/0"].evaluation.episodes]
    answer = json.loads(stdout_of(*HEURISTIC, *flags))
    assert [host["held_out_accuracy"] for host in answer["hosts"]] == experiment


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--slots", "erly"), "no slot 'erly' in task digits; it has early, mid, late"),
        (("--device", "cuda:99"), "no device 'cuda:99' here"),
    ],
)
def test_an_unknown_slot_or_device_is_refused_in_one_line(args, words):
    result = esper_ab(*HEURISTIC, *args)
    assert result.returncode == 2
    assert words in json.loads(result.stdout)["error"]
    assert len(without_progress(result.stderr)) == 1


def host(*seeds: Seed, settled_step: int | None = 4) -> Host:
    return Host(
        episode=0,
        env=len(seeds),
        seeds=seeds,
        held_out_accuracy=50.0,
        params_added=0,
        settled_step=settled_step,
        unsettled_steps=3,
        improving_steps=5,
        diverged=False,
    )


def seed(slot: str, end: str = "") -> Seed:
    return Seed(
        slot=slot, blueprint="norm", germinated=6, advanced=2, end=end, end_step=9 if end else None, contribution=None
    )


def test_the_heuristic_report_says_why_a_host_did_not_grow():
    grown_host = host(seed("early", "fossilized"), seed("late", "pruned"), seed("late"))
    answer = SoloAnswer(
        slots=("early", "late"), kernel="torch", hosts=(grown_host, host(seed("late")), host(settled_step=None))
    )
    assert count_several_slots(answer) == 1
    assert count_by_slot(answer)["late"] == {"germinated": 3, "advanced": 6, "fossilised": 0, "pruned": 1}
    question = make_question(
        slots=None, task="digits", data_dir="", episodes=1, steps=9, n_envs=3, rng_seed=0, device="cpu"
    )
    text = describe_answer(question, answer)
    assert "rng seed 0, trained by torch\n" in text
    assert "early           1         2           1       0" in text
    assert "early norm from 6, fossilised at 9; late norm from 6, pruned at 9; late norm from 6, under way" in text
    assert "never settled; no seed module: 3 steps not settled, 5 without a plateau" in text
