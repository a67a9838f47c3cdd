"""Rehearses a Python trainer before any budget is spent: describes it, and finds out how its runs behave.

- Two seeds must give different results: if a trainer ignores its seed, all replicates are the same run.
- The same seed twice shows whether the trainer is bit-reproducible.
- Continuing from a state in a different process shows whether the trainer resumes.
- The last state is evaluated in a process that has not trained, to see whether evaluation needs anything else.

Each part is called a trial and has its own process, with the threads, determinism and number of GPUs that runs have.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from esper_ab.contracts.child import child_of
from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.marked_settings import marked
from esper_ab.contracts.measures import Measure
from esper_ab.contracts.own_packages import child_command
from esper_ab.contracts.private_folder import scratch_folder
from esper_ab.contracts.process_endings import describe_end
from esper_ab.contracts.trainer import Resumption, TrainerFacts, TrainerQuestion, TrainerValue
from esper_ab.contracts.unreadable import UNREADABLE
from workers.kinds.trainer import module
from workers.kinds.trainer.code_tree import asked_files
from workers.kinds.trainer.idling import IdleLimits, Watch, idle_words
from workers.kinds.trainer.metric_names import measure_names
from workers.kinds.trainer.other_groups import IsOver, Settings, TriedGroups, try_other_groups
from workers.kinds.trainer.possible_outcome import refuse_impossible, refuse_other_unit
from workers.kinds.trainer.rehearsal_setup import SEEDS, Doing, at_once, pins_of, rng_of, text_of
from workers.kinds.trainer.seed_effect import Numbers, is_in_doubt, outcome_repeats, refuse_no_effect
from workers.kinds.trainer.trial import Trial, Tried
from workers.kinds.trainer.words import device_word
from workers.user_code.loading import UserCode
from workers.user_code.state_of_code import enter, leave

_LOOK_S = 1.0  # between two looks at whether a process does anything
_decode = msgspec.json.Decoder(Tried).decode


def behaviour(
    full_trial: Tried, repeated_trial: Tried, resumed_trial: Tried | None, evaluation_trial: Tried
) -> tuple[bool, Resumption]:
    """Return whether a trainer is bit-reproducible, and how it continues from the state after point 0.

    `full_trial` and `repeated_trial`: the same run twice, uninterrupted. `resumed_trial`: the run continued from the
    state after point 0, or None. `evaluation_trial`: only the evaluation of the last state.
    """
    repeats = (full_trial.points, full_trial.outcomes) == (repeated_trial.points, repeated_trial.outcomes)
    if resumed_trial is None or not resumed_trial.state_was_read:
        return repeats, "anew"
    continues_exactly = (resumed_trial.points, resumed_trial.outcomes, evaluation_trial.outcomes) == (
        full_trial.points[1:],
        full_trial.outcomes,
        full_trial.outcomes,
    )
    if repeats and continues_exactly:
        return repeats, "exactly"
    return repeats, "resumes"


def _settings_of_groups(trainer: module.PythonTrainer, question: TrainerQuestion) -> dict[str, dict[str, TrainerValue]]:
    """Return each group's settings, read by the trainer; ValueError with the group's name if it refuses them."""
    settings = {}
    for group, values in question.groups.items():
        try:
            settings[group] = module.flat(trainer.settings(values))
        except ValueError as error:
            raise ValueError(f"group {group!r}: {error}") from None
    return settings


def _numbers(trial: Tried, outcome: str) -> Numbers:
    """Return a trial's metrics at each point, with the outcomes of the evaluation after those of the points."""
    points = trial.points
    numbers = {name: tuple(float(point[name]) for point in points) for name in points[0]}
    return {**numbers, outcome: (*numbers[outcome], *map(float, trial.outcomes))}


def _seeds_and_repeats(
    played: _Played, outcome: str, trial: Callable[[int, str], Tried]
) -> tuple[list[Numbers], list[Numbers]]:
    """Return the numbers of different seeds and of one seed run repeatedly; run more of both if two leave a doubt."""
    full_numbers = _numbers(played.full_trial, outcome)
    seeds = [full_numbers, _numbers(played.other_trial, outcome)]
    repeats = [full_numbers, _numbers(played.repeated_trial, outcome)]
    if is_in_doubt(seeds, repeats, outcome):
        seeds += [_numbers(trial(seed_index, f"seed {seed_index + 1}"), outcome) for seed_index in range(2, SEEDS)]
        repeats.append(_numbers(trial(0, "the same seed once more"), outcome))
    return seeds, repeats


@dataclass(frozen=True)
class _Played:
    """The trials of every rehearsal of a Python trainer."""

    full_trial: Tried  # of a seed
    repeated_trial: Tried  # of the same seed
    other_trial: Tried  # of another seed
    evaluation_trial: Tried  # only the evaluation of the last state of `full_trial`
    resumed_trial: Tried | None  # `full_trial` from the state after its first point; None if there is only one point


@dataclass(frozen=True, kw_only=True)
class _PythonTrials:
    """Trials of a Python trainer with the same settings, each in a process of its own."""

    question: TrainerQuestion
    settings: dict[str, TrainerValue]
    last: int  # points of a trial
    folder: Path
    doing: Doing
    limits: IdleLimits
    pins: Mapping[str, str]
    is_over: IsOver = lambda: False

    def play(self) -> _Played:
        """Play the trials of every rehearsal; several at once, unless a run may need all of a GPU's memory."""
        states = str(self.folder / "state")
        training_folder = "trained"
        with ThreadPoolExecutor(1 if self._gpu else 3) as pool:
            parts = [
                pool.submit(self.tried, 0, "a seed", keep=states, folder_name=training_folder),
                pool.submit(self.tried, 0, "the same seed again"),
                pool.submit(self.tried, 1, "another seed"),
            ]
            full_trial, repeated_trial, other_trial = (part.result() for part in parts)
            evaluation_call = pool.submit(
                self.tried,
                0,
                "its evaluation alone",
                first_point=self.last,
                state=f"{states}{self.last - 1}",
                folder_name=training_folder,
            )
            resumed_call = None
            if self.last > 1:
                resumed_call = pool.submit(self.tried, 0, "from a state", first_point=1, state=f"{states}0")
            evaluation_trial = _evaluated(evaluation_call)
            resumed_trial = resumed_call.result() if resumed_call else None
        return _Played(full_trial, repeated_trial, other_trial, evaluation_trial, resumed_trial)

    def tried(
        self,
        seed_index: int,
        words: str,
        *,
        first_point: int = 0,
        state: str = "",
        keep: str = "",
        folder_name: str = "",
    ) -> Tried:
        """Run one trial, described by `words`, in the folder `folder_name` or in one named after the trial."""
        self.doing(f"rehearsing {Path(self.question.reference).name}, {words}")
        place = self.folder / (folder_name or f"{seed_index}-{words.replace(' ', '-')}")
        place.mkdir(exist_ok=True)
        trial = Trial(
            question=self.question,
            settings=self.settings,
            rng=rng_of(self.question, seed_index),
            folder=str(place),
            device=device_word(self.pins),
            last=self.last,
            first=first_point,
            state_file=state,
            keep=keep,
        )
        return _tried(trial, self.pins, Watch(paths=(place,), limits=self.limits, is_over=self.is_over))

    @property
    def _gpu(self) -> bool:
        return bool(self.pins["CUDA_VISIBLE_DEVICES"])


def _load(
    question: TrainerQuestion,
) -> tuple[module.PythonTrainer, UserCode, dict[str, dict[str, TrainerValue]]]:
    """Load a trainer, in its state of the code if it has one; return its code and the settings of all groups, too."""
    if files := asked_files(question):
        enter(files.folder, files.module_folders, files.moved)
    try:
        trainer, code = module.load(question.reference)
        return trainer, code, _settings_of_groups(trainer, question)
    finally:
        leave()


def rehearse_python(question: TrainerQuestion, measure: Measure, doing: Doing, limits: IdleLimits) -> TrainerFacts:
    doing(f"loading {question.reference}")
    trainer, code, settings = _load(question)
    groups = {
        group: module.flat(trainer.settings({**values, **question.rehearsal})) for group, values in settings.items()
    }
    with scratch_folder() as folder:
        trials = _PythonTrials(
            question=question,
            settings=next(iter(groups.values())),
            last=min(2, question.points),
            folder=folder,
            doing=doing,
            limits=limits,
            pins=pins_of(question),
        )
        played = trials.play()
        seeds, repeats = _seeds_and_repeats(played, question.outcome, trials.tried)
        full_trial = played.full_trial
        refuse_impossible(itertools.chain(*(numbers[question.outcome] for numbers in seeds)), measure)
        refuse_no_effect(seeds, repeats, question.outcome, "draw everything from run.seed(…)")
        if trials.last == question.points and not question.rehearsal:
            refuse_other_unit(
                map(float, (*full_trial.outcomes, *played.other_trial.outcomes)), measure, question.margin
            )
        _check_evaluations(full_trial, question.evaluations)
        others = _try_other_groups(trials, groups, measure)
    bit_equal, resumption = behaviour(full_trial, played.repeated_trial, played.resumed_trial, played.evaluation_trial)
    return TrainerFacts(
        settings=settings,
        root=str(code.root),
        files=code.files,
        sha256=code.sha256,
        metrics=measure_names(name for name in full_trial.points[0] if name != question.outcome),
        evaluations=len(full_trial.outcomes),
        repeats=bit_equal,
        outcome_repeats=outcome_repeats(repeats, question.outcome),
        resumption=resumption,
        evaluates_alike=not bit_equal or played.evaluation_trial.outcomes == full_trial.outcomes,
        shortened=text_of(question.rehearsal),
        found=_found(full_trial),
        memory_bytes=full_trial.memory_bytes,
        point_s=full_trial.point_s,
        evaluate_s=full_trial.evaluate_s,
        failed_once=others.failed_once,
        ended_early=others.ended_early,
        not_started=others.not_started,
    )


def _check_evaluations(full_trial: Tried, asked_evaluations: int) -> None:
    """Raise ValueError if an evaluation returned another number of outcomes than was asked for, if it was."""
    if asked_evaluations and len(full_trial.outcomes) != asked_evaluations:
        raise ValueError(
            f"evaluate returned {len(full_trial.outcomes)} outcomes, not as many as "
            f"{marked(SettingName('eval_episodes', asked_evaluations))} asks for"
        )


def _try_other_groups(
    trials: _PythonTrials, groups: Mapping[str, dict[str, TrainerValue]], measure: Measure
) -> TriedGroups:
    """Train and evaluate once for each further group; ValueError if that fails for one."""
    question = trials.question

    def attempt(group: str, _: Settings, seed_index: int, is_over: IsOver) -> None:
        trial = replace(trials, settings=groups[group], is_over=is_over).tried(seed_index, f"group {group}")
        refuse_impossible(_numbers(trial, question.outcome)[question.outcome], measure)

    return try_other_groups(groups, attempt, at_once(trials.pins, question.threads))


def _found(full_trial: Tried) -> str:
    """Return the outcome of a trial, and how it came about."""
    outcomes = [float(outcome) for outcome in full_trial.outcomes]
    if len(outcomes) == 1:
        return f"{outcomes[0]:g}, returned by evaluate"
    return f"{sum(outcomes) / len(outcomes):g}, the mean of the {len(outcomes)} outcomes that evaluate returned"


def _evaluated(evaluation_call: Future[Tried]) -> Tried:
    """Return the evaluation in a process that has not trained; ValueError if the evaluation fails."""
    try:
        return evaluation_call.result()
    except ValueError as error:
        failure_words = "evaluate(run, state) failed in a process that has not trained"
        raise ValueError(f"{failure_words}: {error}; it receives nothing but the state") from None


def _tried(trial: Trial, pins: Mapping[str, str], watch: Watch) -> Tried:
    """Run one trial in its own process.

    Raises ValueError with the fault that the process reports or, if the process crashes, with the last line of output.
    """
    command = child_command("workers.kinds.trainer.commands.try_trainer")
    name = Path(trial.question.reference).name
    with child_of(command, msgspec.json.encode(trial), {**os.environ, **pins}) as child:
        while True:
            try:
                answer, complaint = child.communicate(timeout=_LOOK_S)
                break
            except subprocess.TimeoutExpired:
                if idle := watch.look(child.pid):
                    raise ValueError(f"{name} {idle_words(idle, watch.limits)}, so it was ended") from None
    try:
        return _decode(answer)
    except UNREADABLE:
        lines = complaint.decode(errors="replace").strip().splitlines()
    if child.returncode == UsageError.exit_code and lines and lines[-1].startswith("error: "):
        raise ValueError(lines[-1].removeprefix("error: ").removeprefix("ValueError: "))
    end_words = describe_end(child.returncode or 0, lines)
    raise ValueError(f"{name} ended its process: it {end_words}")
