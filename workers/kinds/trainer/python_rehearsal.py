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
from dataclasses import dataclass
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
from workers.kinds.trainer.idling import IdleLimits, Watch, idle_words
from workers.kinds.trainer.metric_names import measure_names
from workers.kinds.trainer.possible_outcome import refuse_impossible, refuse_other_unit
from workers.kinds.trainer.rehearsal_setup import SEEDS, Doing, pins_of, rng_of, text_of
from workers.kinds.trainer.seed_effect import Numbers, is_in_doubt, outcome_repeats, refuse_no_effect
from workers.kinds.trainer.trial import Trial, Tried

_LOOK_S = 1.0  # between two looks at whether a process does anything
_decode = msgspec.json.Decoder(Tried).decode


def behaviour(whole: Tried, again: Tried, resumed: Tried | None, alone: Tried) -> tuple[bool, Resumption]:
    """Return whether a trainer is bit-reproducible, and how it continues from the state after point 0.

    `whole` and `again`: the same run twice, uninterrupted. `resumed`: the run continued from the state after point 0,
    or None. `alone`: only the evaluation of the last state.
    """
    repeats = (whole.points, whole.outcomes) == (again.points, again.outcomes)
    if resumed is None or not resumed.state_was_read:
        return repeats, "anew"
    continues_exactly = (resumed.points, resumed.outcomes, alone.outcomes) == (
        whole.points[1:],
        whole.outcomes,
        whole.outcomes,
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


def _numbers(tried: Tried, outcome: str) -> Numbers:
    """Return a trial's metrics at each point, with the outcomes of the evaluation after those of the points."""
    points = tried.points
    numbers = {name: tuple(float(point[name]) for point in points) for name in points[0]}
    return {**numbers, outcome: (*numbers[outcome], *map(float, tried.outcomes))}


def _seeds_and_repeats(
    played: _Played, outcome: str, trial: Callable[[int, str], Tried]
) -> tuple[list[Numbers], list[Numbers]]:
    """Return the numbers of different seeds and of one seed run repeatedly; run more of both if two leave a doubt."""
    whole = _numbers(played.whole, outcome)
    seeds = [whole, _numbers(played.other, outcome)]
    repeats = [whole, _numbers(played.again, outcome)]
    if is_in_doubt(seeds, repeats, outcome):
        seeds += [_numbers(trial(seed_index, f"seed {seed_index + 1}"), outcome) for seed_index in range(2, SEEDS)]
        repeats.append(_numbers(trial(0, "the same seed once more"), outcome))
    return seeds, repeats


@dataclass(frozen=True)
class _Played:
    """The trials of every rehearsal of a Python trainer."""

    whole: Tried  # a seed
    again: Tried  # the same seed
    other: Tried  # another seed
    alone: Tried  # only the evaluation of the last state of `whole`
    resumed: Tried | None  # `whole` from the state after its first point; None if there is only one point


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

    def play(self) -> _Played:
        """Play the trials of every rehearsal; several at once, unless a run may need all of a GPU's memory."""
        states = str(self.folder / "state")
        trained = "trained"
        with ThreadPoolExecutor(1 if self._gpu else 3) as pool:
            parts = [
                pool.submit(self.tried, 0, "a seed", keep=states, within=trained),
                pool.submit(self.tried, 0, "the same seed again"),
                pool.submit(self.tried, 1, "another seed"),
            ]
            whole, again, other = (part.result() for part in parts)
            evaluated = pool.submit(
                self.tried, 0, "its evaluation alone", first=self.last, state=f"{states}{self.last - 1}", within=trained
            )
            went_on = None
            if self.last > 1:
                went_on = pool.submit(self.tried, 0, "from a state", first=1, state=f"{states}0")
            alone = _evaluated(evaluated)
            resumed = went_on.result() if went_on else None
        return _Played(whole, again, other, alone, resumed)

    def tried(
        self, seed_index: int, words: str, *, first: int = 0, state: str = "", keep: str = "", within: str = ""
    ) -> Tried:
        """Run one trial, described by `words`, in the folder `within` or in one named after the trial."""
        self.doing(f"rehearsing {Path(self.question.reference).name}, {words}")
        place = self.folder / (within or f"{seed_index}-{words.replace(' ', '-')}")
        place.mkdir(exist_ok=True)
        trial = Trial(
            question=self.question,
            settings=self.settings,
            rng=rng_of(self.question, seed_index),
            folder=str(place),
            gpu=self._gpu,
            last=self.last,
            first=first,
            state_file=state,
            keep=keep,
        )
        return _tried(trial, self.pins, self.limits)

    @property
    def _gpu(self) -> bool:
        return bool(self.pins["CUDA_VISIBLE_DEVICES"])


def rehearse_python(question: TrainerQuestion, measure: Measure, doing: Doing, limits: IdleLimits) -> TrainerFacts:
    doing(f"loading {question.reference}")
    trainer, code = module.load(question.reference)
    settings = _settings_of_groups(trainer, question)
    first_group = next(iter(settings.values()))
    with scratch_folder() as folder:
        trials = _PythonTrials(
            question=question,
            settings=module.flat(trainer.settings({**first_group, **question.rehearsal})),
            last=min(2, question.points),
            folder=folder,
            doing=doing,
            limits=limits,
            pins=pins_of(question),
        )
        played = trials.play()
        seeds, repeats = _seeds_and_repeats(played, question.outcome, trials.tried)
    whole = played.whole
    outcomes = itertools.chain(*(numbers[question.outcome] for numbers in seeds))
    refuse_impossible(outcomes, measure)
    refuse_no_effect(seeds, repeats, question.outcome, "draw everything from run.seed(…)")
    if trials.last == question.points and not question.rehearsal:
        refuse_other_unit(map(float, (*whole.outcomes, *played.other.outcomes)), measure, question.margin)
    if question.evaluations and len(whole.outcomes) != question.evaluations:
        raise ValueError(
            f"evaluate returned {len(whole.outcomes)} outcomes, not as many as "
            f"{marked(SettingName('eval_episodes', question.evaluations))} asks for"
        )
    bit_equal, resumption = behaviour(whole, played.again, played.resumed, played.alone)
    return TrainerFacts(
        settings=settings,
        root=str(code.root),
        files=code.files,
        sha256=code.sha256,
        metrics=measure_names(name for name in whole.points[0] if name != question.outcome),
        evaluations=len(whole.outcomes),
        repeats=bit_equal,
        outcome_repeats=outcome_repeats(repeats, question.outcome),
        resumption=resumption,
        evaluates_alike=not bit_equal or played.alone.outcomes == whole.outcomes,
        shortened=text_of(question.rehearsal),
        found=_found(whole),
        memory_bytes=whole.memory_bytes,
        point_s=whole.point_s,
        evaluate_s=whole.evaluate_s,
    )


def _found(whole: Tried) -> str:
    """Return the outcome of a trial, and how it came about."""
    outcomes = [float(outcome) for outcome in whole.outcomes]
    if len(outcomes) == 1:
        return f"{outcomes[0]:g}, returned by evaluate"
    return f"{sum(outcomes) / len(outcomes):g}, the mean of the {len(outcomes)} outcomes that evaluate returned"


def _evaluated(alone: Future[Tried]) -> Tried:
    """Return the evaluation in a process that has not trained; ValueError if the evaluation fails."""
    try:
        return alone.result()
    except ValueError as error:
        what = "evaluate(run, state) failed in a process that has not trained"
        raise ValueError(f"{what}: {error}; it receives nothing but the state") from None


def _tried(trial: Trial, pins: Mapping[str, str], limits: IdleLimits) -> Tried:
    """Run one trial in its own process.

    Raises ValueError with the fault that the process reports or, if the process crashes, with the last line of output.
    """
    command = child_command("workers.kinds.trainer.commands.try_trainer")
    name = Path(trial.question.reference).name
    watch = Watch(paths=(Path(trial.folder),), limits=limits)
    with child_of(command, msgspec.json.encode(trial), {**os.environ, **pins}) as child:
        while True:
            try:
                answer, complaint = child.communicate(timeout=_LOOK_S)
                break
            except subprocess.TimeoutExpired:
                if idle := watch.look(child.pid):
                    raise ValueError(f"{name} {idle_words(idle, limits)}, so it was ended") from None
    try:
        return _decode(answer)
    except UNREADABLE:
        lines = complaint.decode(errors="replace").strip().splitlines()
    if child.returncode == UsageError.exit_code and lines and lines[-1].startswith("error: "):
        raise ValueError(lines[-1].removeprefix("error: ").removeprefix("ValueError: "))
    ended = describe_end(child.returncode or 0, lines)
    raise ValueError(f"{name} ended its process: it {ended}")
