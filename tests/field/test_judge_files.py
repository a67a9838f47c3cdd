"""Tables and folders as users have them: the output and exit status of the first `judge` command.

The files are those of a collection of situations that public threads report (files/judge).
"""

from pathlib import Path

import pytest
from support.commands.in_process import esper_ab

FILES = Path(__file__).parent / "files" / "judge"
MONITORS = sorted(f"monitor_runs/{path.name}" for path in (FILES / "monitor_runs").iterdir())
SHIFT = "Not decided: {} in every pair, so no test of a mean applies; this is the answer for these seeds"

# What is judged, how, the exit status, and what must be said.
FIRST_COMMANDS = {
    "folders of Stable-Baselines3": (
        MONITORS,
        "--margin 20",
        0,
        [
            "Groups and seeds from names: --runs '{group}-seed{seed}' large: seeds 0-5; small: seeds 0-5 "
            "The outcome of a run is the mean r of its last 100 episodes, up to step 2400; "
            "runs with fewer, down to 12, count with all.",
            "BETTER: large is better than small by 95.6",
        ],
    ),
    "curves exported from W&B": (
        ["wandb_export.csv"],
        "--margin 2",
        0,
        [
            "Groups and seeds from names: --runs '{group}-seed{seed}' baseline: seeds 0-7; tuned: seeds 0-7 "
            "The outcome of a run is its last eval/return, at step 45000.",
            "WORSE: baseline is worse than tuned by 41.4",
        ],
    ),
    "a column per group": (
        ["wide.csv"],
        "--margin 2",
        0,
        ["WORSE: baseline is worse than tuned by 53.6", "and each row as a seed (--groups)"],
    ),
    "a row per step": (
        ["b24_long_curves.csv"],
        "--columns group=algo,outcome=return --margin 10",
        0,
        ["WORSE: ppo is worse than sac by 33.3", "The outcome of a run is its last return, at step 80000."],
    ),
    "runs with a state": (
        ["b08b_state.csv"],
        "--columns group=algo,outcome=eval/return --margin 2",
        0,
        [
            "INCONCLUSIVE: Not decided: base looks 28.4 worse than tuned",
            "the lost runs could change the answer; no worst outcome is declared for them (--worst)",
            "Lost, because the column State says that they did not finish",
            "2 runs of tuned.",
        ],
    ),
    "runs and items": (
        ["b02_seeds_by_items.csv"],
        "--margin 0.02",
        3,
        [
            "Read: 10 runs x 40 items in 2 groups; level: trainings.",
            "NO INFERENCE: Too few runs to decide for new training runs and new items (5 per group; 6 needed)",
            "95 % interval -0.148 to +0.118",
        ],
    ),
    "questions and epochs": (
        ["b11_question_by_epoch.csv"],
        "--columns group=model,outcome=correct --margin 0.02",
        0,
        [
            "Read: 2 checkpoints x 25 questions x 4 repeats in 2 groups; level: checkpoints.",
            "On these 25 questions, checkpoint m1 is worse than checkpoint m2 by 0.130",
            "One training run each: this says nothing about training again.",
        ],
    ),
    "nine settings of three seeds": (
        ["b12_sweep_9x3.csv"],
        "--columns group=config,outcome=return --margin 2",
        3,
        [
            "NO INFERENCE: No group has 6 seeds",
            "with intervals that hold for all 9 at once with 95 % confidence, all of which overlap",
            "lr0-ent1 110.20 (82.49 to 137.91), lr2-ent2 109.40 (81.91 to 136.89), lr1-ent0 105.43",
            "design --groups lr0-ent1,lr2-ent2,lr1-ent0 --seeds 3..22 --margin 2",
        ],
    ),
    "a constant shift": (["b09b_constant_shift.csv"], "--margin 1", 0, [SHIFT.format("a is 2.00 below b")]),
    "a constant shift in float32": (["b09d_shift_float32.csv"], "--margin 1", 0, [SHIFT.format("a is 2.10 below b")]),
    "a constant shift, rounded": (["b09e_shift_rounding.csv"], "--margin 1", 0, [SHIFT.format("a is 4.00 below b")]),
}


@pytest.mark.parametrize("situation", FIRST_COMMANDS)
def test_the_first_judge_command_on_a_sample_file_prints_the_stored_answer(situation):
    paths, flags, status, must_say = FIRST_COMMANDS[situation]
    ended = esper_ab("judge", *paths, *flags.split(), folder=FILES)
    text = " ".join((ended.stderr + ended.stdout).split())
    assert ended.returncode == status, text
    for sentence in must_say:
        assert sentence in text


def test_every_sample_folder_has_a_judge_command():
    judged_names = {path.partition("/")[0] for paths, *_ in FIRST_COMMANDS.values() for path in paths}
    assert judged_names == {path.name for path in FILES.iterdir()}


WANDB = Path(__file__).parent / "files" / "wandb_offline"
WANDB_FOLDERS = [".", "wandb", "wandb/offline-run-20260101_000000-d4k2q9h1/.."]
WANDB_RUNS = [f"wandb/{folder.name}" for folder in sorted((WANDB / "wandb").iterdir())]


@pytest.mark.parametrize("paths", [*([folder] for folder in WANDB_FOLDERS), WANDB_RUNS])
def test_offline_folders_of_wandb_are_read_by_their_run_files(paths):
    """Their logs have lines with commas; only the configuration tells the groups."""
    asked = esper_ab("judge", *paths, "--margin", "5", folder=WANDB)
    assert asked.returncode == 2
    assert "of their settings, algo differs between runs, and may be the group: --columns group=algo" in asked.stderr
    answer = esper_ab("judge", *paths, "--margin", "5", "--columns", "group=algo,outcome=return", folder=WANDB)
    assert answer.returncode == 3  # two seeds decide nothing
    words = " ".join(answer.stdout.split())
    assert "small is 20.0 below large, in 2 of 2 pairs; 2 training runs per group" in words
    assert "Not read" not in words
