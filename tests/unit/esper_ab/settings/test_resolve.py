"""Resolution: what was planned without a word can be asked for by name."""

from __future__ import annotations

import msgspec
import pytest
from support.asking import experiment, machine

from esper_ab.contracts.errors import UsageError
from esper_ab.settings.resolve import collect_questions, resolve

GROUPS = ("a", "b", "c")


def devices(there_are: int, **changes: object) -> tuple[str, ...]:
    return resolve(experiment(GROUPS, **changes), machine(cores=there_are), "x").devices  # type: ignore[arg-type]


@pytest.mark.parametrize("per_run", [1, 2])
def test_the_lanes_of_a_plan_can_be_given_back(per_run: int) -> None:
    planned = devices(2, devices_per_run=per_run)
    assert len(planned) == len(GROUPS) * per_run > 2
    assert devices(2, devices=planned, devices_per_run=per_run) == planned
    again = msgspec.structs.replace(experiment(GROUPS, devices_per_run=per_run), devices=planned)
    assert resolve(again, machine(cores=2, gpus=1), "x").devices == planned  # a GPU that came later changes nothing


@pytest.mark.parametrize(("asked", "tried"), [
    ((), ("cuda",)), (("cuda",), ("cuda",)), (("cpu:0", "cuda:1"), ("cuda:1",)), (("cpu",), ()),
])  # fmt: skip
def test_the_preflight_tries_the_gpus_that_are_asked_for_and_no_others(
    asked: tuple[str, ...], tried: tuple[str, ...]
) -> None:
    found = collect_questions(experiment(devices=asked, n_envs=9, devices_per_run=2))
    assert (found.gpus, found.hosts) == (tried, 5)
    assert collect_questions(experiment(devices=asked, task="gym:CartPole-v1")).gpus == ()  # environments are on cores


@pytest.mark.parametrize(
    ("asked", "cores", "words"),
    [
        (("cpu:0", "cpu:3"), 2, "no 'cpu:3' here; there is cpu:0, cpu:1, cpu:2"),
        (("cpu:4",), 4, "no 'cpu:4' here; there is cpu:0, cpu:1, cpu:2, cpu:3"),
        (("cpu:01",), 2, "no 'cpu:01' here"),
        (("cpu:2", "cuda:0"), 2, "no 'cpu:2' here; there is cpu:0, cpu:1"),
    ],
)
def test_no_core_beyond_those_that_a_plan_would_name(asked: tuple[str, ...], cores: int, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        devices(cores, devices=asked)
    assert words in str(caught.value)
