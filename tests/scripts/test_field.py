"""scripts/field: which runs there are, what is read of a file cut short, what the tables say, and the reference."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from peers import ours, reference, speed
from peers.field_table import difference, margins_table, not_worse, recorded, returns_table, speeds_table, state
from peers.learner import RNG_SEEDS, Trained
from peers.pieces import ALL, LEARNERS, OURS, SETTINGS, TASK_NAMES, append, key, pieces, read, stage_of
from peers.tasks import NO_VELOCITY, TASKS, make

from workers.ppo.rollout import gae


def run(task: str, learner: str, rng_seed: int, sampled: float) -> dict[str, object]:
    return {
        "task": task, "learner": learner, "settings": "matched", "rng_seed": rng_seed, "steps": 1000, "cpu_s": 0.5,
        "sampled": sampled, "greedy": sampled, "machine": "x", "versions": {"torch": "1"},
    }  # fmt: skip


def runs_of(levels: dict[str, list[float]], task: str = "CartPole-v1") -> dict:
    found = [run(task, learner, i, level) for learner, of in levels.items() for i, level in enumerate(of)]
    return {key(one): one for one in found}


def test_a_stop_leaves_cells_of_a_stage_with_equal_runs_and_no_stage_begins_before_the_last() -> None:
    order = list(pieces(TASK_NAMES, LEARNERS, SETTINGS, RNG_SEEDS))
    assert len(order) == len(ALL) == len(TASKS) * len(LEARNERS) * len(SETTINGS) * RNG_SEEDS
    stages = [stage_of(*piece[:3]) for piece in order]
    assert stages == sorted(stages)
    for stop in range(0, len(order), 7):
        counts = {cell: 0 for cell in {piece[:3] for piece in order}}
        for piece in order[:stop]:
            counts[piece[:3]] += 1
        for stage in set(stages):
            of_stage = [count for cell, count in counts.items() if stage_of(*cell) == stage]
            assert max(of_stage) - min(of_stage) <= 1


def test_what_statements_need_comes_first() -> None:
    first = {piece[:2] for piece in ALL if stage_of(*piece[:3]) == 0}
    assert {(task.name, OURS[task.memory]) for task in TASKS} < first
    assert {(task.name, peer) for task in TASKS for peer in ("SB3", "reference")} < first
    assert [task for task, learner in first if learner == "SB3, LSTM"] == [NO_VELOCITY]
    assert {piece[2] for piece in ALL if stage_of(*piece[:3]) == 2} == {"default"}


def test_what_is_appended_is_read_again_after_a_kill_anywhere(tmp_path: Path) -> None:
    file, found = tmp_path / "new" / "field.jsonl", runs_of({"ours": [1.0, 2.0]})
    first, second = found.values()
    assert read(file) == {}
    append(file, first)
    whole = file.read_bytes()
    for cut in range(len(whole)):
        file.write_bytes(whole[:cut])
        append(file, second)
        there = {key(second): second} | ({key(first): first} if cut == len(whole) - 1 else {})
        assert read(file) == there
    data = tmp_path / "field.json"
    data.write_text(json.dumps({"runs": list(found.values())}))
    assert recorded(data) == found


def test_a_difference_is_welchs_and_one_run_has_no_limits() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(5, 2, 9).tolist(), rng.normal(3, 9, 4).tolist()
    mean, low, high = difference(a, b)
    from scipy import stats

    interval = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert (mean, low, high) == pytest.approx((np.mean(a) - np.mean(b), interval.low, interval.high))
    assert math.isnan(difference([1.0], b)[1])
    assert difference([2.0, 2.0], [1.0, 1.0]) == (1.0, 1.0, 1.0)


def test_tables_say_what_is_known_and_no_more() -> None:
    level = {"ours": [490.0, 500.0, 495.0], "SB3": [480.0, 482.0, 481.0], "reference": [100.0]}
    table = margins_table(runs_of(level))
    assert "| CartPole-v1 | 25 | ours | SB3 | 3, 3 | +14.0" in table
    assert table.count("| yes |") == 1
    assert "| one run |" in table
    assert "Acrobot" not in table
    assert "| CartPole-v1 | matched | ours | 3 | 495.0 ± 12.4 | 495.0 ± 12.4 |" in returns_table(runs_of(level))
    assert state(runs_of(level)).startswith(f"7 of {len(ALL)} runs so far")
    task = TASKS[0]
    said = [not_worse(task, low) for low in (1 - task.margin, -task.margin, math.nan)]
    assert said == ["yes", "not shown", "one run"]


@pytest.mark.parametrize("task", ["CartPole-v1", "Pendulum-v1"])
def test_the_reference_has_the_advantages_of_the_paper_and_begins_at_ratio_one(task: str) -> None:
    constants = reference.Constants(envs=3, steps=40)
    training = reference.Training(task, constants, 7)
    batch = training.rollout()
    shaped = {name: part.reshape(40, 3).double().numpy() for name, part in batch.items() if part.numel() == 120}
    last = training.agent.critic(training.seen)[:, 0].detach().double().numpy()
    advantages, returns = gae(shaped["reward"], shaped["value"], shaped["ended"] > 0, last, 0.99, 0.95)
    assert shaped["advantage"] == pytest.approx(advantages, abs=1e-4)
    assert shaped["return"] == pytest.approx(returns, abs=1e-4)
    again = reference.joint(training.agent.distribution(batch["seen"]).log_prob(batch["action"]))
    assert torch.allclose(again, batch["log_prob"], atol=1e-5)
    before = [part.clone() for part in training.agent.parameters()]
    training.update(batch)
    assert any(not torch.equal(a, b) for a, b in zip(before, training.agent.parameters(), strict=True))


def test_ours_trains_through_the_session_of_a_worker_and_shows_no_velocity() -> None:
    assert make(NO_VELOCITY).reset(seed=1)[0].shape == (2,)
    trained = ours.train(NO_VELOCITY, "matched", 1, 1024, memory="lstm")
    assert trained.steps == 1024
    assert len(trained.play(5, True)) == 5
    again = ours.train(NO_VELOCITY, "matched", 1, 1024, memory="lstm")
    assert again.play(5, False) == trained.play(5, False)


def test_speeds_are_of_rounds_and_a_ratio_is_of_the_two_of_one_round(tmp_path: Path) -> None:
    turns = list[str]()

    def learner(name: str, cost: float) -> Callable[..., Trained]:
        def train(_task: str, _settings: str, _rng_seed: int, steps: int) -> Trained:
            turns.append(name)
            slow = 1 + len(turns) // len(costs)  # the machine gets slower with every round
            return Trained(steps=steps, cpu_s=cost * slow, play=lambda _episodes, _greedy: [])

        return train

    costs = {"ours": 1.0, "ours, LSTM": 2.0, "reference": 3.0, "SB3": 4.0, "SB3, LSTM": 16.0}
    learners = {name: learner(name, cost) for name, cost in costs.items()}
    told = list[str]()
    found = speed.measure(["CartPole-v1"], told.append, learners, rounds=3, steps=960, warm_up=10)
    assert len(told) == 3
    assert [turns[at] for at in (5, 10, 15)] == ["ours", "ours, LSTM", "reference"]
    file = tmp_path / "speeds.json"
    speed.write(file, found)
    assert json.loads(file.read_bytes()) == found
    assert "| 4.00 (" in speeds_table(found)
    assert "Medians of 3 rounds of 960 steps" in speeds_table(found)
