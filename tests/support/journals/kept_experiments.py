"""Finished synthetic experiments whose runs are kept in a folder."""

import hashlib
from pathlib import Path

from msgspec.structs import replace

from esper_ab.journal.events import KeptGroup, ReferencesOpened, RunEvaluated
from esper_ab.journal.file import Journal
from esper_ab.kept_runs.eligible import eligible_groups
from esper_ab.plan.estimate import Estimate
from support.journals.synthetic import Shape, Synthetic
from support.plans import requests

POLICY = b"the weights"
MACHINE = requests.machine(2)
COST = Estimate(duration_s=110.0, start_up_s=10.0, step_s=1.0, memory_bytes=1, basis="a test")


def synthetic(*, groups=("a", "b"), replicates=6, **settings) -> Synthetic:
    """Return a small experiment; groups of one name are equal in all of them."""
    modes = {"a": "shaped", "b": "minimal", "c": "sparse"}
    shapes = {name: Shape(mode=modes[name], stream=name) for name in groups}
    return Synthetic(groups=shapes, replicates=replicates, episodes=2, eval_episodes=4, **settings)


def groups_of(experiment: Synthetic, **changes) -> dict[str, KeptGroup]:
    groups, refused = eligible_groups(experiment.plan(), MACHINE, None, ())
    assert not refused
    return {name: replace(group, **changes) for name, group in groups.items()}


def finished_experiment(folder: Path, references: Path, experiment: Synthetic, *, extra=(), **changes) -> Path:
    """Write the directory of a finished experiment; `changes` are those of its groups, `extra` further events."""
    first_event, *events = experiment.events()
    opened = ReferencesOpened(
        folder=str(references),
        limit_bytes=10**9,
        opened_at="2026-11-23T00:00:00+00:00",
        groups=groups_of(experiment, **changes),
    )
    folder.mkdir()
    journal = Journal(folder)
    for event in (first_event, opened, *extra, *events):
        written_event = event
        if isinstance(event, RunEvaluated):
            sha256 = hashlib.sha256(POLICY).hexdigest()
            written_event = RunEvaluated(record=replace(event.record, policy_sha256=sha256))
            policy = folder / event.record.policy_file
            policy.parent.mkdir(parents=True, exist_ok=True)
            policy.write_bytes(POLICY)
        journal.append(written_event)
    journal.close()
    return folder
