"""`assert_not_worse`: a trainer is not worse than another one by a margin or more, with an error rate.

The other one is another function, other settings, or an earlier state of the code, for which this is the gate of
`esper-ab gate`. The question is one-sided and sequential, and both train the same seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from esper_ab.api.arguments import arguments
from esper_ab.api.function_reference import FOLDER, reference_of
from esper_ab.api.setting_names import plain
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.settings import NonNegativeInt, PositiveInt
from esper_ab.contracts.wording import counted
from esper_ab.gate.question import GateQuestion
from esper_ab.gate.running import GateOptions, run_gate, unsealed_in
from esper_ab.gate.states import find_states
from esper_ab.pytest_plugin.session import current
from esper_ab.settings.differences import WHICH_FUNCTION
from esper_ab.settings.schema import TRAINER
from esper_ab.settings.vary import group_name
from esper_ab.testing.answer import Shown, note_answer, report_line
from esper_ab.testing.failing import NotShown, ending_in_words
from esper_ab.testing.folders import folder_of_all, most_parallel, output_folder
from esper_ab.testing.paired import PairedQuestion, compare
from esper_ab.testing.two_functions import as_one

_FUNCTION = "assert_not_worse"
_TRAIN = "train"  # names of the groups, unless two functions have names of their own, or one has other settings
_AGAINST = "against"


class NotWorseOptions(TypedDict, total=False):
    """Options of `assert_not_worse`."""

    higher: str
    lower: str
    settings: Mapping[str, Any]
    outcome_range: str
    rehearsal: Mapping[str, Any]
    run_seconds: float
    devices: Sequence[str]
    threads: PositiveInt
    max_parallel_runs: PositiveInt
    rng_seed: NonNegativeInt


@ending_in_words
def assert_not_worse(
    train: Callable[..., Any] | str,
    *,
    against: Callable[..., Any] | Mapping[str, Any] | str,
    margin: float,
    minutes: float,
    **options: Unpack[NotWorseOptions],
) -> Shown:
    """Fail the test unless `train` is shown not to be worse than `against` by `margin` or more.

    `against` is another function; or the settings in which the reference differs; or a git commit, branch or tag: its
    code is then compared with the files as they are now. Both train the same seeds, as many as `minutes` pay for, with
    looks in between. The test fails, too, if these decide nothing. Higher outcomes are better, unless `lower` names the
    outcome; `higher` names one of several. `train` is a function as of `compare_training`, or a command, or FILE:NAME.
    """
    given_options = arguments(_FUNCTION, options, NotWorseOptions)
    higher, lower = given_options.pop("higher", ""), given_options.pop("lower", "")
    if higher and lower:
        raise UsageError(f"{_FUNCTION}: higher and lower exclude each other, because one outcome decides")
    folder = output_folder()
    question = GateQuestion(
        train=_reference(train, against, folder),
        better="lower" if lower else "higher",
        outcome=higher or lower,
        margin=plain(margin),
        minutes=plain(minutes),
        run_seconds=given_options.pop("run_seconds", 0.0),
        **_kept_runs(against),
    )
    if isinstance(against, str):
        answer = _compare_states(question, against, given_options, folder)
    else:
        answer = _compare_groups(question, _groups(train, against, given_options), given_options, folder)
    note_answer(answer)
    return answer


def _reference(train: object, against: object, folder: Path) -> str:
    """Return the trainer as an experiment names it; UsageError if it does not fit to `against`."""
    if callable(against):
        if isinstance(train, str):
            raise UsageError(f"{_FUNCTION}: against is a function, so train has to be one, too, not {train!r}")
        if train is against:
            raise UsageError(
                f"{_FUNCTION}: train and against are one function, so nothing is compared; give another function as "
                "against, or settings or a commit"
            )
        return as_one(_FUNCTION, _named_functions(train, against), folder)
    if not isinstance(against, str | Mapping):
        raise UsageError(
            f'{_FUNCTION}: against: expected a function, settings as in {{"lr": 1e-3}}, or a commit as in "main", '
            f"not {against!r}"
        )
    if isinstance(train, str):
        return train
    reference = reference_of(train, folder, _FUNCTION)
    if isinstance(against, str) and Path(reference).is_relative_to(folder.resolve() / FOLDER):
        raise UsageError(
            f"{_FUNCTION}: train is inside another function or a notebook, so no commit has it; define it in a module "
            f"to compare it with {against}"
        )
    return reference


def _kept_runs(against: object) -> dict[str, Any]:
    """Return the folder of kept runs and its limit, if the session has them.

    Runs of two functions are not kept: the file that calls them has no digest of all that they import.
    """
    session = current()
    if session is None or session.references is None or callable(against):
        return {}
    return {"references": session.references, "references_limit": session.references_limit}


def _named_functions(train: Any, against: Any) -> dict[str, Any]:
    """Return both functions by their names or, if these are equal, by those of the arguments."""
    names = [getattr(function, "__name__", "") for function in (train, against)]
    return dict(zip(names if names[0] != names[1] else (_TRAIN, _AGAINST), (train, against), strict=True))


def _groups(train: Any, against: Any, options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of both groups by name, the reference last; UsageError if they are the same."""
    settings = dict(options.get("settings", {}))
    if callable(against):
        return {name: {**settings, WHICH_FUNCTION: name} for name in _named_functions(train, against)}
    own_settings = {**settings, **against}
    if own_settings == settings:
        raise UsageError(
            f"{_FUNCTION}: against changes no setting, so nothing is compared; give settings with other values, "
            'another function, or a commit as in "main"'
        )
    return {_TRAIN: settings, group_name(against): own_settings}


def _compare_groups(
    question: GateQuestion, groups: Mapping[str, Mapping[str, Any]], options: Mapping[str, Any], folder: Path
) -> Shown:
    """Compare two groups of this state of the code; NotShown if the first is not shown not to be worse."""
    settings = {key: value for key, value in options.items() if key not in ("settings", "max_parallel_runs")}
    if at_once := options.get("max_parallel_runs", most_parallel()):
        settings["max_parallel"] = at_once
    kept_folders = () if question.references is None else (question.references,)
    paired = PairedQuestion(
        caller=_FUNCTION,
        question=question,
        groups=groups,
        settings=settings,
        folder=folder,
        unsealed=(folder_of_all(folder), *kept_folders),
    )
    paired_answer = compare(paired)
    cost = (
        f"{counted(paired_answer.pairs, 'pair')} of at most {paired_answer.most_pairs} in {question.minutes:g} min"
        f"{_kept_words(paired_answer.kept_runs)}"
    )
    return _worded(paired_answer.lines, paired_answer.complaint, cost, paired_answer.directory)


def _compare_states(question: GateQuestion, base: str, options: Mapping[str, Any], folder: Path) -> Shown:
    """Run a gate; NotShown if it does not pass. Nothing is trained if both states have the same files."""
    gate_question = replace(question, base=base, settings=_gate_settings(options))
    options_of_gate = GateOptions(folder=folder, unsealed=(folder_of_all(folder),))
    states = find_states(gate_question, unsealed_in(gate_question, options_of_gate))
    if states.are_one:
        headline = f"The code is that of {states.base.words}, so there is nothing to compare."
        return Shown(headline=headline, lines=(), directory=folder)
    gate = run_gate(gate_question, options_of_gate)
    document = gate.document
    cost = (
        f"{counted(document['pairs'], 'pair')} of at most {document['most_pairs']}, "
        f"{document['seconds'] / 60.0:.1f} of {question.minutes:g} min{_kept_words(sum(document['reused'].values()))}"
    )
    states_line = f"head is {states.head.words}, base is {states.base.words}"
    return _worded((*gate.lines, states_line), gate.complaint, cost, gate.directory)


def _gate_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options as settings of `launch`, by key."""
    settings = {f"{TRAINER}{key}": value for key, value in options.get("settings", {}).items()}
    for key, name in (("outcome_range",) * 2, ("devices",) * 2, ("rng_seed",) * 2, ("threads", "arithmetic.threads")):
        if key in options:
            settings[name] = options[key]
    if rehearsal := options.get("rehearsal"):
        settings["rehearsal"] = [f"{key}={value}" for key, value in rehearsal.items()]
    if at_once := options.get("max_parallel_runs", most_parallel()):
        settings["max_parallel"] = at_once
    return settings


def _kept_words(kept_runs: int) -> str:
    return f"; {counted(kept_runs, 'kept run')} used again" if kept_runs else ""


def _worded(lines: Sequence[str], complaint: str, cost: str, directory: Path) -> Shown:
    """Return the answer in words; NotShown, with the same words, if there is a complaint."""
    headline, *further_lines = lines
    complaints = [complaint] if complaint else []
    answer = Shown(
        headline=headline,
        lines=(*further_lines, *complaints, f"cost: {cost}", report_line(directory)),
        directory=directory,
    )
    if complaint:
        raise NotShown(str(answer))
    return answer
