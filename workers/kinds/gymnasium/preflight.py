"""Collects what planning needs to know about a Gymnasium task: spaces, code, determinism and speed."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from esper_ab.contracts.errors import SettingName
from esper_ab.contracts.kinds_of_task import GYM_PREFIX, GYMNASIUM, is_own_outcome
from esper_ab.contracts.machine import Questions, TaskFacts
from esper_ab.contracts.marked_settings import marked
from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.contracts.private_folder import scratch_folder
from esper_ab.contracts.records import EnvEpisode
from esper_ab.contracts.rng import RngPath
from workers.arrays import Floats, flaw
from workers.environments import AboutTask, Stopwatch
from workers.kinds.gymnasium.environments import GymEnvironments
from workers.kinds.gymnasium.facts import GymFacts, GymStep
from workers.kinds.gymnasium.place import GymSpec
from workers.kinds.gymnasium.world import (
    RETURN,
    RandomActions,
    codec_of,
    maker,
    measured,
    measures,
    outcome_of,
    reward_of,
)
from workers.user_code.loading import Load, as_planned, copied

_LIMIT = 2000  # maximum number of steps of an episode that is played again


def probe(questions: Questions, names: AboutTask) -> AboutTask:
    """Load the user's code from copies, as runs do, and play one episode; return `names` with the findings added."""
    with scratch_folder() as folder:
        try:
            return _played(questions, names, folder)
        except (ValueError, OSError) as error:
            problem = " ".join(str(error).removeprefix(f"task {questions.task!r}").lstrip(": ").split())
            return replace(names, task_problem=problem)


def _references(questions: Questions) -> list[tuple[str, str]]:
    """Return (purpose, reference) for every user function that the question names."""
    references = list[tuple[str, str]]()
    if not questions.task.startswith(GYM_PREFIX):
        references.append(("task", questions.task))
    if ":" in questions.outcome.removeprefix("info:"):
        references.append(("outcome", questions.outcome))
    references += [("reward mode", mode) for mode in questions.user_rewards]
    return references


def _played(questions: Questions, names: AboutTask, folder: Path) -> AboutTask:
    copies = [
        copied(f"{kind} {reference!r}", reference, folder, f"copy{number}")
        for number, (kind, reference) in enumerate(_references(questions))
    ]
    load = as_planned([planned_code for _, planned_code in copies], folder)
    make = maker(questions.task, load)
    codec, limit = codec_of(make)
    spec = GymSpec(
        make=make,
        codec=codec,
        outcome=outcome_of(questions.outcome, load),
        keeps=is_own_outcome(questions.outcome),
        worst=questions.outcome_worst,
        measures=partial(measured, questions.outcome),
        steps=_LIMIT,
        devices=("cpu:0",) * 2,
    )
    environments = GymEnvironments(spec, Stopwatch())
    look = _Look(questions, load)
    digest, ends, took_s = _episode(environments, look)
    if look.unusable:
        raise ValueError(look.unusable)
    repeats, carries_state = _behaviour(digest, environments, GymEnvironments(spec, Stopwatch()))
    declared_measures = _measures(questions)
    steps = sum(end.steps for end in ends)
    for end in ends:
        if end.outcome is not None and not declared_measures.outcome.possible(end.outcome):
            subject = f"outcome {questions.outcome!r}" if questions.outcome else "the return"
            raise ValueError(
                f"{subject} of random actions was {end.outcome:g}, which {marked(SettingName('outcome_range'))} says "
                "is impossible"
            )
    task = TaskFacts(
        name=questions.task,
        title="Gymnasium",
        measures=declared_measures,
        kind=GYMNASIUM,
        repeats=repeats,
        carries=carries_state,
        step_s=took_s / max(1, steps),
        episode_steps=limit,
        seen_steps=max(end.steps for end in ends) % _LIMIT,  # an episode of that length did not end
        observation_width=codec.spaces.observation_width,
        action_bounds=codec.bounds,
    )
    problems = {group: look.reward_problems[group] for group in questions.rewards if group in look.reward_problems}
    code = tuple(msgspec.structs.replace(users, repeats=users.reference not in look.impure) for users, _ in copies)
    return replace(names, tasks=(task,), user_rewards=code, reward_problems=problems)


def _step(facts: GymFacts) -> GymStep:
    return GymStep(facts.env_reward, lambda: facts)


class _Look:
    """Checks the facts of every step; keeps none of them, because observations may be large."""

    def __init__(self, questions: Questions, load: Load) -> None:
        self.unusable = ""  # describes the first observation that is not finite
        self.reward_problems: dict[str, str] = {}  # by group, why its reward cannot be computed or used
        self._rewards: dict[str, tuple[str, Callable[[GymStep], Floats]]] = {}  # without a problem so far
        self.impure: set[str] = set()  # modes that return different values for the same facts
        self._steps = 0
        for group, settings in questions.rewards.items():
            try:
                self._rewards[group] = settings.mode, reward_of(settings, load)
            except ValueError as error:
                self._problem(group, settings.mode, error)

    def __call__(self, facts: GymFacts) -> None:
        """Check the facts of the next step."""
        self._steps += 1
        if not self.unusable and not np.isfinite(facts.observation).all():
            self.unusable = f"what it shows before step {self._steps} is not finite: {facts.observation.tolist()}"
        # With random actions all episodes may end together, at a limit; with a policy they end one by one.
        is_over = (facts.terminated | facts.truncated).any()
        views = [facts]
        if is_over:
            views.append(facts.of(np.arange(len(facts.stepped)) > 0))
        for group, (mode, function) in list(self._rewards.items()):
            try:
                for view in views:
                    values = function(_step(view))
                    if flaw_words := flaw(np.where(view.stepped, values, 0.0)):
                        raise ValueError(f"reward mode {mode!r} {flaw_words} at step {self._steps}: {values.tolist()}")
                if self._steps == 1:
                    values = function(_step(facts))
                    if not np.array_equal(values, function(_step(facts))):
                        self.impure.add(mode)
            except ValueError as error:
                self._problem(group, mode, error)

    def _problem(self, group: str, mode: str, error: ValueError) -> None:
        self._rewards.pop(group, None)
        self.reward_problems[group] = str(error).replace(f"reward mode {mode!r}", f"reward={mode}", 1)


def _behaviour(digest: str, played_env: GymEnvironments, new_env: GymEnvironments) -> tuple[bool, bool]:
    """Return whether the episode repeats in any environment, and whether it repeats only in new environments.

    `digest`: digest of the episode in `played_env`. A run resets the same environments again and again, whereas an
    evaluation or a restored run creates new environments.
    """
    if _episode(new_env)[0] != digest:
        return False, False
    carries = _episode(played_env)[0] != digest
    return not carries, carries


def _episode(
    environments: GymEnvironments, look: Callable[[GymFacts], None] = lambda facts: None
) -> tuple[str, tuple[EnvEpisode, ...], float]:
    """Play an episode of random actions; `look` is called with the facts of every step.

    Return the sha256 of the episode's facts and results, the results, and the seconds that the episode took.
    """
    controller = RandomActions()
    sha = hashlib.sha256()
    begin_s = time.perf_counter()
    view = environments.begin([RngPath(0) / "preflight" / env for env in range(environments.n_envs)])
    took_s = time.perf_counter() - begin_s
    while view.alive.any():
        begin_s = time.perf_counter()
        step, view = environments.step(controller.decide(view, environments.uniforms()))
        took_s += time.perf_counter() - begin_s
        facts = step.facts.facts
        for name in ("observation", "next_observation", "env_reward", "terminated", "truncated"):
            sha.update(getattr(facts, name).tobytes())
        look(facts)
    ends = environments.ends().envs
    sha.update(repr(ends).encode())
    return sha.hexdigest(), ends, took_s


def _measures(questions: Questions) -> TaskMeasures:
    outcome = questions.outcome
    measure = RETURN
    if outcome:
        label = outcome.rpartition(":")[2]
        name = "outcome_" + re.sub(r"[^a-z0-9]", "_", label.lower())
        measure = Measure(name=name[:64], label=label[:60])
    measure = msgspec.structs.replace(
        measure, better=questions.outcome_better, low=questions.outcome_low, high=questions.outcome_high
    )
    return TaskMeasures(outcome=measure, measures=measures(outcome))
