"""Experiment + devices -> blocks of RunSpec. Pure: no clock, no device, no file."""

from __future__ import annotations

from esper_ab.config import Experiment
from esper_ab.contracts.messages import Lane, RunSpec
from esper_ab.contracts.settings import Settings


class Difference(Settings, frozen=True, kw_only=True):
    """One setting in which the groups differ, with each group's value as text."""

    key: str  # "reward.mode"
    values: dict[str, str]  # group -> value


class Block(Settings, frozen=True, kw_only=True):
    """The runs of one replicate: they train at the same time behind one barrier. The unit of inference."""

    index: int
    replicate: int
    runs: tuple[RunSpec, ...]  # in start order; ref.device names the lane


class Plan(Settings, frozen=True, kw_only=True):
    """Everything decided before the first run; hashed, journalled, shown by --dry-run."""

    experiment: Experiment
    digest: str  # sha256 over everything below and the experiment, less its name
    lanes: tuple[Lane, ...]
    idle_devices: tuple[str, ...]
    blocks: tuple[Block, ...]
    differences: tuple[Difference, ...]
    estimand: str  # one sentence
    notes: tuple[str, ...]  # what the user should know: several axes, time slicing, idle devices, too few replicates
