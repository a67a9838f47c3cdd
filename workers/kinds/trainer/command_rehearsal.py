"""Rehearses a command before any budget is spent: runs it with two seeds, and with one of them again.

The runs have the threads, determinism and number of GPUs of an experiment's runs. A command that needs no GPU needs no
torch, so nothing here imports it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from esper_ab.contracts import users_shell
from esper_ab.contracts.errors import SettingName
from esper_ab.contracts.marked_settings import marked
from esper_ab.contracts.measures import Measure
from esper_ab.contracts.outcome_summary import read_summary
from esper_ab.contracts.private_folder import scratch_folder
from esper_ab.contracts.source_files import source_sha256
from esper_ab.contracts.trainer import RESUME, Resumption, TrainerFacts, TrainerQuestion, placeholders, read_source
from workers.kinds.trainer import ports, running, words
from workers.kinds.trainer.code_tree import asked_files
from workers.kinds.trainer.idling import IdleLimits, Watch
from workers.kinds.trainer.interpreter import other_interpreter
from workers.kinds.trainer.named_files import named_files
from workers.kinds.trainer.other_groups import IsOver, Settings, try_other_groups
from workers.kinds.trainer.outcome_sources.left import Found, Left
from workers.kinds.trainer.outcome_sources.read import find_outcome, has_outcome
from workers.kinds.trainer.possible_outcome import refuse_impossible, refuse_other_unit
from workers.kinds.trainer.rehearsal_setup import SEEDS, Doing, at_once, pins_of, rng_of, text_of
from workers.kinds.trainer.running import ProgramEnd
from workers.kinds.trainer.seed_effect import (
    Numbers,
    is_in_doubt,
    outcome_repeats,
    refuse_no_effect,
    relative_difference,
)
from workers.kinds.trainer.words import CommandLine

_LOG = "rehearsal.log"
_RUN_NAME = "rehearsal"  # what {name} is


@dataclass(frozen=True)
class _Command:
    """A command that is rehearsed in a temporary folder, with the settings of one group."""

    question: TrainerQuestion
    settings: Settings
    folder: Path
    doing: Doing
    limits: IdleLimits
    is_over: IsOver = lambda: False

    def run(self, seed_index: int, description: str) -> _CommandRun:
        """Run the command to its end, and read its outcome; ValueError if it fails or does not end by itself."""
        question = self.question
        source = read_source(question.outcome)
        summary = read_summary(question.outcome_summary)
        step = f"rehearsing the command with {description}"
        self.doing(step)
        out = words.fresh_folder(self.folder, "out").resolve()
        log = self.folder / _LOG
        earlier_bytes = log.stat().st_size if log.exists() else 0
        output = Left(out, log, earlier_bytes)

        def has_result() -> bool:
            return has_outcome(source, output, summary)

        def tell(idle_s: float) -> None:
            result_words = "its result is there" if has_result() else "no result yet"
            self.doing(f"{step}; {result_words}, and it has used no CPU time and written nothing for {idle_s:.0f} s")

        watch = Watch(paths=(out, log), limits=self.limits, has_result=has_result, tell=tell, is_over=self.is_over)
        begin_s = time.perf_counter()
        run_end = self._execute(seed_index, out, watch)
        took_s = time.perf_counter() - begin_s
        outcome = find_outcome(source, output, summary)
        if not (run_end.by_itself or question.ends_idle):
            raise ValueError(
                f"the command wrote its result ({source.key} {outcome.value:g}), then used no CPU time and wrote "
                f"nothing for {self.limits.with_result_s:g} s without ending; a run that does so is killed as stuck. "
                f"Make it end, or use {marked(SettingName('end_idle'))}: then such a run is ended, and its result "
                "counts"
            )
        if summary.of != "last" and outcome.total == 1 and not question.rehearsal:
            raise ValueError(
                f"{outcome.where} has one value only, so {marked(SettingName('outcome_summary'))} has nothing to "
                "summarise; omit it"
            )
        return _CommandRun(outcome, took_s, run_end.peak_bytes)

    def _execute(self, seed_index: int, out: Path, watch: Watch) -> ProgramEnd:
        """Run the command to its end; ScriptFailed if it fails."""
        question = self.question
        shell = users_shell.current()
        pins = pins_of(question)
        line = CommandLine(question.reference, Path(question.directory), out)
        own_values = line.own_values(words.seed_at(rng_of(question, seed_index)), _RUN_NAME, words.device_word(pins))
        with ports.claimed(question.reference) as port:
            return running.run_script(
                line.words({**self.settings, **own_values, **port}),
                line.folder,
                running.environment(
                    shell, read_source(question.outcome), out, pins, line.search_path, asked_files(question)
                ),
                (self.folder, _LOG),
                watch,
                shell,
            )


@dataclass(frozen=True)
class _CommandRun:
    """A run of the rehearsal."""

    outcome: Found
    took_s: float
    peak_bytes: int


def rehearse_command(question: TrainerQuestion, measure: Measure, doing: Doing, limits: IdleLimits) -> TrainerFacts:
    """Run the command with two seeds, with one again, and once for each further group.

    Raises ValueError if it fails, or if its seed does not matter.
    """
    name = read_source(question.outcome).key
    files = named_files(question.reference, question.directory, question.groups.values())
    sha256 = source_sha256(Path(question.directory), files)
    groups = {group: {**settings, **question.rehearsal} for group, settings in question.groups.items()}
    with scratch_folder() as folder:
        command = _Command(question, next(iter(groups.values())), folder, doing, limits)
        seeds, repeats = _seeds_and_repeats(command, measure)
        runs = [*seeds, *repeats[1:]]
        outcomes = [run.outcome.value for run in runs]
        refuse_impossible(outcomes, measure)
        refuse_no_effect(
            _numbers(seeds, name), _numbers(repeats, name), name, "does the script read the seed that it is given?"
        )
        if not question.rehearsal:
            refuse_other_unit(outcomes, measure, question.margin)

        def attempt(group: str, settings: Settings, seed_index: int, is_over: IsOver) -> None:
            place = words.fresh_folder(folder, f"group-{group}")
            run = replace(command, settings=settings, folder=place, is_over=is_over).run(seed_index, f"group {group}")
            refuse_impossible((run.outcome.value,), measure)

        tried = try_other_groups(groups, attempt, at_once(pins_of(question), question.threads))
    return TrainerFacts(
        settings=question.groups,
        root=question.directory,
        files=files,
        sha256=sha256,
        evaluations=1,
        ends_idle=question.ends_idle,
        repeats=relative_difference(_numbers(repeats, name), name) == 0.0,
        outcome_repeats=outcome_repeats(_numbers(repeats, name), name),
        resumption=_resumption(question),
        shortened=text_of(question.rehearsal),
        source=_common_source(runs),
        found=runs[0].outcome.words,
        interpreter=other_interpreter(question.reference, users_shell.current()),
        point_s=runs[0].took_s,
        memory_bytes=max(run.peak_bytes for run in runs),
        failed_once=tried.failed_once,
        ended_early=tried.ended_early,
        not_started=tried.not_started,
    )


def _resumption(question: TrainerQuestion) -> Resumption:
    """Return how the command continues, which the rehearsal does not try."""
    if RESUME in placeholders(question.reference):
        return "untried"
    return "anew"


def _common_source(runs: Sequence[_CommandRun]) -> str:
    """Return where the outcomes of all runs were read; "" if that differs."""
    sources = {run.outcome.source for run in runs}
    if len(sources) == 1:
        return sources.pop()
    return ""


def _seeds_and_repeats(command: _Command, measure: Measure) -> tuple[list[_CommandRun], list[_CommandRun]]:
    """Return runs of different seeds and of one seed repeatedly, which share the first; more if these leave a doubt."""
    name = read_source(command.question.outcome).key
    first_run = command.run(0, "a seed")
    refuse_impossible((first_run.outcome.value,), measure)
    seeds = [first_run, command.run(1, "another seed")]
    repeats = [first_run, command.run(0, "the same seed again")]
    if is_in_doubt(_numbers(seeds, name), _numbers(repeats, name), name):
        seeds += [command.run(seed_index, "one more seed") for seed_index in range(2, SEEDS)]
        repeats.append(command.run(0, "the same seed once more"))
    return seeds, repeats


def _numbers(runs: Sequence[_CommandRun], name: str) -> list[Numbers]:
    return [{name: (run.outcome.value,)} for run in runs]
