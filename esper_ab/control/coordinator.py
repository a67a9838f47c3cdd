"""The one loop of an experiment: starts workers, hands out runs, records what they report, releases, stops.

What happens where: `hub` hears, `intake` believes or not, the journal keeps, `barrier` decides who may go on,
`liveness` who is late, `fleet` starts and ends workers. An event is on disk before anybody is told to go on from it.
"""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field
from typing import Literal

from esper_ab.contracts.messages import Assign, EpisodeFinished, Evaluated, Failed, Hello, Progress, Ready, RunSpec
from esper_ab.contracts.messages import Release as ReleaseMessage
from esper_ab.control import barrier, referee
from esper_ab.control.findings import findings
from esper_ab.control.fleet import LOG_LINES, STACK_LINES, Fleet, Seat, ending
from esper_ab.control.hub import BadMessage, Hub, Incoming, Readable, Received
from esper_ab.control.intake import Rejected, Report, check_hello, digest_of, point_of
from esper_ab.control.liveness import ASSIGNED, START_UP, Laggard, Limits, Liveness, Sign
from esper_ab.control.recorder import Recorder
from esper_ab.control.signals import Signals
from esper_ab.control.turns import barrier_of
from esper_ab.errors import Interrupted, WorkerFailed, WorkerHung
from esper_ab.journal.events import (
    EpisodeRecorded,
    Ledger,
    PlanExtended,
    PointReleased,
    RunEvaluated,
    RunReady,
    RunStarted,
    WorkerStarted,
)
from esper_ab.journal.fold import History
from esper_ab.plan import Block, Plan

_POLL_S = 0.5
_LAST_WORDS_S = 0.5  # a worker that has ended may have said why; the message can come after the end
_STACKS_S = 1.0  # for a hung worker to write its stacks


@dataclass
class _Run:
    """One assigned run: whose it is, and the digest of what it reported at each point."""

    spec: RunSpec
    identity: str
    reported: dict[int, str] = field(default_factory=dict)


class Coordinator:
    """One experiment in progress."""

    def __init__(self, plan: Plan, recorder: Recorder, hub: Hub, fleet: Fleet, limits: Limits) -> None:
        self._plan, self._recorder, self._hub, self._fleet = plan, recorder, hub, fleet
        self._liveness = Liveness(limits, time.monotonic())
        self._to_start = [block for block in recorder.history.blocks if not _begun(recorder.history, block)]
        self._blocks: dict[int, barrier.State] = {}  # in progress, by block
        self._runs: dict[str, _Run] = {}  # every run assigned so far
        self._due: list[tuple[int, barrier.Release]] = []
        self._held: set[str] = set()  # runs whose release is held back because the experiment is to stop
        self._stopped_by = ""  # the signal; empty while nobody wants to stop

    def work(self, signals: Signals) -> None:
        """Return when every run is done; Interrupted after Ctrl-C, WorkerFailed and WorkerHung as their names say."""
        self._hub.watch(signals.descriptor)
        for seat in self._fleet:
            self._liveness.sign(seat.identity, Sign(phase=START_UP), time.monotonic())
        while self._blocks or (self._to_start and not self._stopped_by):
            for incoming in self._hub.poll(_POLL_S):
                self._take(incoming, signals)
            self._check_workers(time.monotonic())
            self._release_due()
            self._start_blocks()
            if self._stopped_by and not self._anybody_works():
                break
        if self._stopped_by:
            raise Interrupted(f"stopped by {self._stopped_by} after the barrier in progress; what was recorded is kept")

    # --- what comes in ---

    def _take(self, incoming: Incoming, signals: Signals) -> None:
        match incoming:
            case Received(identity, message):
                self._hear(self._fleet.of(identity), message)
            case BadMessage():
                self._take_bad(incoming)
            case Readable(descriptor) if descriptor == signals.descriptor:
                for number in signals.read():
                    self._interrupt(number)
            case Readable(descriptor):
                self._fleet.note_end(descriptor, time.monotonic())

    def _hear(self, seat: Seat, message: object) -> None:
        try:
            match message:
                case Hello():
                    self._greet(seat, message)
                case Progress():
                    self._note_progress(seat, message)
                case Ready() | EpisodeFinished() | Evaluated():
                    self._take_report(seat, message)
                case Failed():
                    seat.worker.join(_LAST_WORDS_S)  # its log is complete when it has ended
                    raise self._failed(seat, f"reported an error: {message.summary}", message.traceback)
        except Rejected as error:
            raise self._failed(seat, str(error)) from None

    def _greet(self, seat: Seat, hello: Hello) -> None:
        check_hello(hello, seat.order)
        if seat.greeted:
            return
        seat.greeted = True
        self._liveness.rest(seat.identity, time.monotonic())
        self._recorder.record(
            WorkerStarted(
                worker=hello.worker,
                incarnation=hello.incarnation,
                lane=seat.order.lane.name,
                pid=hello.pid,
                uuids=hello.uuids,
                torch_version=hello.torch_version,
            )
        )

    def _note_progress(self, seat: Seat, progress: Progress) -> None:
        if seat.run is None or progress.run != seat.run.ref or self._liveness.last(seat.identity) is None:
            return  # overtaken by the run's own report
        sign = Sign(phase=progress.phase, run=progress.run.run, point=progress.point, step=progress.step)
        self._liveness.sign(seat.identity, sign, time.monotonic())
        self._recorder.show(progress)

    def _take_report(self, seat: Seat, report: Report) -> None:
        run = self._runs.get(report.run.run)
        if run is None or run.identity != seat.identity:
            raise Rejected(f"reports about {report.run.run}, which it was not assigned")
        point, digest = point_of(report, run.spec), digest_of(report)
        if point in run.reported:
            self._take_repeat(seat, run, point, digest)
            return
        if point != len(run.reported):
            raise Rejected(f"reports point {point} of {run.spec.ref.run}, but its next one is {len(run.reported)}")
        run.reported[point] = digest
        self._recorder.record(_event_of(report))
        if not isinstance(report, Ready):
            so_far = self._recorder.history.runs[run.spec.ref.run].curve()
            for entry in findings(report.record, so_far):
                self._recorder.record(entry)
        self._liveness.rest(seat.identity, time.monotonic())
        self._step(run.spec.block, barrier.Arrived(run.spec.ref.run, point))

    def _take_repeat(self, seat: Seat, run: _Run, point: int, digest: str) -> None:
        """Nothing new; a worker that has missed its release gets it again."""
        name = run.spec.ref.run
        if digest != run.reported[point]:
            what = f"point {point} was reported again with another result"
            episode = _episode(run.spec, point)
            self._recorder.record(Ledger(category="inexact_resume", run=name, episode=episode, detail=what))
        state = self._blocks.get(run.spec.block)
        if name not in self._held and (state is None or state.places[name].released >= point):
            self._hub.send(seat.identity, ReleaseMessage(run=name, point=point))

    def _take_bad(self, bad: BadMessage) -> None:
        run = self._fleet.of(bad.identity).run if bad.known else None
        name = run.ref.run if run else ""
        detail = f"{bad.identity!r}: {bad.reason}"
        self._recorder.record(Ledger(category="bad_message", run=name, episode=None, detail=detail))
        if bad.known and bad.cut_off:
            raise self._failed(self._fleet.of(bad.identity), f"keeps sending what is no message ({bad.reason})")

    def _interrupt(self, number: signal.Signals) -> None:
        """Any signal stops in order; Ctrl-C after that stops at once. SIGTERM may arrive twice for one request."""
        if self._stopped_by and number == signal.SIGINT:
            raise Interrupted("stopped at once by a second Ctrl-C; what was recorded before is kept")
        if self._stopped_by:
            return
        self._stopped_by = "Ctrl-C" if number == signal.SIGINT else number.name
        detail = f"{self._stopped_by}: the barrier in progress is finished first; Ctrl-C now stops at once"
        self._recorder.record(Ledger(category="interrupted", run="", episode=None, detail=detail))

    # --- what follows from it ---

    def _step(self, block: int, event: barrier.Event) -> None:
        self._blocks[block], commands = barrier.step(self._blocks[block], event)
        self._due.extend((block, command) for command in commands if isinstance(command, barrier.Release))

    def _release_due(self) -> None:
        """Make everything recorded durable, then tell those who may go on: one sync for all blocks of this round."""
        due, self._due = self._due, []
        if not due:
            return
        released = []
        for block, release in due:
            if self._to_be_held(self._blocks[block], release):
                self._held.update(release.runs)
                continue
            released.append((block, release))
            self._recorder.record(PointReleased(block=block, point=release.point, runs=release.runs))
        self._recorder.commit()
        for _, release in released:
            for name in release.runs:
                self._send_on(self._runs[name], release.point)
        going_on = {block: state for block, state in self._blocks.items() if not state.done}
        done, self._blocks = len(self._blocks) > len(going_on), going_on
        if done and not self._stopped_by:
            self._look()

    def _look(self) -> None:
        """Some block is complete: record what the plan's rule says now."""
        for event in referee.due(self._recorder.history):
            self._recorder.record(event)
            if isinstance(event, PlanExtended):
                self._to_start.extend(event.extension.blocks)
        self._recorder.commit()

    def _to_be_held(self, state: barrier.State, release: barrier.Release) -> bool:
        return self._stopped_by != "" and release.point < state.last and barrier.opens(state, release)

    def _send_on(self, run: _Run, point: int) -> None:
        name = run.spec.ref.run
        self._hub.send(run.identity, ReleaseMessage(run=name, point=point))
        if point > run.spec.episodes:
            self._fleet.of(run.identity).run = None
        else:
            self._liveness.sign(run.identity, Sign(phase="released", run=name, point=point + 1), time.monotonic())

    def _start_blocks(self) -> None:
        """Start every block whose lanes are all free, in order."""
        if self._stopped_by:
            return
        history = self._recorder.history
        for planned in tuple(self._to_start):
            if not referee.may_start(history, planned):
                break
            block = referee.remaining(history, planned)
            seats = [self._fleet.on_lane(spec.ref.device) for spec in block.runs]
            if all(seat.greeted and seat.run is None for seat in seats):
                self._to_start.remove(planned)
                if block.runs:
                    self._start(block, seats)

    def _start(self, block: Block, seats: list[Seat]) -> None:
        self._blocks[block.index] = barrier_of(block, self._plan)
        for spec, seat in zip(block.runs, seats, strict=True):
            name = spec.ref.run
            self._runs[name] = _Run(spec, seat.identity)
            seat.run = spec
            self._recorder.record(
                RunStarted(
                    run=spec.ref, block=block.index, worker=seat.order.worker, incarnation=seat.order.incarnation
                )
            )
            self._hub.send(seat.identity, Assign(spec=spec))
            self._liveness.sign(seat.identity, Sign(phase=ASSIGNED, run=name), time.monotonic())

    def _anybody_works(self) -> bool:
        return any(set(barrier.working(state)) - self._held for state in self._blocks.values())

    # --- what goes wrong ---

    def _check_workers(self, now: float) -> None:
        for seat in self._fleet:
            if seat.ended_at is not None and now - seat.ended_at >= _LAST_WORDS_S:
                raise self._failed(seat, ending(seat.worker.exitcode))
        late = self._liveness.late(now)
        if late:
            raise self._hung(late)

    def _failed(self, seat: Seat, what: str, told: str = "") -> WorkerFailed:
        """`told`: what the worker said about it, for want of a log."""
        account, log = self._account(seat, what, "worker_death"), self._fleet.log_end(seat, LOG_LINES)
        return WorkerFailed("\n".join(part for part in (account, log or told) if part))

    def _hung(self, late: tuple[Laggard, ...]) -> WorkerHung:
        """Have the silent workers write where they are stuck, then end them and say so."""
        seats = [self._fleet.of(laggard.worker) for laggard in late]
        for seat in seats:
            seat.worker.dump_stacks()
        seats[0].worker.join(_STACKS_S)
        accounts = []
        for seat, laggard in zip(seats, late, strict=True):
            seat.worker.kill()
            what = f"gave no sign of life for {laggard.silent_s:.0f} s (limit {laggard.limit_s:.0f} s)"
            accounts += [self._account(seat, what, "hung_worker"), self._fleet.log_end(seat, STACK_LINES)]
        return WorkerHung("\n".join(accounts))

    def _account(self, seat: Seat, what: str, category: Literal["worker_death", "hung_worker"]) -> str:
        """One line: who, what, where in which run. It goes into the ledger, too."""
        line = f"{seat.title} {what}, {self._whereabouts(seat)}"
        run, episode = "", None
        if seat.run is not None:
            run = seat.run.ref.run
            episode = _episode(seat.run, len(self._runs[run].reported))
        self._recorder.record(Ledger(category=category, run=run, episode=episode, detail=line))
        return line

    def _whereabouts(self, seat: Seat) -> str:
        if seat.run is None:
            return "between runs" if seat.greeted else "before it was ready for a run"
        point = len(self._runs[seat.run.ref.run].reported)
        sign = self._liveness.last(seat.identity)
        if sign is None:
            return f"while run {seat.run.ref.run} waited at the barrier of point {point - 1}"
        episode = _episode(seat.run, point)
        stage = f"episode {episode}" if episode is not None else "evaluation" if point else "warm-up"
        return f"in {stage} of run {seat.run.ref.run} (last sign: {sign.phase}, step {sign.step})"


def _episode(spec: RunSpec, point: int) -> int | None:
    """The training episode whose record is the arrival at `point`, if one is."""
    return point - 1 if 1 <= point <= spec.episodes else None


def _begun(history: History, block: Block) -> bool:
    return any(history.runs[spec.ref.run].started for spec in block.runs)


def _event_of(report: Report) -> RunReady | EpisodeRecorded | RunEvaluated:
    match report:
        case Ready():
            return RunReady(run=report.run, warm_up_s=report.warm_up_s, point=report.point)
        case EpisodeFinished():
            return EpisodeRecorded(record=report.record, checkpoint=report.checkpoint)
        case Evaluated():
            return RunEvaluated(record=report.record)
