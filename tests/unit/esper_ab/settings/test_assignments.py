"""What is said of a name that nobody knows: names that are close, else those there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from esper_ab import ABExperiment, ABVariant, design_comparison
from esper_ab.api.auditing_rewards import audit_rewards
from esper_ab.api.running import run_ab_test
from esper_ab.contracts.errors import UsageError
from esper_ab.design.design import Contrast
from esper_ab.settings.assignments import FIELDS, Assignment, convert_value, read_assignment
from esper_ab.settings.parse import parse
from esper_ab.settings.request import read_request
from esper_ab.settings.reward_audit import make_question
from esper_ab.verdict.requirement import parse_requirement

EXPERIMENT = ABExperiment("x", variants=[ABVariant("a"), ABVariant("b")])
MANY = tuple(f"g{number}" for number in range(40))


@pytest.mark.parametrize("ask", [
    lambda: parse(read_request({"set": ("zzz=1",)})),
    lambda: make_question(rewards=(), assignments=[read_assignment("zzz=1", "--set")]),
])  # fmt: skip
def test_settings_are_described_elsewhere(ask) -> None:
    with pytest.raises(UsageError, match=r"; see docs/cli.md, or the file that `esper-ab init` writes$"):
        ask()


@pytest.mark.parametrize(("ask", "listed"), [
    (lambda: run_ab_test(EXPERIMENT, zzz=1), ("output_dir", "max_parallel_runs", "verbose", "launcher", "ray_wait")),
    (lambda: design_comparison(["a", "b"], 6, margin=1, zzz=1), ("looks", "futility")),
    (lambda: audit_rewards("sparse", zzz=1), ("hosts", "schedules")),
    (lambda: parse_requirement("zzz better-than g1", MANY, [Contrast(a="g1", b="g2")]), MANY),
])  # fmt: skip
def test_what_is_no_setting_is_not_looked_for_where_settings_are(ask, listed) -> None:
    with pytest.raises(UsageError) as refused:
        ask()
    assert "docs/cli.md" not in str(refused.value)
    assert all(name in str(refused.value) for name in listed)


def constant(value, *, is_text):
    return convert_value(Assignment("reward.params.w", value, "there", Path("/"), is_text=is_text))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("3", 3), ("0.5", 0.5), ("1e-3", 1e-3), ("true", True), ("'3'", "3"), ('"a b"', "a b"), ("fast", "fast"),
        ("'unclosed", "'unclosed"),
    ],
)  # fmt: skip
def test_a_constant_of_the_command_line_is_read_as_in_a_file_and_one_of_a_file_stays_what_it_is(written, meant) -> None:
    found = constant(written, is_text=True)
    assert (found, type(found)) == (meant, type(meant))
    assert constant(written, is_text=False) == written
    assert constant(meant, is_text=False) == meant


@pytest.mark.parametrize(
    ("value", "is_text"), [("[1, 2]", True), ("{a = 1}", True), ("1979-05-27", True), ([1, 2], False), (None, False)]
)
def test_a_constant_is_one_number_one_text_true_or_false(value, is_text) -> None:
    with pytest.raises(UsageError) as refused:
        constant(value, is_text=is_text)
    said = f"there: expected a finite number, true, false or text, not {value!r}"
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("kinds", "keys"),
    [
        (("growth", "gymnasium", "trainer"), ("seeds", "episodes", "alpha", "arithmetic.threads", "devices")),
        (("growth", "gymnasium"), ("ppo.lr", "reward.mode", "policy.memory", "arithmetic.kernel", "n_envs", "task")),
        (("growth",), ("growth.host_lr", "reward.rent_weight", "policy.bias_wait", "slots", "arithmetic.hosts")),
        (("gymnasium",), ("gym.rollout",)),
        (("gymnasium", "trainer"), ("outcome", "outcome_better", "outcome_range")),
        (("trainer",), ("outcome_unit", "rehearsal", "trainer_folder", "trainer")),
    ],
)
def test_which_kinds_of_task_read_a_setting(kinds, keys):
    assert [FIELDS[key].kinds for key in keys] == [kinds] * len(keys)
