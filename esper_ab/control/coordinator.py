"""The one loop of an experiment: starts workers, hands out runs, records what they report, releases, stops.

What happens where: `hub` hears, `intake` believes or not, the journal keeps, `barrier` decides who may go on,
`liveness` who is late, `recovery` what a death means, `fleet` starts and ends workers. An event is on disk before
anybody is told to go on from it. Whether the history begins here or another coordinator made it does not matter.
"""

from __future__ import annotations

import math
import signal
import time

from esper_ab.contracts.errors import Interrupted, WorkerFailed, WorkerHung
from esper_ab.contracts.messages import Cancel, EpisodeFinished, Evaluated, Failed, Hello, Progress, Ready
from esper_ab.contracts.messages import Release as ReleaseMessage
from esper_ab.contracts.visible import visible_line
from esper_ab.control import barrier, pooling, referee
from esper_ab.control.fleet import Fleet, Seat, ending
from esper_ab.control.hub import BadMessage, Hub, Incoming, Readable, Received
from esper_ab.control.intake import Rejected, Report, check_hello, point_of
from esper_ab.control.liveness import ASSIGNED, START_UP, Laggard, Limits, Liveness, Sign
from esper_ab.control.recorder import Recorder
from esper_ab.control.recovery import Deaths, any_complete, nothing_left
from esper_ab.control.runs import NOWHERE, Run, barrier_again, begun, given_up, in_progress, run_of
from esper_ab.control.scribe import Death, Scribe
from esper_ab.control.signals import Signals
from esper_ab.control.turns import barrier_of
from esper_ab.journal.events import PlanExtended, PointReleased
from esper_ab.plan.blocks import Block, Plan

IN_ORDER = "after the barrier in progress"  # of an Interrupted
_POLL_S = 0.5
_SUMMARY_CHARS = 1000  # of an error that a worker reports
_LAST_WORDS_S = 0.5  # a worker that has ended may have said why; the message can come after the end
_SAY_S = 10.0  # a stop that takes longer says whom it waits for, and again every
_SAY_AGAIN_S = 60.0
_STACKS_S = 1.0  # for a hung worker to write its stacks


class Coordinator:
    """One experiment in progress."""

    def __init__(self, plan: Plan, recorder: Recorder, hub: Hub, fleet: Fleet, limits: Limits) -> None:
        self._plan, self._recorder, self._hub, self._fleet = plan, recorder, hub, fleet
        self._liveness = Liveness(limits, time.monotonic())
        self._scribe = Scribe(recorder, fleet)
        self._limits = limits
        self._deaths = Deaths(limits.deaths)
        self._to_start = [block for block in recorder.history.blocks if not begun(recorder.history, block)]
        self._blocks: dict[int, barrier.State] = {}  # in progress, by block
        self._runs: dict[str, Run] = {}  # every run assigned so far
        self._due: list[tuple[int, barrier.Release]] = []
        self._held: set[str] = set()  # runs whose release is held back because the experiment is to stop
        self._stopped_by = ""  # the signal; empty while nobody wants to stop
        self._say_at = math.inf  # monotonic, s: when to say whom the stop waits for

    def work(self, signals: Signals) -> None:
        """Return when every run is done or given up.

        Interrupted after Ctrl-C; WorkerFailed and WorkerHung when workers die in a way that no new start mends.
        """
        self._hub.watch(signals.descriptor)
        for seat in self._fleet:
            self._note_start(seat, again=False)
        self._take_over()
        while self._blocks or (self._to_start and not self._stopped_by):
            for incoming in self._hub.poll(_POLL_S):
                self._take(incoming, signals)
            self._check_workers(time.monotonic())
            for seat in self._fleet.try_again(time.monotonic(), self._limits.start_up_s):
                self._note_start(seat, again=True)
            self._release_due()
            self._start_blocks()
            self._recorder.flush()
            self._say_whom_it_waits_for(time.monotonic())
            if self._stopped_by and not self._anybody_works():
                break
        if self._stopped_by:
            raise Interrupted(f"stopped by {self._stopped_by} {IN_ORDER}; what was recorded is kept")
        if nothing_left(self._recorder.history):
            raise WorkerFailed("every replicate was given up: there is nothing to compare")

    def _take_over(self) -> None:
        """Put everything where an earlier coordinator left it; nothing to do for a new experiment."""
        history = self._recorder.history
        for block in history.blocks:
            kept = in_progress(history, block)
            if kept:
                state, due = barrier_again(block, kept, self._plan)
                self._blocks[block.index] = state
                self._keep(block.index, due)
            elif given_up(history, block):
                self._give_up(block, "the rest of a replicate that was being given up")
            for run in map(run_of, kept):
                self._runs[run.name] = run
                if not run.complete:
                    self._fleet.on_lane(run.spec.ref.device).run = run.spec
        if not self._blocks or referee.look_due(history):
            self._look()

    # --- what comes in ---

    def _take(self, incoming: Incoming, signals: Signals) -> None:
        match incoming:
            case Received(identity, message):
                seat = self._fleet.of(identity)
                if seat is not None and not seat.fault:
                    self._hear(seat, message)
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
                    summary = visible_line(message.summary, _SUMMARY_CHARS)
                    seat.fault, seat.told = f"reported an error: {summary}", message.traceback
        except Rejected as error:
            seat.fault = str(error)

    def _greet(self, seat: Seat, hello: Hello) -> None:
        check_hello(hello, seat.order)
        if seat.greeted:
            return
        seat.greeted = True
        self._liveness.rest(seat.identity, time.monotonic())
        self._scribe.greeting(hello, seat.order.lane.name)
        if seat.run is not None and not self._stopped_by:
            self._assign(seat, self._runs[seat.run.ref.run])

    def _note_progress(self, seat: Seat, progress: Progress) -> None:
        if seat.run is None or progress.run != seat.run.ref or self._liveness.last(seat.identity) is None:
            return  # overtaken by the run's own report
        sign = Sign(phase=progress.phase, run=progress.run.run, point=progress.point, step=progress.step)
        self._liveness.sign(seat.identity, sign, time.monotonic())
        self._recorder.show(progress)

    def _take_report(self, seat: Seat, report: Report) -> None:
        name = report.run.run
        run = self._runs.get(name)
        if run is None or run.spec.ref.device != seat.order.lane.name:
            raise Rejected(f"reports about {name}, which it was not assigned")
        if self._recorder.history.runs[name].lost:
            return  # sent before it was cancelled
        pooling.check_width(self._recorder.history, report)
        heard = run.arrive(report)
        if heard == "repeat":
            self._take_repeat(seat, run, report)
            return
        self._deaths.got_on(seat.order.lane.name)
        if heard == "again" and not isinstance(report, Ready):
            self._scribe.compare(run, run.stands, report, "done again after a restart and had")
        else:
            self._scribe.report(report)
        self._liveness.rest(seat.identity, time.monotonic())
        if isinstance(report, Ready) and self._blocks[run.spec.block].places[name].dead:
            arrived = self._blocks[run.spec.block].places[name].arrived
            self._step(run.spec.block, barrier.Rejoined(name, min(arrived, run.stands)))
        self._step(run.spec.block, barrier.Arrived(name, run.stands))

    def _take_repeat(self, seat: Seat, run: Run, report: Report) -> None:
        """Nothing new; a worker that has missed its release gets it again. One that is due comes in this round."""
        point = point_of(report, run.spec)
        self._scribe.compare(run, point, report, "reported again with")
        state = self._blocks.get(run.spec.block)
        unsent = self._held.union(*(release.runs for _, release in self._due))
        if run.name not in unsent and (state is None or state.places[run.name].released >= point):
            self._hub.send(seat.identity, self._release(run, point))

    def _take_bad(self, bad: BadMessage) -> None:
        seat = self._fleet.of(bad.identity) if bad.known else None
        if bad.known and seat is None:
            return  # an earlier incarnation
        if bad.new:
            self._scribe.bad_message(seat, f"{bad.identity!r}: {bad.reason}")
        if seat is not None and bad.cut_off:
            seat.fault = f"keeps sending what is no message ({bad.reason})"

    def _interrupt(self, number: signal.Signals) -> None:
        """Any signal stops in order; Ctrl-C after that stops at once. SIGTERM may arrive twice for one request."""
        if self._stopped_by and number == signal.SIGINT:
            raise Interrupted("stopped at once by a second Ctrl-C; what was recorded before is kept")
        if self._stopped_by:
            return
        self._stopped_by = "Ctrl-C" if number == signal.SIGINT else number.name
        self._say_at = time.monotonic() + _SAY_S
        self._scribe.interruption(self._stopped_by)

    # --- what follows from it ---

    def _step(self, block: int, event: barrier.Event) -> None:
        self._blocks[block], commands = barrier.step(self._blocks[block], event)
        self._keep(block, commands)

    def _keep(self, block: int, commands: tuple[barrier.Command, ...]) -> None:
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
            moments = pooling.to_release(self._recorder.history, block, release.point, self._blocks[block].places)
            self._recorder.record(
                PointReleased(block=block, point=release.point, runs=release.runs, observations=moments)
            )
        self._recorder.commit()
        for _, release in released:
            for name in release.runs:
                self._send_on(self._runs[name], release.point)
        done = {block for block, _ in released if self._blocks[block].done}
        for block in done:
            del self._blocks[block]
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

    def _release(self, run: Run, point: int) -> ReleaseMessage:
        """What a worker is told that goes on from a point whose release is journalled."""
        shared = self._recorder.history.shared.get((run.spec.block, point)) if run.spec.share_observation_norm else None
        return ReleaseMessage(run=run.name, point=point, observations=shared)

    def _send_on(self, run: Run, point: int) -> None:
        """A worker that is gone meanwhile gets the release again when another stands there."""
        seat = self._fleet.on_lane(run.spec.ref.device)
        self._hub.send(seat.identity, self._release(run, point))
        if point > run.spec.episodes:
            if seat.run == run.spec:
                seat.run = None
        elif run.stands == point:
            self._liveness.sign(seat.identity, Sign(phase="released", run=run.name, point=point + 1), time.monotonic())

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
            seat.run = spec
            self._runs[spec.ref.run] = Run(spec)
            self._assign(seat, self._runs[spec.ref.run])

    def _assign(self, seat: Seat, run: Run) -> None:
        """To begin with the run, or to take it up where its records end."""
        self._scribe.start(seat, run.spec)
        checkpoints = self._recorder.history.runs[run.name].checkpoints
        run.stands = NOWHERE
        self._hub.send(seat.identity, run.order(checkpoints))
        self._liveness.sign(seat.identity, Sign(phase=ASSIGNED, run=run.name), time.monotonic())

    def _anybody_works(self) -> bool:
        return bool(self._at_work())

    def _at_work(self) -> list[str]:
        """Runs that a stop waits for."""
        return [run for state in self._blocks.values() for run in barrier.working(state) if run not in self._held]

    def _say_whom_it_waits_for(self, now: float) -> None:
        if now < self._say_at:
            return
        self._say_at = now + _SAY_AGAIN_S
        for name in self._at_work():
            seat = self._fleet.on_lane(self._runs[name].spec.ref.device)
            self._scribe.waiting(seat, self._runs[name], self._liveness.silence(seat.identity, now))

    # --- what goes wrong ---

    def _check_workers(self, now: float) -> None:
        for seat in self._fleet:
            if seat.fault:
                self._lose(seat, seat.fault)
            elif seat.ended_at is not None and now - seat.ended_at >= _LAST_WORDS_S:
                self._lose(seat, ending(seat.worker.exitcode))
        late = self._liveness.late(now)
        if late:
            self._lose_hung(late)

    def _lose_hung(self, late: tuple[Laggard, ...]) -> None:
        """Have the silent workers write where they are stuck, then end them."""
        seats = [(seat, laggard) for seat in self._fleet for laggard in late if laggard.worker == seat.identity]
        for seat, _ in seats:
            seat.worker.dump_stacks()
        for seat, laggard in seats:
            what = f"gave no sign of life for {laggard.silent_s:.0f} s (limit {laggard.limit_s:.0f} s)"
            self._lose(seat, what, "hung_worker")

    def _lose(self, seat: Seat, what: str, category: Death = "worker_death") -> None:
        """A worker is gone or beyond hope: its run goes on with another, unless recovery says that this is no use."""
        self._fleet.end(seat, _STACKS_S if category == "hung_worker" else _LAST_WORDS_S)  # its log is complete now
        run = self._runs[seat.run.ref.run] if seat.run else None
        account = self._scribe.death(seat, run, what, category, self._liveness.last(seat.identity))
        self._liveness.forget(seat.identity)
        error = WorkerHung if category == "hung_worker" else WorkerFailed
        if run is None or not seat.greeted:
            if self._deaths.outside(seat.order.lane.name):
                raise error(f"{account}\nthat was the third time in a row")
        elif run.complete:
            seat.run = None
        else:
            self._step(run.spec.block, barrier.Died(run.name))
            if self._deaths.in_run(run.name, run.recorded):
                self._drop(run, what, error(account))
        self._restart(seat)

    def _restart(self, seat: Seat) -> None:
        """Another worker on the same lane; it is handed the seat's run when it has greeted."""
        self._fleet.restart(seat)
        if seat.run:
            self._runs[seat.run.ref.run].stands = NOWHERE
        self._note_start(seat, again=True)

    def _note_start(self, seat: Seat, *, again: bool) -> None:
        """A worker that was started owes a sign of life; that a start is delayed is on record."""
        if seat.delay is not None:
            self._scribe.delay(seat, self._limits.start_up_s)
            return
        self._liveness.sign(seat.identity, Sign(phase=START_UP), time.monotonic())
        if again:
            self._scribe.restart(seat, self._runs[seat.run.ref.run] if seat.run else None)

    def _drop(self, run: Run, what: str, error: WorkerFailed | WorkerHung) -> None:
        """Give up the replicate of a run that keeps dying at one point; `error` when it is not the first such one."""
        times = "once" if self._limits.deaths == 1 else f"{self._limits.deaths} times"
        where = f"after point {run.recorded}" if run.recorded > NOWHERE else "before point 0"
        why = f"{run.name} died {times} {where}: {what}"
        block = next(block for block in self._recorder.history.blocks if block.index == run.spec.block)
        self._give_up(block, why, failed=run.name)
        self._recorder.commit()
        if self._deaths.gave_up(what) and not any_complete(self._recorder.history):
            raise type(error)(f"{error}\nno replicate was complete before several were given up for the same reason")
        if nothing_left(self._recorder.history):
            raise type(error)(f"{error}\nevery replicate was given up: there is nothing to compare")
        if not self._stopped_by:
            self._look()

    def _give_up(self, block: Block, why: str, failed: str = "") -> None:
        """The block's runs that have no endpoint get none; their workers are free again. `failed`: the run to blame."""
        self._blocks.pop(block.index, None)
        self._due = [(index, release) for index, release in self._due if index != block.index]
        for spec in sorted(block.runs, key=lambda spec: spec.ref.run != failed):  # the one to blame is on record first
            if not self._recorder.history.runs[spec.ref.run].expected:
                continue
            reason = self._scribe.given_up(spec, why, failed=spec.ref.run == failed)
            seat = self._fleet.on_lane(spec.ref.device)
            if seat.run != spec:
                continue
            seat.run = None
            if seat.greeted:
                self._hub.send(seat.identity, Cancel(run=spec.ref.run, reason=reason))
                self._liveness.forget(seat.identity)
