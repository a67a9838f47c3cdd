"""Rehearses a function before any budget is spent: calls it with two seeds, and with one of them again.

Each call has a process of its own, with the threads, determinism and number of GPUs of an experiment's runs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from esper_ab.contracts import users_shell
from esper_ab.contracts.measures import Measure
from esper_ab.contracts.private_folder import scratch_folder
from esper_ab.contracts.source_files import source_sha256
from esper_ab.contracts.trainer import TrainerFacts, TrainerQuestion
from esper_ab.contracts.worker_order import UsersShell
from workers.kinds.trainer import words
from workers.kinds.trainer.function_call import CallPlace, called
from workers.kinds.trainer.function_messages import Call, Called
from workers.kinds.trainer.idling import IdleLimits, Watch
from workers.kinds.trainer.metric_names import measure_names
from workers.kinds.trainer.other_groups import IsOver, Settings, TriedGroups, try_other_groups
from workers.kinds.trainer.possible_outcome import refuse_impossible, refuse_other_unit
from workers.kinds.trainer.rehearsal_setup import SEEDS, Doing, at_once, pins_of, rng_of, text_of
from workers.kinds.trainer.seed_effect import (
    Numbers,
    is_in_doubt,
    outcome_repeats,
    refuse_no_effect,
    relative_difference,
)

_AT_ONCE = 3  # calls, unless a run may need all of a GPU's memory


@dataclass(frozen=True)
class _Rehearsed:
    """One call of the rehearsal."""

    answer: Called
    numbers: Numbers  # by name: at each point
    took_s: float


@dataclass(frozen=True, kw_only=True)
class _Function:
    """A function that is rehearsed in a temporary folder, with the settings of one group."""

    question: TrainerQuestion
    group: str
    folder: Path
    shell: UsersShell
    doing: Doing
    limits: IdleLimits
    is_over: IsOver = lambda: False

    @property
    def name(self) -> str:
        return self.question.reference.rpartition(":")[2]

    def call(self, seed_index: int, description: str) -> _Rehearsed:
        """Call the function in a folder that is named after the description; ValueError if it fails."""
        question = self.question
        self.doing(f"rehearsing {self.name} with {description}")
        begin_s = time.perf_counter()
        pins = pins_of(question)
        place = CallPlace(
            root=self.folder,
            folder=description.replace(" ", "-"),
            log=f"{description.replace(' ', '-')}.log",
            pins=pins,
            shell=self.shell,
        )
        out = words.fresh_folder(self.folder, f"{place.folder}/out").resolve()
        call_order = Call(
            reference=question.reference,
            directory=question.directory,
            tree=question.tree,
            root=question.states_in,
            groups=question.groups,
            group=self.group,
            more=question.rehearsal,
            seed=words.seed_at(rng_of(question, seed_index)),
            filled={"out": str(out), "device": words.device_word(pins)},
        )
        answer = called(
            call_order, place, Watch(paths=(out, self.folder / place.log), limits=self.limits, is_over=self.is_over)
        )
        curve = answer.curve(self.name, question.outcome)
        numbers = {name: tuple(point[name] for point in curve) for name in curve[0]}
        return _Rehearsed(answer, numbers, time.perf_counter() - begin_s)


def rehearse_function(question: TrainerQuestion, measure: Measure, doing: Doing, limits: IdleLimits) -> TrainerFacts:
    """Call the function three times or more; ValueError if runs of it could not be compared."""
    with scratch_folder() as folder:
        function = _Function(
            question=question,
            group=next(iter(question.groups)),
            folder=folder,
            shell=users_shell.current(),
            doing=doing,
            limits=limits,
        )
        first_run, repeated_run, other_run = _call_three_times(function)
        seeds, repeats = _alike(
            [first_run.numbers, other_run.numbers], [first_run.numbers, repeated_run.numbers], function.name
        )
        if is_in_doubt(seeds, repeats, question.outcome):
            more_seeds = [function.call(index, f"seed {index + 1}").numbers for index in range(2, SEEDS)]
            once_more = function.call(0, "the same seed once more").numbers
            seeds, repeats = _alike([*seeds, *more_seeds], [*repeats, once_more], function.name)
        outcomes = [numbers[question.outcome][-1] for numbers in (*seeds, *repeats[1:])]
        refuse_impossible(outcomes, measure)
        refuse_no_effect(seeds, repeats, question.outcome, f"draw all that is random in {function.name} from its seed")
        if not question.rehearsal:
            refuse_other_unit(outcomes, measure, question.margin)
        tried = _try_other_groups(function, first_run.answer.settings, measure)
    answer = first_run.answer
    points = min(question.points, max(len(run.answer.points) for run in (first_run, repeated_run, other_run)))
    return TrainerFacts(
        settings=answer.settings,
        root=answer.root,
        files=answer.files,
        sha256=source_sha256(Path(answer.root), answer.files),
        metrics=measure_names(name for name in first_run.numbers if name != question.outcome),
        evaluations=1,
        points=points,
        repeats=all(relative_difference(repeats, name) == 0.0 for name in repeats[0]),
        outcome_repeats=outcome_repeats(repeats, question.outcome),
        resumption="anew",
        shortened=text_of(question.rehearsal),
        found=f"{outcomes[0]:g}, returned by {function.name}",
        memory_bytes=answer.memory_bytes,
        point_s=first_run.took_s / points,
        failed_once=tried.failed_once,
        ended_early=tried.ended_early,
        not_started=tried.not_started,
    )


def _call_three_times(function: _Function) -> tuple[_Rehearsed, _Rehearsed, _Rehearsed]:
    """Call the function with a seed, with the same one again and with another one."""
    on_cpu = words.device_word(pins_of(function.question)) == "cpu"
    with ThreadPoolExecutor(_AT_ONCE if on_cpu else 1) as pool:
        first_call = pool.submit(function.call, 0, "a seed")
        same_call = pool.submit(function.call, 0, "the same seed again")
        other_call = pool.submit(function.call, 1, "another seed")
        return first_call.result(), same_call.result(), other_call.result()


def _try_other_groups(function: _Function, settings: Mapping[str, Settings], measure: Measure) -> TriedGroups:
    """Call the function once for each further group; ValueError if it fails for one."""
    question = function.question

    def attempt(group: str, _: Settings, seed_index: int, is_over: IsOver) -> None:
        call = replace(function, group=group, is_over=is_over).call(seed_index, f"group {group}")
        refuse_impossible(call.numbers[question.outcome][-1:], measure)

    groups = {group: {**values, **question.rehearsal} for group, values in settings.items()}
    return try_other_groups(groups, attempt, at_once(pins_of(question), question.threads))


def _alike(seeds: list[Numbers], repeats: list[Numbers], function: str) -> tuple[list[Numbers], list[Numbers]]:
    """Cut curves to the length of the shortest, but keep their last points; ValueError if the runs' names differ."""
    runs = [*seeds, *repeats]
    if any(run.keys() != runs[0].keys() for run in runs):
        raise ValueError(f"{function} returned numbers of other names for another seed; return the same in every run")
    shortest = min(len(curve) for run in runs for curve in run.values())
    cut: list[Numbers] = [{name: (*curve[: shortest - 1], curve[-1]) for name, curve in run.items()} for run in runs]
    return cut[: len(seeds)], cut[len(seeds) :]
