"""The experiment of one candidate, as `launch` would be asked for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import stdev
from typing import Any

import msgspec

from esper_ab.api.what import trainer_in
from esper_ab.campaign.campaign import Campaign
from esper_ab.contracts.code_state import written_code
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.wording import listed
from esper_ab.gate.asked import spelled_as_file
from esper_ab.settings.assignments import Assignment
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.launcher import asked_launcher
from esper_ab.settings.parse import parse
from esper_ab.settings.parts import Part
from esper_ab.settings.request import request
from esper_ab.settings.schema import SHORT
from esper_ab.settings.settings_file import FileSettings
from esper_ab.stream.entries import Setup
from esper_ab.stream.outcomes import EXPERIMENTS
from esper_ab.stream.progress import StreamProgress
from esper_ab.stream.question import CANDIDATE, INCUMBENT, StreamQuestion
from esper_ab.stream.states import kept_folder

_NEGLIGIBLE = 1e-6  # margin where nothing is known of the spread of outcomes
# Settings that a stream chooses, or that have a key of their own in stream.toml.
_DECIDED = frozenset(
    {"alpha", "claim", "code", "code_kept", "control", "early_stop", "futility", "group", "groups", "guardrails"}
    | {
        "identical_after",
        "looks",
        "margin",
        "name",
        "open_ended",
        "order",
        "outcome",
        "outcome_better",
        "outcome_range",
    }
    | {"rng_seed", "seeds", "shape", "task", "trainer_folder", "unpaired", "untested", "variances"}
)


def check_settings(question: StreamQuestion) -> None:
    """Raise UsageError for a setting of the file that the stream decides about."""
    if decided_keys := sorted(key for key in question.settings if key.partition(".")[0] in _DECIDED):
        raise UsageError(
            f"settings: {listed(decided_keys)} cannot be set here, because the stream decides about them or has a key "
            "of its own for them"
        )


def pair_campaign(folder: Path, progress: StreamProgress, setup: Setup, name: str, rng_seed: int) -> Campaign:
    """Return the campaign that compares a candidate with the incumbent, up to the first look.

    Raises UsageError if the candidate's settings are invalid.
    """
    question = progress.question
    values = {
        "seeds": question.looks[0],
        "rng_seed": rng_seed,
        "name": name,
        "margin": question.margin or _negligible(progress.incumbent.outcomes),
    }
    asked_experiment = _ask(folder, question, {INCUMBENT: progress.incumbent.setup, CANDIDATE: setup}, values)
    return _campaign(folder, question, asked_experiment)


def _negligible(outcomes: Sequence[float]) -> float:
    """Return a margin for the report of a candidate if any improvement counts: a hundredth of the SD of runs."""
    spread = stdev(outcomes) if len(outcomes) > 1 else 0.0
    return float(f"{0.01 * spread:.0e}") or _NEGLIGIBLE


def lone_campaign(folder: Path, question: StreamQuestion, setup: Setup, name: str, rng_seed: int) -> Campaign:
    """Return the campaign that trains an incumbent alone; UsageError if its setup is invalid."""
    values = {
        "seeds": max(question.incumbent_seeds, 1),
        "rng_seed": rng_seed,
        "name": name,
        "margin": question.margin or _NEGLIGIBLE,
    }
    asked_experiment = _ask(folder, question, {INCUMBENT: setup, CANDIDATE: setup}, values)
    (incumbent, _) = asked_experiment.groups
    lone_experiment = msgspec.structs.replace(
        asked_experiment,
        groups=(incumbent,),
        control="",
        early_stop=True,
        code=written_code({INCUMBENT: setup.code}) if setup.code else (),
    )
    return _campaign(folder, question, lone_experiment)


def _campaign(folder: Path, question: StreamQuestion, asked_experiment: AskedExperiment) -> Campaign:
    return Campaign(
        parts=(Part(name="", asked=asked_experiment),),
        output_dir=folder / EXPERIMENTS,
        launcher=asked_launcher(question.launcher, "[launcher]", {"launcher": "name"}),
    )


def _ask(
    folder: Path, question: StreamQuestion, setups: Mapping[str, Setup], values: Mapping[str, Any]
) -> AskedExperiment:
    common_values = {
        **question.settings,
        **values,
        "control": INCUMBENT,
        "early_stop": False,  # the stream decides when a candidate ends
        "outcome_better": question.better,
    }
    if question.outcome:
        common_values["outcome"] = question.outcome
    if question.outcome_range is not None:
        common_values["outcome_range"] = "..".join(map(repr, question.outcome_range))
    if any(setup.code for setup in setups.values()):
        common_values["code"] = [f"{group}={setup.code}" for group, setup in setups.items()]
        common_values["code_kept"] = str(kept_folder(folder))
    working_folder = Path(question.folder)
    with spelled_as_file():
        common_values["trainer"] = _trainer(question)
        return parse(
            request(
                FileSettings(
                    folder=working_folder,
                    groups=tuple(setups),
                    common=tuple(_assignments(common_values, "settings", working_folder)),
                    tables={
                        group: tuple(_assignments(setup.settings, f"{group}: settings", working_folder))
                        for group, setup in setups.items()
                    },
                )
            )
        )


def _trainer(question: StreamQuestion) -> str:
    """Return the trainer as an experiment names it; UsageError if it is none."""
    trainer = trainer_in(question.train)
    if trainer is None:
        raise UsageError(f"train: {question.train} declares an experiment; name a trainer, a function or a command")
    return trainer


def _assignments(values: Mapping[str, Any], place: str, folder: Path) -> Iterator[Assignment]:
    for key, value in values.items():
        yield Assignment(SHORT.get(key, key), value, f"{place}: {key}", folder, is_text=False)
