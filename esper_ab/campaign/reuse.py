"""Runs that are kept for later experiments: offered to a plan before it starts, and kept when it has ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click
from msgspec import UnsetType

from esper_ab.campaign.campaign import PartPlan
from esper_ab.contracts.errors import EsperError, SettingName, refused
from esper_ab.contracts.files_below import write_below
from esper_ab.contracts.shell_command import typeable
from esper_ab.readers.joint_directory import Joint
from esper_ab.settings.references import References


def with_offers(part: PartPlan, references: References | None, unsealed: Sequence[Path]) -> PartPlan:
    """Return the part with the kept runs that may stand for some of its own, if there is a folder of kept runs.

    `unsealed`: folders and files that are no part of the user's code.
    """
    if references is None:
        return part
    from esper_ab.kept_runs.offers import find_offers  # most experiments have no such folder

    offers = find_offers(part.plan, part.machine, part.cost, part.code, references, unsealed)
    return replace(part, offers=offers)


def references_of(joint_experiment: Joint) -> References | None:
    """Return the folder of kept runs that the parts of a joint experiment use; None if there is none."""
    folder = joint_experiment.references
    limit_bytes = joint_experiment.references_limit_bytes
    if isinstance(folder, UnsetType) or isinstance(limit_bytes, UnsetType):
        return None
    return References(folder=Path(folder), limit_bytes=limit_bytes)


def place_policies(part: PartPlan) -> None:
    """Write the policies of runs that may be reused into the directory of a part, and create the folder of kept runs.

    Raises UsageError, or DiskFull, if the folder cannot be created, and OSError.
    """
    if part.offers is None:
        return
    from esper_ab.kept_runs.folder import make_folder_of_runs  # most experiments have no such folder

    folder = Path(part.offers.opened.folder)
    try:
        make_folder_of_runs(folder)
    except OSError as error:
        problem = f": this folder cannot be created: {error.strerror}; name another"
        raise refused(error, SettingName("references", str(folder)), problem) from None
    for file, policy in part.offers.policies.items():
        write_below(part.folder, file, policy)


@contextmanager
def kept_afterwards(experiment_dir: Path, *, is_asked: bool) -> Iterator[None]:
    """Keep the finished runs of an experiment when the body of this context ends, also if it fails.

    If they cannot be kept, say so on stderr; the experiment is unaffected.
    """
    try:
        yield
    finally:
        if is_asked:
            from esper_ab.kept_runs.keeping import keep_runs  # most experiments have no such folder

            try:
                keep_runs(experiment_dir)
            except (OSError, EsperError) as error:
                click.echo(typeable(f"runs were not kept for later experiments: {error}"), err=True)
