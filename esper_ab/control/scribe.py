"""What is written down of each thing that happens in an experiment; decides nothing."""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

from esper_ab.contracts.messages import Hello, Ready, RunSpec
from esper_ab.control.findings import findings, kind_of
from esper_ab.control.fleet import LOG_LINES, STACK_LINES, Fleet, Seat
from esper_ab.control.intake import Report, digest_of
from esper_ab.control.liveness import Laggard, Sign
from esper_ab.control.recorder import Recorder
from esper_ab.control.runs import Run, episode_at, event_of, whereabouts
from esper_ab.journal.events import Ledger, RunStarted, WorkerStarted

_LINE_CHARS = 300  # of a line of a worker's log that the ledger keeps

Death = Literal["worker_death", "hung_worker"]


class Scribe:
    """Journals through the recorder, and warns the audience of what should be seen at once."""

    def __init__(self, recorder: Recorder, fleet: Fleet) -> None:
        self._recorder, self._fleet = recorder, fleet
        self._known: defaultdict[str, set[str]] = defaultdict(set)  # by run: what the ledger says of its episodes
        for entry in recorder.history.ledger:
            self._known[entry.run].add(kind_of(entry))

    def greeting(self, hello: Hello, lane: str) -> None:
        self._recorder.record(
            WorkerStarted(
                worker=hello.worker,
                incarnation=hello.incarnation,
                lane=lane,
                pid=hello.pid,
                uuids=hello.uuids,
                torch_version=hello.torch_version,
                sources=hello.sources,
            )
        )
        history = self._recorder.history
        here = (history.continued[-1] if history.continued else history.started).code.get("sources", "")
        if hello.sources and here and hello.sources != here:
            self._recorder.warn(
                f"worker {hello.worker}/{hello.incarnation} on {lane} imported another state of the code (sources "
                f"{hello.sources}) than this began with ({here}): what it records will have the verdict BLOCKED"
            )

    def start(self, seat: Seat, spec: RunSpec) -> None:
        """A run begins; that it goes on with another worker is no beginning."""
        if not self._recorder.history.runs[spec.ref.run].started:
            worker, incarnation = seat.order.worker, seat.order.incarnation
            self._recorder.record(
                RunStarted(run=spec.ref, block=spec.block, worker=worker, incarnation=incarnation)
            )

    def report(self, report: Report) -> None:
        """A report, and what in it could confound the comparison."""
        name = report.run.run
        self._recorder.record(event_of(report))
        if isinstance(report, Ready):
            for what in report.damaged:
                self._recorder.record(Ledger(category="damaged_checkpoint", run=name, episode=None, detail=what))
            return
        for entry in findings(report.record, self._known[name]):
            self._recorder.record(entry)
            self._known[name].add(kind_of(entry))

    def compare(self, run: Run, point: int, report: Report, how: str) -> None:
        """What was recorded of a point stays; that it cannot be had again is an entry in the ledger.

        A Ready says where a run stands and nothing of the record there, however often it is sent.
        """
        if not isinstance(report, Ready) and digest_of(report) != run.reported[point]:
            detail = f"point {point} was {how} another result"
            episode = episode_at(run.spec, point)
            self._recorder.record(Ledger(category="inexact_resume", run=run.name, episode=episode, detail=detail))

    def bad_message(self, seat: Seat | None, detail: str) -> None:
        run = seat.run.ref.run if seat and seat.run else ""
        self._recorder.record(Ledger(category="bad_message", run=run, episode=None, detail=detail))

    def interruption(self, by: str) -> None:
        detail = f"{by}: the barrier in progress is finished first; Ctrl-C now stops at once"
        self._recorder.record(Ledger(category="interrupted", run="", episode=None, detail=detail))

    def waiting(self, seat: Seat, run: Run, silence: Laggard | None) -> None:
        """Whom a stop waits for, for the user: not an entry, as it explains no result."""
        where = whereabouts(run, seat.greeted, silence.last if silence else None)
        until = f"silent for {silence.silent_s:.0f} s, ended after {silence.limit_s:.0f} s; " if silence else ""
        self._recorder.warn(f"the stop waits for {seat.title}, {where}: {until}Ctrl-C ends it at once")

    def death(self, seat: Seat, run: Run | None, what: str, category: Death, sign: Sign | None) -> str:
        """Who, what, where in which run, for the ledger; with the end of the worker's log, for the user: returned."""
        line = f"{seat.title} {what}, {whereabouts(run, seat.greeted, sign)}"
        name, episode = (run.name, episode_at(run.spec, run.recorded + 1)) if run else ("", None)
        log = self._fleet.log_end(seat, STACK_LINES if category == "hung_worker" else LOG_LINES) or seat.told
        last_words = tuple(text[:_LINE_CHARS] for text in log.splitlines()[-STACK_LINES:])
        self._recorder.record(
            Ledger(category=category, run=name, episode=episode, detail=line, last_words=last_words)
        )
        account = f"{line}\n{log}" if log else line
        self._recorder.warn(account)
        return account

    def restart(self, seat: Seat, run: Run | None) -> None:
        goes_on = f" to take up {run.name} from point {max(0, run.recorded)}" if run else ""
        detail = f"{seat.title} was started{goes_on}"
        self._recorder.record(Ledger(category="restart", run=run.name if run else "", episode=None, detail=detail))

    def delay(self, seat: Seat, limit_s: float) -> None:
        """A worker cannot be started now."""
        assert seat.delay is not None, "its start is delayed"
        detail = f"{seat.title} cannot be started: {seat.delay.lack}; it is tried again for up to {limit_s:.0f} s"
        run = seat.run.ref.run if seat.run else ""
        self._recorder.record(Ledger(category="start_delayed", run=run, episode=None, detail=detail))

    def given_up(self, spec: RunSpec, why: str, *, failed: bool) -> str:
        """Why the run gets no endpoint, in words. `failed`: it is this run that could not be completed."""
        detail = f"replicate {spec.ref.replicate} was given up: {why}"
        category: Literal["dropped_pair", "cancelled"] = "dropped_pair" if failed else "cancelled"
        self._recorder.record(Ledger(category=category, run=spec.ref.run, episode=None, detail=detail))
        return detail
