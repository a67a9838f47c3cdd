"""Worlds of faults: an experiment in processes of its own, run to its end with deaths planted by an rng seed.

When a coordinator dies, the next one resumes the experiment. Workers die, too: inside their own calls (planted_death),
or by a signal from outside once the journal has reached some size.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from esper_ab.analysis.result_hash import result_hash
from esper_ab.contracts.errors import UsageError
from esper_ab.control.crowding import crowding
from esper_ab.journal.events import (
    AnyEvent,
    EpisodeRecorded,
    ExperimentEnded,
    ExperimentStarted,
    Incident,
    MilestoneReleased,
    RunEvaluated,
    RunReady,
    WorkerStarted,
)
from esper_ab.journal.fold import fold
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.reading import read
from support.coordinators.planted_death import PLACES, Death, planted, struck
from support.plans import fake_plans
from support.processes import children

PLAN = fake_plans.plan(seeds=2, episodes=4)
LIVES = 3  # of the coordinator, at most: the last is left in peace
_MOMENTS = ("before", "middle", "after")
_SIGNALS = ("SIGKILL", "SIGKILL", "SIGKILL", "SIGSEGV", "SIGABRT")
# On an idle machine; a crowded one gets as many times longer.
_PATIENCE_S = 240.0  # for a life of a coordinator
_GONE_S = 5.0  # a worker at work ends within a second; one that is just being started needs longer
_POLL_S = 0.005
_FORBIDDEN = ("dropped_pair", "inexact_resume")  # these faults leave a replicate two attempts at every milestone


@dataclass(frozen=True, kw_only=True)
class Blow:
    """A signal from outside, sent to `victim` ("coordinator" or a worker) once the journal has `at_bytes` bytes."""

    at_bytes: int
    victim: str


@dataclass(frozen=True, kw_only=True)
class World:
    """The faults of one experiment."""

    rng_seed: int
    deaths: dict[str, Death]
    blows: tuple[Blow, ...]
    large: bool  # messages in pieces
    floor_s: float  # of silence before a worker is suspected


@dataclass(kw_only=True)
class Outcome:
    """The faults that happened, and the result; `problem` is empty if every invariant holds."""

    world: World
    planted: list[tuple[str, Death]] = field(default_factory=list)  # those that happened
    blows: list[Blow] = field(default_factory=list)  # likewise
    lives: int = 0
    problem: str = ""

    @property
    def faults(self) -> int:
        return len(self.planted) + len(self.blows)


def make_world(rng_seed: int) -> World:
    """Draw faults from an rng seed: never three deaths of a worker without a recorded milestone between them.

    If workers are stopped by SIGSTOP, the coordinator lives, because a stopped process cannot notice its death.
    """
    rng = random.Random(rng_seed)
    is_stopped = rng.random() < 0.1
    lives = () if is_stopped else range(1, LIVES)
    deaths = {f"coordinator/{life}": _of_coordinator(rng) for life in lives if rng.random() < 0.8}
    for worker in ("w00", "w01"):
        for incarnation in range(1, 5):
            if rng.random() < 0.6:
                deaths[f"{worker}/{incarnation}"] = _of_worker(rng, incarnation, is_stopped)
    victims = ("w00", "w01") if is_stopped else ("coordinator", "w00", "w01")
    blows = [Blow(at_bytes=rng.randrange(8_000, 40_000), victim=rng.choice(victims)) for _ in range(rng.randrange(3))]
    return World(
        rng_seed=rng_seed,
        deaths=deaths,
        blows=tuple(sorted(blows, key=lambda blow: blow.at_bytes)),
        large=rng.random() < 0.3,
        floor_s=5.0 if is_stopped else 60.0,
    )


def _of_coordinator(rng: random.Random) -> Death:
    place = rng.choice(("journal write", "journal write", "journal sync", "send"))
    return Death(place=place, n=rng.randint(1, 45), moment=_moment(rng, place), cause=rng.choice(_SIGNALS))


def _of_worker(rng: random.Random, incarnation: int, is_stopped: bool) -> Death:
    """Draw the death of a worker; every second incarnation dies after its first milestone."""
    place = rng.choice([place for place in PLACES if not place.startswith("journal")])
    calls = {"checkpoint sync": 2, "send": 8}.get(place, 1)  # for one milestone, at most
    least_calls = 1 if incarnation % 2 else calls + 1
    cause = "SIGSTOP" if is_stopped else rng.choice(_SIGNALS)
    return Death(
        place=place, n=rng.randint(least_calls, least_calls + 2 * calls), moment=_moment(rng, place), cause=cause
    )


def _moment(rng: random.Random, place: str) -> str:
    """Draw the moment of a death.

    Only a write has a middle; a message of several frames can be cut between two frames.
    """
    return rng.choice(_MOMENTS if place.endswith("write") else ("before", "after"))


def live(world: World, experiment_dir: Path, expected_hash: str) -> Outcome:
    """Run the world's experiment, one coordinator after another, and check the final journal."""
    outcome = Outcome(world=world)
    log = experiment_dir.parent / f"{experiment_dir.name}.deaths"
    with tempfile.TemporaryDirectory(prefix="f-", dir="/tmp") as tmp:  # short, because a socket's path has to be
        variables = planted(world.deaths, log) | {"TMPDIR": tmp, "OMP_NUM_THREADS": "1"}
        if world.large:
            variables["FAKE_FAULT"] = "large:a/0:2,large:b/1:3"
        blows = list(world.blows)
        try:
            for life in range(1, 2 + sum(name.startswith("coordinator") for name in world.deaths) + len(blows)):
                outcome.lives = life
                if _one_life(experiment_dir, variables, (blows, outcome)) in (0, UsageError.exit_code):
                    break  # refused: the life before was killed after its last record
            check(experiment_dir, expected_hash)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            outcome.problem = f"{type(error).__name__}: {error}"
        outcome.planted = struck(log)
    return outcome


def _one_life(experiment_dir: Path, variables: dict[str, str], progress: tuple[list[Blow], Outcome]) -> int | None:
    """Run one coordinator and return its exit status; check that all processes of its session end soon after."""
    blows, outcome = progress
    _begin(experiment_dir)
    life = outcome.lives
    command = [
        sys.executable,
        "-m",
        "support.coordinators.faulty_experiment",
        experiment_dir,
        str(life),
        str(outcome.world.floor_s),
    ]
    with (experiment_dir.parent / f"{experiment_dir.name}.stderr").open("ab") as errors:
        process = subprocess.Popen(
            command, env=children.environment(**variables), stderr=errors, start_new_session=True
        )
    try:
        begin_s = time.monotonic()
        patience_s = _PATIENCE_S
        while process.poll() is None:
            patience_s = max(patience_s, _PATIENCE_S * crowding())
            assert time.monotonic() < begin_s + patience_s, f"life {life} did not end within {patience_s:.0f} s"
            if blows and _size(experiment_dir) >= blows[0].at_bytes:
                outcome.blows += [blow for blow in [blows.pop(0)] if _strike(blow, process.pid, experiment_dir)]
            time.sleep(_POLL_S)
        end_s = time.monotonic()
        while (survivors := alive_in_session(process.pid)) and time.monotonic() < end_s + _GONE_S * crowding():
            time.sleep(_POLL_S)
        assert not survivors, f"life {life} left {survivors}"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return process.returncode


def _begin(experiment_dir: Path) -> None:
    """Make the directory; if it has a journal without a complete line, empty the directory first."""
    journal = experiment_dir / JOURNAL_NAME
    if journal.exists() and b"\n" not in journal.read_bytes():
        shutil.rmtree(experiment_dir)
    experiment_dir.mkdir(parents=True, exist_ok=True)


def _size(experiment_dir: Path) -> int:
    try:
        return (experiment_dir / JOURNAL_NAME).stat().st_size
    except FileNotFoundError:
        return 0


def _strike(blow: Blow, coordinator: int, experiment_dir: Path) -> bool:
    """Kill the victim of a blow; return False if it is not alive any more."""
    starts = [event for event in read(experiment_dir / JOURNAL_NAME) if isinstance(event, WorkerStarted)]
    pids = {"coordinator": coordinator} | {event.worker: event.pid for event in starts}
    if str(pids.get(blow.victim)) not in {survivor.partition(":")[0] for survivor in alive_in_session(coordinator)}:
        return False
    try:
        os.kill(pids[blow.victim], signal.SIGKILL)
    except ProcessLookupError:  # it has ended since
        return False
    return True


def alive_in_session(session: int) -> list[str]:
    """Return the living processes of a session: pid and command line."""
    processes = []
    for process in psutil.process_iter(["status", "cmdline"]):
        with suppress(ProcessLookupError):
            if os.getsid(process.pid) == session and process.info["status"] != psutil.STATUS_ZOMBIE:
                processes.append(f"{process.pid}: {process.info['cmdline']}")
    return processes


def peaceful(floor_s: float = 60.0) -> World:
    """Return a world without faults, the reference for the others."""
    return World(rng_seed=-1, deaths={}, blows=(), large=False, floor_s=floor_s)


def description(outcome: Outcome) -> str:
    """Describe the outcome for an assertion message."""
    deaths = ", ".join(
        f"{victim} {death.cause} {death.moment} {death.place} {death.n}" for victim, death in outcome.planted
    )
    blows = ", ".join(f"{blow.victim} at {blow.at_bytes} bytes" for blow in outcome.blows)
    return f"world {outcome.world.rng_seed}: {deaths}; {blows}; {outcome.problem or 'as it must be'}"


# --- what must hold of an experiment directory after any faults: everything once, nothing lost, nothing left behind ---


def check(experiment_dir: Path, expected_hash: str) -> list[AnyEvent]:
    """Check that nothing was lost, duplicated or left behind; return the journal."""
    events = list(read(experiment_dir / JOURNAL_NAME))
    assert events[-1] == ExperimentEnded(status="finished", detail="")
    check_records(events)
    entries = [event for event in events if isinstance(event, Incident) and event.category in _FORBIDDEN]
    assert not entries, entries
    assert result_hash(fold(events)) == expected_hash
    check_files(experiment_dir, events)
    return events


def check_records(events: Sequence[AnyEvent]) -> None:
    """Check that every planned milestone of every run is recorded once, in order, before it is released."""
    assert isinstance(events[0], ExperimentStarted)
    last_milestones: dict[str, int] = {}
    count = Counter[tuple[str, int]]()
    specs = {spec.ref.name: spec for block in events[0].plan.blocks for spec in block.runs}
    for event in events:
        match event:
            case RunReady():
                assert event.milestone <= max(0, last_milestones.setdefault(event.run.name, 0))
            case EpisodeRecorded() | RunEvaluated():
                name = event.record.run.name
                reached_milestone = (
                    event.record.episode + 1 if isinstance(event, EpisodeRecorded) else specs[name].episodes + 1
                )
                count[name, reached_milestone] += 1
                assert last_milestones[name] == reached_milestone - 1, (
                    f"milestone {reached_milestone} of {name} after milestone {last_milestones[name]}"
                )
                last_milestones[name] = reached_milestone
            case MilestoneReleased():
                for name in event.runs:
                    assert last_milestones[name] >= event.milestone, (
                        f"milestone {event.milestone} of {name} was released unrecorded"
                    )
    expected_records = {(name, milestone) for name, spec in specs.items() for milestone in range(1, spec.episodes + 2)}
    assert set(count) == expected_records, f"lost: {sorted(expected_records - set(count))}"
    assert set(count.values()) == {1}, "recorded twice"


def check_files(experiment_dir: Path, events: Sequence[AnyEvent]) -> None:
    """Check that every run's last checkpoint matches its record, and that there is no half-written file."""
    for run in fold(events).runs.values():
        for checkpoint in run.checkpoints[-1:]:
            data = (experiment_dir / checkpoint.file).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (checkpoint.size_bytes, checkpoint.sha256)
    names = [path.name for path in experiment_dir.rglob(".*") if path.is_file()]
    unfinished_files = [name for name in names if name not in (".lock", ".gitignore")]
    assert not unfinished_files, unfinished_files
