"""The short text of a plan: question, runs, decision, directory, and notes that limit the answer."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from support.plans import requests

from esper_ab.contracts.machine import Machine
from esper_ab.contracts.settings import RewardSettings
from esper_ab.plan.estimate import duration, estimate
from esper_ab.plan.plan import Plan
from esper_ab.plan.text import plan_text, question, short_text
from esper_ab.settings.experiment import AskedArithmetic

FOLDER = Path("a folder/x")


def short_lines(plan: Plan, this_machine: Machine, power: str = "", width: int = 1000) -> list[str]:
    return short_text(
        plan, this_machine, estimate(plan.experiment, plan.lanes, this_machine), FOLDER, power, width
    ).splitlines()


def plan_lines(groups: Sequence[str] = ("a", "b"), *, cores: int = 4, power: str = "", **changes: object) -> list[str]:
    """Return the lines of a plan of groups that differ in one setting."""
    this_machine = requests.machine(cores)
    return short_lines(
        requests.planned(requests.experiment(tuple(groups), **{"margin": 2.0} | changes), this_machine),
        this_machine,
        power,
    )


def trainer_plan(trainer: str = "mine.py", episodes: int = 4, **facts: object) -> tuple[Plan, Machine]:
    """Return a plan of groups slow and fast of a trainer with these facts of its rehearsal, and the machine."""
    settings = {"trainer": trainer, "outcome": "error", "outcome_better": "lower", "margin": 0.5, "episodes": episodes}
    groups = ("slow:trainer.lr=0.1", "fast:trainer.lr=0.2")
    this_machine = requests.rehearsed(**facts)
    return requests.planned(requests.asked(group=groups, **settings), this_machine), this_machine


def test_the_short_text_of_a_plan_has_six_lines() -> None:
    assert plan_lines(power="Finds much.") == [
        "Is the held-out accuracy on digits higher with a than with b?",
        "12 runs (2 groups x 6 seeds), 4 at a time on 4 CPU cores, about 2 min (a rough estimate)",
        "Decides once, after 6 seeds, at 5 %; margin 2 points. EQUIVALENT would need 15 seeds.",
        "Finds much.",
        "a folder/x",
        "Once it runs, Ctrl-C stops it; esper-ab resume 'a folder/x' continues it",
    ]


def test_the_short_text_of_a_plan_with_unknown_power_has_five_lines() -> None:
    assert len(plan_lines()) == 5
    assert "" not in plan_lines()


def test_a_plan_says_which_window_of_training_it_declares_and_what_that_estimates() -> None:
    assert plan_lines(outcome_over="last-third", episodes=50)[3] == (
        "Outcome (last-third): the mean over the last 17 of 50 training episodes; it estimates the policies of that "
        "part of training, which still learn, and not the final policy."
    )


def test_a_trainers_plan_says_which_points_its_window_has() -> None:
    groups = ("slow:trainer.lr=0.1", "fast:trainer.lr=0.2")
    settings = {"trainer": "mine.py", "outcome": "error", "outcome_better": "lower", "margin": 0.5, "episodes": 4}
    this_machine = requests.rehearsed()
    plan = requests.planned(requests.asked(group=groups, outcome_over="last-third", **settings), this_machine)
    window = "Outcome (last-third): the mean over the last 2 of 4 points; it estimates the level near the end of "
    assert f"{window}training, and not the final result." in short_lines(plan, this_machine)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"seeds": 1}, "Decides nothing: a verdict needs 6 seeds; margin 2 points."),
        ({"seeds": 5}, "Decides nothing: a verdict needs 6 seeds; margin 2 points."),
        (
            {"seeds": 14, "alpha": 0.01},
            "Decides once, after 14 seeds, at 1 %; margin 2 points. EQUIVALENT would need 15 seeds.",
        ),
        ({"seeds": 15}, "Decides once, after 15 seeds, at 5 %; margin 2 points."),
        ({"seeds": 20, "looks": (20,)}, "Decides once, after 20 seeds, at 5 %; margin 2 points."),
        ({"seeds": 20, "looks": (12, 20)}, "Decides after 12 or 20 seeds, at 5 % in all; margin 2 points."),
        ({"seeds": 20, "looks": (8, 14, 20)}, "Decides after 8, 14 or 20 seeds, at 5 % in all; margin 2 points."),
        (
            {"seeds": 14, "looks": (8, 14)},
            "Decides after 8 or 14 seeds, at 5 % in all; margin 2 points. EQUIVALENT would need 15 seeds.",
        ),
        ({"unpaired": True}, "Decides nothing; the note explains why."),
        (
            {"order": "fixed", "arithmetic": AskedArithmetic(deterministic=False)},
            "Decides nothing; the note explains why.",
        ),
        ({"order": "fixed"}, "Decides once, after 6 seeds, at 5 %; margin 2 points. EQUIVALENT would need 15 seeds."),
        ({"open_ended": True}, "Can decide after any seed from the 6th on, at 5 % in all; margin 2 points."),
        (
            {"open_ended": True, "claim": "not-worse"},
            "Can decide after any seed from the 6th on, at 5 % in all; margin 2 points. NOT WORSE needs 25 seeds.",
        ),
    ],
)
def test_the_plan_text_states_looks_and_error_rate(changes: dict[str, object], line: str) -> None:
    """Looks are inserted into a plan of one look, whose bounds are computed quickly."""
    looks = changes.pop("looks", ())
    this_machine = requests.machine()
    look_settings = {"looks": (changes["seeds"],)} if looks else {}
    plan = requests.planned(requests.experiment(margin=2.0, **look_settings | changes), this_machine)
    design = msgspec.structs.replace(plan.design, looks=looks or plan.design.looks)
    assert short_lines(msgspec.structs.replace(plan, design=design), this_machine)[2] == line


def test_a_plan_with_moderated_variances_says_so_in_the_line_on_its_decision() -> None:
    assert plan_lines("abc", variances="moderated")[2].endswith(
        " Variances are moderated: that of each comparison is shrunk to the mean of all, which counts as 2 degrees of "
        "freedom."
    )


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({"seeds": 1}, "2 runs (2 groups x 1 seed), 2 at a time on 2 CPU cores, "),
        ({"cores": 2}, "12 runs (2 groups x 6 seeds), 2 at a time on 2 CPU cores, "),
        ({"cores": 4, "placement": "sequence"}, "12 runs (2 groups x 6 seeds), 4 at a time on 4 CPU cores, "),
        ({"devices": ("cpu:0",), "placement": "sequence"}, "12 runs (2 groups x 6 seeds), 1 at a time on 1 CPU core, "),
        (
            {"devices": ("cpu:0",), "placement": "share"},
            "12 runs (2 groups x 6 seeds), 2 at a time sharing 1 CPU core, ",
        ),
        ({"seeds": 1, "placement": "sequence"}, "2 runs (2 groups x 1 seed), 1 at a time on 1 CPU core, "),
        ({"groups": "abc", "control": "a"}, "18 runs (3 groups x 6 seeds), 3 at a time on 3 CPU cores, "),
        ({"open_ended": True}, "At first 12 runs (2 groups x 6 seeds), 4 at a time on 4 CPU cores, "),
    ],
)
def test_a_plan_lists_its_runs_and_devices(changes: dict[str, object], start: str) -> None:
    assert plan_lines(**changes)[1].startswith(start)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("groups", "changes", "expected"),
    [
        ("ab", {}, "Is the held-out accuracy on digits higher with a than with b?"),
        ("ab", {"control": "a"}, "Is the held-out accuracy on digits higher with b than with a?"),
        ("abc", {"control": "b"}, "Is the held-out accuracy on digits higher with a and c than with b?"),
        ("abc", {}, "With which of a, b and c is the held-out accuracy on digits higher?"),
        ("abc", {"untested": ("c",)}, "Is the held-out accuracy on digits higher with a than with b?"),
        (
            "abc",
            {"control": "c", "claim": "not-worse", "seeds": 15},
            "Is a or b not worse than c by 2 points or more, in the held-out accuracy on digits?",
        ),
    ],
)
def test_the_question_names_groups_task_and_direction(groups: str, changes: dict[str, object], expected: str) -> None:
    assert plan_lines(groups, **changes)[0] == expected


@pytest.mark.parametrize(("episodes", "needs_more"), [(3, True), (239, True), (240, False)])
def test_a_reward_comparison_with_too_few_episodes_states_a_sufficient_number(episodes: int, needs_more: bool) -> None:
    """The first screen then has at most eight lines."""
    this_machine = requests.machine()
    rewards = tuple(requests.group(mode, reward=RewardSettings(mode=mode)) for mode in ("shaped", "simplified"))
    plan = requests.planned(requests.experiment(groups=rewards, margin=2.0, episodes=episodes, n_envs=4), this_machine)
    printed_lines = short_lines(plan, this_machine, "Finds much.", 100)
    assert len(printed_lines) == (8 if needs_more else 6)
    words = " ".join(line.strip() for line in printed_lines)
    longer_experiment = msgspec.structs.replace(plan.experiment, episodes=240)
    duration_text = duration(estimate(longer_experiment, plan.lanes, this_machine).duration_s)
    assert (f"seeds disagree less from about 960 on: --episodes 240, {duration_text} here." in words) is needs_more


@pytest.mark.parametrize(
    ("cpu_duration_s", "end"),
    [
        (0.0, "about 2 min (a rough estimate)"),
        (61.0, "about 2 min (a rough estimate)"),
        (60.0, "about 2 min (a rough estimate); about 60 s with --devices cpu"),
    ],
)
def test_a_plan_on_gpus_suggests_a_cpu_that_is_twice_as_fast(cpu_duration_s: float, end: str) -> None:
    """plan.txt has the CPU's time even if it is longer."""
    this_machine = requests.machine(gpus=2)
    plan = requests.planned(requests.experiment(margin=2.0), this_machine)
    cost = msgspec.structs.replace(
        estimate(plan.experiment, plan.lanes, this_machine), duration_s=120.0, on_cpu_s=cpu_duration_s
    )
    line = short_text(plan, this_machine, cost, FOLDER, "", 1000).splitlines()[1]
    assert line == f"12 runs (2 groups x 6 seeds), 2 at a time on cuda:0 and cuda:1, {end}"
    whole = plan_text(plan, this_machine, cost, FOLDER, 1000)
    time = f"; about {cpu_duration_s:.0f} s with --devices cpu" if cpu_duration_s else ""
    assert f"\ndevices: 2 at a time on cuda:0 and cuda:1{time}\n" in whole
    assert "\nenvironments per device: cuda:0: 4 environments, cuda:1: 4\n" in whole


def test_unused_gpus_are_listed_with_the_devices() -> None:
    this_machine = requests.machine(gpus=2)
    plan = requests.planned(requests.experiment(margin=2.0, devices=("cpu",)), this_machine)
    assert " at a time on 2 CPU cores; 2 GPUs unused (--devices cuda); about " in short_lines(plan, this_machine)[1]


@pytest.mark.parametrize(
    ("trainer", "name"),
    [
        ("mine.py", "mine.py"),
        ("python -m run {lr} {seed} {out}", "run"),
        ("sh -c {lr} {seed} {out} run.py", "run.py"),
        ("python3 src/run.py --lr {lr} {seed} {out}", "run.py"),
    ],
)
def test_the_plan_text_calls_a_trainer_by_its_script(trainer: str, name: str) -> None:
    plan, _ = trainer_plan(trainer, episodes=1)
    assert question(plan) == f"Is error of {name} lower with slow than with fast?"


def test_the_cost_of_a_trainer_follows_from_its_rehearsal() -> None:
    plan, this_machine = trainer_plan(point_s=40.0, evaluate_s=20.0)  # 4 points
    assert short_lines(plan, this_machine)[:2] == [
        "One seed repeats to the bit; a run took 3 min.",
        "Is error of mine.py lower with slow than with fast?",
    ]
    assert short_lines(plan, this_machine)[2].endswith(" (from the rehearsal)")


def test_the_findings_of_a_rehearsal_are_printed_before_the_plan() -> None:
    found = {"found": "0.5, in r.json, error", "memory_bytes": 3 << 29, "repeats": False, "shortened": "steps=9"}
    plan, this_machine = trainer_plan(point_s=1.0, evaluate_s=0.25, interpreter="/bin/python3 (3.11.2)", **found)
    lines = [
        "Rehearsed: error 0.5, in r.json, error.",
        "One seed gave different numbers when it was repeated; a run took 4.2 s and 1.5 GiB of memory, shortened by "
        "steps=9.",
        "python: /bin/python3 (3.11.2), which is not that of esper-ab",
    ]
    assert short_lines(plan, this_machine)[:3] == lines
    cost = estimate(plan.experiment, plan.lanes, this_machine)
    assert plan_text(plan, this_machine, cost, FOLDER, 1000).splitlines()[:3] == lines


def test_the_estimated_memory_of_a_command_is_measured_in_its_rehearsal() -> None:
    plan, this_machine = trainer_plan("run {lr} {seed} {out}", episodes=1, memory_bytes=1 << 30)
    run_bytes = [estimate(plan.experiment, plan.lanes[:count], this_machine).memory_bytes for count in (1, 2)]
    assert 1 << 30 < run_bytes[1] - run_bytes[0] < 5 << 28


@pytest.mark.parametrize(
    ("shortest_s", "longest_s", "text"),
    [
        (3.0, 8.0, "under 10 s"),
        (3.0, 60.0, "under 10 s to 60 s"),
        (110.0, 115.0, "about 2 min"),
        (100.0, 300.0, "about 2 min to 5 min"),
        (20.0, 0.0, "about 20 s"),
    ],
)
def test_a_range_of_equal_durations_is_printed_as_one_duration(shortest_s: float, longest_s: float, text: str) -> None:
    this_machine = requests.machine()
    plan = requests.planned(requests.experiment(margin=2.0), this_machine)
    cost = estimate(plan.experiment, plan.lanes, this_machine)
    cost = msgspec.structs.replace(cost, duration_s=shortest_s, longest_s=longest_s)
    assert f" CPU cores, {text} (a rough" in short_text(plan, this_machine, cost, FOLDER, "")


def test_only_notes_that_limit_the_answer_are_shown() -> None:
    this_machine = requests.machine()
    equal_groups_request = msgspec.structs.replace(
        requests.experiment(margin=2.0, unpaired=True),
        groups=(
            requests.group("a"),
            requests.group("b"),
        ),
    )
    plan = requests.planned(equal_groups_request, this_machine)
    notes = [line.removeprefix("note: ") for line in short_lines(plan, this_machine) if line.startswith("note: ")]
    assert [note.split(":")[0] for note in notes] == [
        "unpaired",
        "a and b do not differ in any setting that they use (A/A)",
    ]
    assert tuple(notes) == plan.notes[: plan.limits]
    assert any(note.startswith("No GPU") for note in plan.notes[plan.limits :])


@pytest.mark.parametrize(("changes", "limits"), [({}, 0), ({"repeats": False}, 1), ({"evaluates_alike": False}, 1)])
def test_a_rehearsal_is_shown_as_a_limit_only_if_it_found_a_problem(changes: dict[str, bool], limits: int) -> None:
    plan, this_machine = trainer_plan(**changes)
    assert plan.limits == limits
    assert sum(line.startswith("note: ") for line in short_lines(plan, this_machine)) == limits
    assert (
        sum(note.startswith("The trainer, as rehearsed: ") for note in plan.notes) == 1
    )  # among the limits or the other notes, but not in both


@pytest.mark.parametrize("width", [48, 100])
def test_lines_of_the_plan_text_fit_a_terminal(width: int) -> None:
    plan, this_machine = trainer_plan(repeats=False)
    narrow = short_lines(plan, this_machine, "Finds a difference " * 9, width)
    assert max(map(len, narrow)) <= width
    assert " ".join(narrow).split() == " ".join(short_lines(plan, this_machine, "Finds a difference " * 9)).split()
