"""What planning needs to know of a Gymnasium task: spaces, code, determinism, speed. Imports gymnasium when asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from esper_ab.contracts.below import folder_below
from esper_ab.contracts.kinds import GYM_PREFIX, GYMNASIUM
from esper_ab.contracts.machine import Questions, TaskFacts, UserReward
from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.contracts.messages import RewardCode
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.source_files import copy_files
from workers.stopwatch import Stopwatch
from workers.user_rewards import user_code

if TYPE_CHECKING:
    from esper_ab.contracts.records import EnvEpisode
    from workers.gymnasium_task.environments import GymEnvironments
    from workers.gymnasium_task.facts import GymFacts
    from workers.gymnasium_task.making import Load

INSTALL = "it needs gymnasium: pip install 'esper-ab[gymnasium]'"
_LIMIT = 2000  # steps, at most, of an episode that is played again


@dataclass(frozen=True, kw_only=True)
class Probed:
    """What was found out about a task."""

    tasks: tuple[TaskFacts, ...] = ()
    code: tuple[UserReward, ...] = ()
    problem: str = ""
    reward_problems: dict[str, str] = field(default_factory=dict)  # by group


def probe(questions: Questions, doing: Callable[[str], None]) -> Probed:
    """Load everything that is the user's, from copies as runs will, and play one episode again and again."""
    doing(f"playing one episode of {questions.task}, and the same again")
    try:
        import gymnasium  # noqa: F401
    except ModuleNotFoundError:
        return Probed(problem=INSTALL)
    with TemporaryDirectory() as folder:
        try:
            code = tuple(_code(kind, reference) for kind, reference in _references(questions))
            return _played(questions, code, Path(folder))
        except (ValueError, OSError) as error:
            return Probed(problem=" ".join(str(error).removeprefix(f"task {questions.task!r}").lstrip(": ").split()))


def _references(questions: Questions) -> list[tuple[str, str]]:
    """Return (what it is for, reference) of every function of the user's own that the question names."""
    task = [] if questions.task.startswith(GYM_PREFIX) else [("task", questions.task)]
    outcome = [("outcome", questions.outcome)] if ":" in questions.outcome.removeprefix("info:") else []
    return [*task, *outcome, *(("reward mode", mode) for mode in questions.user_rewards)]


def _code(kind: str, reference: str) -> UserReward:
    place = reference.rpartition(":")[0]
    found = user_code.load(f"{kind} {reference!r}", place)
    files = found.files if place.endswith(".py") else ()
    return UserReward(reference=reference, sha256=found.sha256, problem="", root=str(found.root), files=files)


def _from_copies(code: tuple[UserReward, ...], folder: Path) -> Load:
    planned = {}
    for number, one in enumerate(code):
        name = f"copy{number}" if one.files else ""
        if name:
            copy_files(Path(one.root), one.files, folder_below(folder, name))
        file = one.files[0] if one.files else ""
        planned[one.reference] = RewardCode(reference=one.reference, folder=name, file=file, sha256=one.sha256)
    return lambda what, reference: user_code.load_planned(what, planned[reference], folder)


def _played(questions: Questions, code: tuple[UserReward, ...], folder: Path) -> Probed:
    from workers.gymnasium_task.environments import GymEnvironments, GymSpec
    from workers.gymnasium_task.making import codec_of, maker, outcome_of
    from workers.gymnasium_task.world import measured

    load = _from_copies(code, folder)
    make = maker(questions.task, load)
    codec, limit = codec_of(make)
    spec = GymSpec(
        make=make, codec=codec, outcome=outcome_of(questions.outcome, load),
        worst=questions.outcome_worst, measures=measured(questions.outcome), steps=_LIMIT, devices=("cpu:0",) * 2,
    )
    environments = GymEnvironments(spec, Stopwatch())
    first, ends, took_s = _episode(environments)
    _check_shown(first)
    repeats, carries = _behaviour(_shown(first, ends), environments, GymEnvironments(spec, Stopwatch()))
    declared, steps = _measures(questions), sum(end.steps for end in ends)
    for end in ends:
        if end.outcome is not None and not declared.outcome.possible(end.outcome):
            what = f"outcome {questions.outcome!r}" if questions.outcome else "the return"
            raise ValueError(f"{what} of random actions was {end.outcome:g}, which --outcome-range says is impossible")
    task = TaskFacts(
        name=questions.task, title="Gymnasium", measures=declared, kind=GYMNASIUM,
        repeats=repeats, carries=carries, step_s=took_s / max(1, steps), episode_steps=limit,
        action_bounds=codec.bounds,
    )
    return Probed(tasks=(task,), code=code, reward_problems=_reward_problems(questions, load, first))


def _behaviour(first: list[bytes], played: GymEnvironments, new: GymEnvironments) -> tuple[bool, bool]:
    """Say whether the episode is the same again in any environments, and whether only in those that are new.

    `first`: what it showed in the environments `played`. A run resets the same environments again and again; an
    evaluation, and a run that is taken up, make new ones.
    """
    if _shown(*_episode(new)[:2]) != first:
        return False, False
    carries = _shown(*_episode(played)[:2]) != first
    return not carries, carries


def _episode(environments: GymEnvironments) -> tuple[list[GymFacts], tuple[EnvEpisode, ...], float]:
    """Play an episode of random actions; return its facts, what it came to, and its seconds."""
    from workers.gymnasium_task.world import RandomActions

    controller, began = RandomActions(), time.perf_counter()
    seen = environments.begin([RngPath(0) / "preflight" / env for env in range(environments.n_envs)])
    facts = []
    while seen.alive.any():
        happened, seen = environments.step(controller.decide(seen, environments.uniforms()))
        facts.append(happened.facts)
    took_s = time.perf_counter() - began
    return facts, environments.ends().envs, took_s


def _check_shown(facts: list[GymFacts]) -> None:
    """ValueError when an observation that random actions led to is not finite: no policy can use it."""
    import numpy as np

    for step, one in enumerate(facts, start=1):
        if not np.isfinite(one.observation).all():
            raise ValueError(f"what it shows before step {step} is not finite: {one.observation.tolist()}")


def _shown(facts: list[GymFacts], ends: tuple[EnvEpisode, ...]) -> list[bytes]:
    """Return what an episode showed and what it came to, to the bit."""
    parts = ((one.observation, one.next_observation, one.env_reward, one.terminated, one.truncated) for one in facts)
    steps = [b"".join(part.tobytes() for part in shown) for shown in parts]
    return [*steps, repr(ends).encode()]


def _reward_problems(questions: Questions, load: Load, facts: list[GymFacts]) -> dict[str, str]:
    """Return by group why its reward cannot be computed from the facts of the episode; finite numbers are asked for."""
    import numpy as np

    from workers.gymnasium_task.making import reward_of

    problems = {}
    for group, settings in questions.rewards.items():
        what = f"reward mode {settings.mode!r}"
        try:
            function = reward_of(settings, load)
            for step, one in enumerate(facts, start=1):
                values = function(one)
                if not np.isfinite(values).all():
                    raise ValueError(f"{what} is not finite at step {step}: {values.tolist()}")
        except ValueError as error:
            problems[group] = str(error).replace(what, f"reward={settings.mode}", 1)
    return problems


def _measures(questions: Questions) -> TaskMeasures:
    from workers.gymnasium_task.world import RETURN, measures

    outcome, declared = questions.outcome, RETURN
    if outcome:
        label = outcome.rpartition(":")[2]
        name = "outcome_" + "".join(c if c.isascii() and c.isalnum() else "_" for c in label.lower())
        declared = Measure(name=name[:64], label=label[:60])
    declared = msgspec.structs.replace(
        declared, better=questions.outcome_better, low=questions.outcome_low, high=questions.outcome_high
    )
    return TaskMeasures(outcome=declared, measures=measures(outcome))
