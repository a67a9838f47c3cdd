"""The directory of a joint experiment: one plan, and below it an experiment directory for every part.

plan.json           the comparisons over all parts and their rule: a plan of `esper-ab design`, with its own sha256
joint.json          the parts: names, folders, digests; the experiments that this one replicates
experiment.toml     the settings of all parts, if one file can have them
PART.toml           the settings from which a part is launched
PART/               the experiment directory of a part
tracking/           the trackers of all parts, if there are any
.lock               the process that runs the parts now
summary.txt, report.html, verdict.json     the answer
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.contracts.files_below import write_below
from esper_ab.contracts.records import Count, GroupName, Sha256
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.settings import Settings
from esper_ab.contracts.unreadable import UNREADABLE
from esper_ab.journal.lock import JOURNAL_NAME, holder
from esper_ab.plan.plan import EarlierExperiment

JOINT_NAME = "joint.json"
PLAN_NAME = "plan.json"


class JointPart(Settings, frozen=True, kw_only=True):
    """One part of a joint experiment."""

    name: str  # a task of the plan
    folder: GroupName  # of its experiment directory
    digest: Sha256  # of its plan without its name: it cannot be launched later with other settings or code


class Joint(Settings, frozen=True, kw_only=True):
    """The parts of a joint experiment, and the folder of kept runs that they use."""

    esper_ab_joint: Literal[1] = 1
    parts: tuple[JointPart, ...]
    scores: dict[str, tuple[float, float]]  # by part: worst and target outcome; {}: no profiles are shown
    references: str | UnsetType = UNSET  # absolute path; unset: there is none
    references_limit_bytes: Count | UnsetType = UNSET
    # If it replicates an experiment: that one, and those with which that one is pooled. Left out of others.
    pooled_with: tuple[EarlierExperiment, ...] | UnsetType = UNSET

    @property
    def earlier(self) -> tuple[EarlierExperiment, ...]:
        """The experiments with which this one is pooled; () unless it replicates one."""
        return () if isinstance(self.pooled_with, UnsetType) else self.pooled_with

    def digest(self, rule: str) -> str:
        """Return the digest of the whole plan; `rule`: that of plan.json."""
        return digest_over_all(rule, [(part.name, part.digest) for part in self.parts])


_decode = msgspec.json.Decoder(Joint).decode


def digest_over_all(rule: str, parts: Iterable[tuple[str, str]]) -> str:
    """Return the digest of a plan of several parts: the sha256 of its rule and of all settings of every part.

    `rule`: digest of the rule over all parts; `parts`: name and digest of each part, in the order of the plan.
    """
    import hashlib  # loads OpenSSL, which `status` does not need

    return hashlib.sha256(msgspec.json.encode([rule, list(parts)])).hexdigest()


def is_joint(directory: Path) -> bool:
    """True if `directory` belongs to a joint experiment."""
    return (directory / JOINT_NAME).is_file()


def is_experiment(directory: Path) -> bool:
    """True if `directory` belongs to an experiment or to a joint one."""
    return (directory / JOURNAL_NAME).exists() or is_joint(directory)


def write_joint(directory: Path, joint_experiment: Joint, settings: dict[str, str]) -> None:
    """Write the parts, after their plan; `settings`: text of NAME.toml by the part's folder, or "experiment".

    Raises UsageError.
    """
    for folder, text in settings.items():
        write_below(directory, f"{folder}.toml", text.encode())
    write_below(directory, JOINT_NAME, msgspec.json.format(msgspec.json.encode(joint_experiment), indent=1) + b"\n")


def read_joint(directory: Path) -> Joint:
    """Read the parts.

    Raises UsageError if `directory` is not a joint experiment, and JournalError if the file is damaged.
    """
    if not is_joint(directory):
        raise UsageError(f"{directory} is not a joint experiment: it has no {JOINT_NAME}")
    try:
        return _decode(read_regular(directory / JOINT_NAME))
    except UNREADABLE as error:
        raise JournalError(
            f"{directory / JOINT_NAME} is damaged: {error}; restore it from a copy, or report on each part by itself"
        ) from None


def folders_of(directory: Path) -> list[Path]:
    """Return the experiment directories of the parts."""
    return [directory / part.folder for part in read_joint(directory).parts]


def refuse_joint(directory: Path, command: str, *, by_task: bool = False) -> None:
    """Raise UsageError, with the names of the parts, if `directory` is a joint experiment.

    `command`: the command, which does not support joint experiments. `by_task`: whether the command accepts all parts,
    each given as TASK=EXPERIMENT.
    """
    if not is_joint(directory):
        return
    joint_experiment = read_joint(directory)
    parts_words = f"{directory} holds {len(joint_experiment.parts)} experiments with one answer"
    folders = [directory / part.folder for part in joint_experiment.parts]
    if by_task:
        named_parts = shlex.join(
            f"{part.name}={folder}" for part, folder in zip(joint_experiment.parts, folders, strict=True)
        )
        raise UsageError(f"{parts_words}; {command} takes them by name: {named_parts}")
    running_folders = {folder for folder in folders if folder.is_dir() and holder(folder) is not None}
    folder_words = ", ".join(f"{folder} (running)" if folder in running_folders else str(folder) for folder in folders)
    raise UsageError(f"{parts_words}; {command} takes one at a time: {folder_words}")
