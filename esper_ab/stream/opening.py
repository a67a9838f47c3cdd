"""Make a stream: seal the question and the incumbent, and measure the incumbent."""

from __future__ import annotations

import secrets
from contextlib import closing, suppress
from pathlib import Path

from esper_ab.contracts.errors import UsageError, WorkerFailed, WorkerHung, refused
from esper_ab.contracts.files_below import make_folder
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.unversioned import GITIGNORE, leave_unversioned
from esper_ab.gate.asked import spelled_as_file
from esper_ab.journal.begun import begun
from esper_ab.journal.lock import Lock
from esper_ab.plan.settings_toml import versions
from esper_ab.stream.asked import check_settings, lone_campaign
from esper_ab.stream.entries import IncumbentMeasured, Opened, Setup
from esper_ab.stream.ledger import LEDGER, Ledger, refuse_lost_ledger
from esper_ab.stream.outcomes import directory_of, lone_outcomes
from esper_ab.stream.progress import StreamProgress, fold
from esper_ab.stream.question import StreamQuestion
from esper_ab.stream.running import planned, run_to, start
from esper_ab.stream.states import check_declared, digests, seal_setup

_SEEDS = 2**31  # rng seeds are below this
_OURS = frozenset({".lock", "code", "experiments", GITIGNORE, LEDGER})


def open_stream(folder: Path, question: StreamQuestion) -> Ledger:
    """Make a stream in a new or empty folder, and measure its incumbent.

    Raises UsageError if the folder has files or experiments, and for problems of the question or the incumbent's code.
    """
    check_settings(question)
    _make(folder)
    with closing(Lock(folder)):
        ledger = Ledger(folder)
        if ledger.entries:
            status = shell_command("stream", "status", folder)
            raise UsageError(f"{folder}: there is a stream already; `{status}` shows it")
        with spelled_as_file():
            setup = Setup()
            if question.code:
                setup = seal_setup(folder, question.code, Path(question.folder), {})
            unchanged = digests(folder, setup, question.unchanged, Path(question.folder))
            check_declared(question.unchanged, unchanged)
            opened = Opened(question=question, incumbent=setup, unchanged=unchanged, versions=versions())
            plan = planned(lone_campaign(folder, question, setup, "incumbent-0", secrets.randbelow(_SEEDS)))
        ledger.append(opened)
        if question.incumbent_seeds:
            start(plan)
            measure(ledger, fold(ledger.entries))
        return ledger


def measure(ledger: Ledger, progress: StreamProgress) -> None:
    """Train a new incumbent alone on fresh seeds, unless that is done, and go on with it after an interruption."""
    incumbent = progress.incumbent
    question = progress.question
    if incumbent.alone or not question.incumbent_seeds:
        return
    name = f"incumbent-{incumbent.number}"
    with suppress(WorkerFailed, WorkerHung):  # its value is then that of the runs that did not fail
        if begun(directory_of(ledger.folder, name)):
            run_to(ledger.folder, question, name, question.incumbent_seeds)
        else:
            with spelled_as_file():
                rng_seed = fresh_rng_seed(progress)
                plan = planned(lone_campaign(ledger.folder, question, incumbent.setup, name, rng_seed))
            start(plan)
    rng_seed, outcomes = lone_outcomes(ledger.folder, name)
    ledger.append(IncumbentMeasured(incumbent=incumbent.number, experiment=name, rng_seed=rng_seed, outcomes=outcomes))


def fresh_rng_seed(progress: StreamProgress) -> int:
    """Draw the root of random numbers that no run of the stream had, and no candidate could know."""
    while (rng_seed := secrets.randbelow(_SEEDS)) in progress.rng_seeds:
        pass
    return rng_seed


def _make(folder: Path) -> None:
    """Create the folder; UsageError if it exists and has files that no interrupted command left."""
    try:
        if folder.is_dir():
            if {path.name for path in folder.iterdir()} - _OURS:
                raise UsageError(f"{folder}: the folder is not empty; name a new one")
            if not Ledger(folder).entries:
                refuse_lost_ledger(folder)
        make_folder(folder)
        leave_unversioned(folder)
    except OSError as error:
        raise refused(error, f"{folder} cannot be created: {error.strerror}") from None
