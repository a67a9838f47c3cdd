"""What is said when an experiment is resumed after users' files have changed: which ones its runs use, if any."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.source_files import source_sha256
from esper_ab.contracts.trainer import is_command
from esper_ab.contracts.wording import listed
from esper_ab.contracts.worker_order import RewardCode
from esper_ab.control.rules.deaths import any_complete
from esper_ab.journal.events import AnyEvent, TrainerMended
from esper_ab.journal.fold import History
from esper_ab.plan.copied_code import TRAINER_FOLDER

_CHANGED = "has changed since the experiment was planned"
_NAMED = 3  # files in a notice
_REMEDY = "launch a new experiment to use the change"


def notices(experiment_dir: Path, history: History, first_events: Sequence[AnyEvent]) -> Iterator[str]:
    """Yield a line for each of the user's files that has changed since the plan, or since the last change.

    `first_events`: those with which the experiment continues, which are not yet in the history.
    """
    mended_trainers = [event for event in first_events if isinstance(event, TrainerMended)]
    if mended_trainers:
        yield _used_as_it_is(history, mended_trainers[-1])
    elif _is_copied(history) and any_complete(history) and _trainer_sha256(history) != _planned_sha256(history):
        yield (
            f"{_trainer_file(history)} {_CHANGED}, but seeds are complete: all runs use the copy in "
            f"{experiment_dir / TRAINER_FOLDER}; {_REMEDY}"
        )
    for code in _reward_codes(history):
        source_file = Path(code.reference.rpartition(":")[0])
        if source_file.is_absolute() and _source_of(code, experiment_dir) != code.sha256:
            yield f"{source_file} {_CHANGED}: all runs use the copy in {experiment_dir / code.folder}; {_REMEDY}"


def check_command_files(history: History) -> None:
    """Raise UsageError if runs of a command could not start, because its files are no longer those of complete seeds.

    Before a seed is complete, runs use the files as they are now. With a state of the code per group, a run has its
    own copy of them.
    """
    facts = history.plan.trainer
    if facts is None or facts.states or not is_command(history.plan.experiment.trainer):
        return
    sha256 = _trainer_sha256(history)
    if sha256 == _planned_sha256(history) or (sha256 and not any_complete(history)):
        return
    raise UsageError(
        f"{_trainer_file(history)} in {facts.root} {_CHANGED}, so further runs could not be compared with those "
        f"before; restore the earlier file, then resume, or {_REMEDY}"
    )


def _used_as_it_is(history: History, mended: TrainerMended) -> str:
    earlier_words = ""
    if mended.before:
        have = "has" if len(mended.before) == 1 else "have"
        earlier_words = f"; {listed(mended.before)} {have} records made with the earlier one"
    return (
        f"{_trainer_file(history)} {_CHANGED}: unfinished runs use it as it is now, which was not rehearsed"
        f"{earlier_words}"
    )


def _is_copied(history: History) -> bool:
    """Whether the experiment has a copy of its trainer. The files of a command are checked by each run."""
    return history.plan.trainer is not None and not is_command(history.plan.experiment.trainer)


def _trainer_file(history: History) -> str:
    facts = history.plan.trainer
    assert facts is not None, "the caller has checked it"
    if len(facts.files) == 1:
        return facts.files[0]
    if len(facts.files) > _NAMED:
        return f"one of {', '.join(facts.files[:_NAMED])} and other files"
    return f"one of {listed(facts.files)}"


def _planned_sha256(history: History) -> str:
    """Return the sha256 of the trainer's files that runs use."""
    if history.mended is not None:
        return history.mended.sha256
    assert history.plan.trainer is not None, "the caller has checked it"
    return history.plan.trainer.sha256


def _trainer_sha256(history: History) -> str:
    """Return the sha256 of the trainer's files as they are now; "" if one cannot be read."""
    facts = history.plan.trainer
    assert facts is not None, "the caller has checked it"
    try:
        return source_sha256(Path(facts.root), facts.files) if facts.files else facts.sha256
    except OSError:
        return ""


def _reward_codes(history: History) -> list[RewardCode]:
    """Return the copied code of rewards and environments, each once."""
    codes = (code for block in history.blocks for spec in block.runs for code in spec.reward_code if code.folder)
    return list({code.reference: code for code in codes}.values())


def _source_of(code: RewardCode, experiment_dir: Path) -> str:
    """Return the sha256 of the files of which `code` is a copy, as they are now; "" if one cannot be read."""
    copies = experiment_dir / code.folder
    copied_files = [path for path in copies.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    files = [path.relative_to(copies).as_posix() for path in copied_files]
    source_file = Path(code.reference.rpartition(":")[0])
    root = source_file.parents[len(Path(code.file).parts) - 1]
    try:
        return source_sha256(root, files)
    except OSError:
        return ""
