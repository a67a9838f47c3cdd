"""The journal events and warnings about workers and runs; the machine decides on the consequences."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.contracts.errors import Interrupted, OutOfTime, WorkerHung
from esper_ab.contracts.messages import Hello, Ready
from esper_ab.contracts.wording import times
from esper_ab.contracts.worker_order import RunSpec, WorkerOrder
from esper_ab.control.rules.confounders import confounders
from esper_ab.control.rules.failures import Alike, Failure
from esper_ab.control.rules.liveness import Laggard, Sign
from esper_ab.control.rules.runs import NOWHERE, episode_at, event_of, stage
from esper_ab.control.rules.validation import Report
from esper_ab.control.rules.worker_state import WorkerState
from esper_ab.journal.events import AnyEvent, Incident, WorkerStarted
from esper_ab.journal.fold import History, RunHistory

LAST_WORDS_LINES = 100  # of a log; enough for the stacks of a few threads, innermost frame first
_LINE_CHARS = 300  # longest line of a worker's log in the list of incidents


def worker_started(hello: Hello, order: WorkerOrder) -> WorkerStarted:
    return WorkerStarted(
        worker=hello.worker,
        incarnation=hello.incarnation,
        device=order.lane.name,
        pid=hello.pid,
        uuids=hello.uuids,
        torch_version=hello.torch_version,
        sources=hello.sources,
        host=hello.host,
        node=order.node,
        titles=hello.titles,
        driver=hello.driver,
    )


def moved(hello: Hello, worker: WorkerState, history: History) -> Incident | None:
    """Return an incident if a lane now uses other devices of the same kind, as after a requeue; else None."""
    place_before = history.present.get(worker.lane)
    place_now = _place(worker.order.node, hello.host, hello.uuids)
    if (
        place_before is None
        or not place_before.host
        or (place_words := _place(place_before.node, place_before.host, place_before.uuids)) == place_now
    ):
        return None
    name = worker.run.ref.name if worker.run else ""
    return Incident(
        category="moved",
        run_name=name,
        detail=f"{worker.lane} has moved from {place_words} to {place_now}, of the same kind",
    )


def _place(node: str, host: str, uuids: tuple[str, ...]) -> str:
    return " ".join([node or host, *filter(None, uuids)])


def other_code(hello: Hello, lane: str, history: History) -> str:
    """Return a warning if a worker imported code other than that with which the experiment began; else ""."""
    sources = (history.continued[-1] if history.continued else history.started).code.get("sources", "")
    if not hello.sources or not sources or hello.sources == sources:
        return ""
    return (
        f"worker {hello.worker}/{hello.incarnation} on {lane} imported other code (sources {hello.sources}) than that "
        f"with which the experiment began ({sources}): the verdict is BLOCKED unless the same code makes all records"
    )


def reported(report: Report, run: RunHistory) -> Iterator[AnyEvent]:
    """Yield the event for a report, then incidents for possible confounders in it."""
    yield event_of(report)
    if isinstance(report, Ready):
        yield from (
            Incident(category="damaged_checkpoint", run_name=report.run.name, detail=damage)
            for damage in report.damaged
        )
    else:
        yield from confounders(report.record, run.confounders)


def inexact(run: RunHistory, milestone: int, difference_words: str) -> Incident:
    """Return an incident: a milestone was reached again with a different result. The first record stays."""
    episode = episode_at(run.spec, milestone)
    detail = f"{stage(run.spec, milestone)} was {difference_words} a different result"
    return Incident(category="inexact_resume", run_name=run.ref.name, episode=episode, detail=detail)


def stop_begins(stop_source: str) -> Incident:
    return Incident(
        category="interrupted",
        detail=f"{stop_source}: stopping after the current barrier; another Ctrl-C stops at once",
    )


def stop_waits(worker: WorkerState, run: RunHistory, reached_milestone: int, silence: Laggard | None) -> str:
    """Say which worker a stop waits for. This is a warning and not an incident, because it affects no result."""
    place = whereabouts(worker, run, reached_milestone, silence.last if silence else None)
    if silence:
        silence_words = f"silent for {silence.silent_s:.0f} s, killed after {silence.limit_s:.0f} s; "
    else:
        silence_words = ""
    return f"stopping; waiting for {worker.title}, {place}: {silence_words}Ctrl-C stops at once"


def stopped(stop_source: str) -> Interrupted:
    return Interrupted(
        f"stopped by {stop_source} after the current barrier; all records so far are kept", in_order=True
    )


def out_of_time() -> OutOfTime:
    """Return the error of an experiment that a time limit ended before its last run."""
    return OutOfTime("stopped by the time limit; all records so far are kept", in_order=True)


def ended_together(stop_source: str, worker: WorkerState, place: str) -> Interrupted:
    return Interrupted(
        f"stopped by {stop_source}, which also ended {worker.title}, {place}; all records so far are kept"
    )


def died(run: RunHistory, deaths: int) -> str:
    """Say how often a run died, and after which record."""
    if run.recorded > NOWHERE:
        place = f"after {stage(run.spec, run.recorded)}"
    else:
        place = "before the end of its warm-up"
    return f"{run.ref.name} died {times(deaths)} {place}"


def death(worker: WorkerState, run: RunHistory | None, line: str, log: str, *, hung: bool) -> Incident:
    """Return the incident of a worker's end. `line`: which worker ended, how and where; `log`: the end of its log."""
    name, episode = (run.ref.name, episode_at(run.spec, run.recorded + 1)) if run else ("", None)
    return Incident(
        category="hung_worker" if hung else "worker_death",
        run_name=name,
        episode=episode,
        detail=line,
        last_words=tuple(text[:_LINE_CHARS] for text in log.splitlines()[-LAST_WORDS_LINES:]),
    )


def program_failed(worker: WorkerState, run: RunHistory, failure: Failure, same_failures: Alike) -> Incident:
    """Return the incident of a failure of the user's program; an exit repeated in the same way has no log."""
    hung = failure.kind is WorkerHung
    if same_failures.times == 1 and not same_failures.others:
        return death(worker, run, failure.line, failure.log, hung=hung)
    earlier_run = "before" if same_failures.times > 1 else same_failures.others[0].name
    line = f"{worker.title} failed in the same way as {earlier_run}: {failure.cause.text}"
    return death(worker, run, line, failure.log if hung else "", hung=hung)


def restart(worker: WorkerState, run: RunHistory | None) -> Incident:
    name, recorded_milestone = (run.ref.name, run.recorded) if run else ("", 0)
    if run and recorded_milestone > 0:
        begin_words = f"continue {name} after {stage(run.spec, recorded_milestone)}"
    else:
        begin_words = f"begin {name} again"
    run_words = f" to {begin_words}" if run else ""
    return Incident(category="restart", run_name=name, detail=f"{worker.title} was started{run_words}")


def start_delayed(worker: WorkerState, lack: str, limit_s: float) -> Incident:
    run = worker.run.ref.name if worker.run else ""
    return Incident(
        category="start_delayed",
        run_name=run,
        detail=f"{worker.title} cannot be started: {lack}; retrying for up to {limit_s:.0f} s",
    )


def run_given_up(spec: RunSpec, reason: str, *, has_failed: bool) -> Incident:
    """Return an incident: the run gets no outcome. `has_failed`: this run caused its replicate to be given up."""
    return Incident(category="dropped_pair" if has_failed else "cancelled", run_name=spec.ref.name, detail=reason)


def whereabouts(worker: WorkerState, run: RunHistory | None, reached_milestone: int, sign: Sign | None) -> str:
    """Say what a worker was doing when it ended, or is doing while a stop waits for it.

    `reached_milestone`: the milestone it last reported; `sign`: its last sign of life, None if it owed none.
    """
    if run is None or not worker.greeted:
        if worker.greeted:
            return "between runs"
        return "before it was ready for a run"
    if sign is None:
        return f"while run {run.ref.name} waited at the barrier after {stage(run.spec, reached_milestone)}"
    return (
        f"in {stage(run.spec, reached_milestone + 1)} of run {run.ref.name} (last sign: {sign.phase}, step {sign.step})"
    )
