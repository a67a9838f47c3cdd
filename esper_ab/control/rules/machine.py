"""The experiment as a state machine: each method takes one event and returns the commands that follow from it.

It opens no socket or file, starts no thread and reads no clock: `now` (monotonic, seconds) is an argument. Its state is
`history`, the fold of the journal, to which it adds each event that it asks to be recorded. A machine built from the
history of an earlier machine therefore continues where that machine stopped. In addition to the history it keeps only
the state that no journal can hold: the current workers' activities and the signs of life that they owe.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from esper_ab.contracts import messages, worker_order
from esper_ab.contracts.errors import EsperError, Interrupted, WorkerFailed
from esper_ab.control.rules import commands, incidents, looks, reuse, runs
from esper_ab.control.rules.blocks import BlocksInProgress
from esper_ab.control.rules.commands import Command
from esper_ab.control.rules.deaths import Deaths, any_expected, nothing_left
from esper_ab.control.rules.giving_up import NOTHING_LEFT, Dropped, GivingUp
from esper_ab.control.rules.limits import Limits
from esper_ab.control.rules.liveness import ASSIGNED, START_UP, Laggard, Liveness, Sign
from esper_ab.control.rules.losses import Loss, Losses
from esper_ab.control.rules.outbox import Outbox
from esper_ab.control.rules.validation import Rejected, Report, check_hello, milestone_of
from esper_ab.control.rules.waiting import WaitingBlocks
from esper_ab.control.rules.worker_state import Workers, WorkerState
from esper_ab.journal.events import Incident, MilestoneReleased, PlanExtended, RunStarted
from esper_ab.journal.fold import History, RunHistory

CTRL_C = "Ctrl-C"
LAST_WORDS_S = 0.5  # grace after a worker's end: its last message, which may say why, can arrive later
_SAY_AGAIN_S = 60.0


class ExperimentMachine:
    """One experiment in progress. The coordinator performs all commands of one call before it makes the next call."""

    def __init__(self, history: History, limits: Limits, now_s: float) -> None:
        """`history`: that of a new experiment, or of one that another machine began. This machine adds events to it."""
        self._history = history
        self._limits = limits
        self._liveness = Liveness(limits, now_s)
        self._deaths = Deaths(limits.deaths)
        self._workers = Workers()
        self._blocks = BlocksInProgress()
        self._stopped_by = ""  # the signal that asked for a stop; "" if none did
        self._is_closed = False  # whether a time limit keeps further blocks from starting
        self._say_at = math.inf  # when to name the workers that the stop waits for
        self._out = Outbox(history)
        self._waiting = WaitingBlocks(history)
        self._giving_up = GivingUp(history, self._out, self._blocks, self._workers, self._liveness, self._deaths)
        self._losses = Losses(history, self._out, self._blocks, self._liveness, self._deaths, self._giving_up)

    # --- where the experiment is ---

    @property
    def in_progress(self) -> bool:
        """True while blocks are in progress or, before a time limit, waiting; after a stop, while runs are at work."""
        if self._stopped_by:
            return bool(self._blocks.at_work() or self._blocks.anything_due)
        if self._is_closed:
            return bool(self._blocks)
        return bool(self._blocks or self._waiting or self._giving_up.any_aside)

    def error_at_end(self) -> EsperError | None:
        """Return why the experiment is incomplete although nothing is in progress; None if it is complete."""
        if self._stopped_by and any_expected(self._history):
            return incidents.stopped(self._stopped_by)
        if self._is_closed and any_expected(self._history):
            return incidents.out_of_time()
        if nothing_left(self._history):
            return WorkerFailed(NOTHING_LEFT)
        return None

    # --- what happens ---

    def waits_for_its_turn(self, order: worker_order.WorkerOrder) -> None:
        """Note that a worker is queued to start. It owes no sign of life until it is started."""
        self._workers.ordered(order, tried=False)

    def launched(self, order: worker_order.WorkerOrder, now_s: float) -> tuple[Command, ...]:
        """Note that a worker was started: the lane's first one, a restarted one, or one whose start was delayed."""
        worker = self._workers.ordered(order, tried=True)
        self._liveness.sign(worker.identity, Sign(phase=START_UP), now_s)
        if worker.again:
            self._out.record(incidents.restart(worker, self._run_of(worker)))
        return self._out.taken()

    def start_delayed(self, order: worker_order.WorkerOrder, lack: str) -> tuple[Command, ...]:
        """Note that a worker could not be started for lack of a resource.

        It owes no sign of life until it is started.
        """
        worker = self._workers.ordered(order, tried=True)
        self._out.record(incidents.start_delayed(worker, lack, self._limits.start_up_s))
        return self._out.taken()

    def take_over(self) -> tuple[Command, ...]:
        """Continue where the history ends, once every lane has its worker."""
        history = self._history
        busy_lanes = set[str]()
        for block in history.blocks:
            if runs.begun(history, block):
                self._out.record_all(reuse.events_due(history, block))
            kept_runs = runs.in_progress(history, block)
            lanes = {run.ref.device for run in kept_runs if run.reused is None}
            if lanes & busy_lanes:
                self._waiting.put_back(block)  # it was set aside, and its lanes were used again
                continue
            busy_lanes |= lanes
            if kept_runs:
                self._blocks.restore(block, kept_runs, history.plan)
            elif runs.given_up(history, block):
                self._giving_up.give_up(block, "the earlier coordinator had begun to give it up")
            for run in kept_runs:
                if run.evaluation is None:
                    self._workers.on_lane(run.ref.device).run = run.spec
        if not self._blocks or looks.look_due(history):
            self._look()
        return self._out.taken()

    def heard(self, identity: str, message: messages.WorkerMessage, now_s: float) -> tuple[Command, ...]:
        """Handle a worker's message. Messages from earlier incarnations and from workers to be ended are ignored."""
        worker = self._workers.of(identity)
        if worker is None or worker.fault or worker.ending:
            return ()
        try:
            match message:
                case messages.Hello():
                    self._greet(worker, message, now_s)
                case messages.Progress():
                    self._note_progress(worker, message, now_s)
                case messages.Ready() | messages.EpisodeFinished() | messages.Evaluated():
                    self._take_report(worker, message, now_s)
                case messages.Pong():
                    self._liveness.pong(worker.identity, now_s)
                case messages.Failed():
                    worker.failed(message)
        except Rejected as error:
            worker.reject(str(error))
        return self._out.taken()

    def heard_garbage(
        self, identity: str, reason: str, *, from_worker: bool, new: bool, cut_off: bool
    ) -> tuple[Command, ...]:
        """Handle an invalid message.

        `from_worker`: the sender is a worker. `new`: the message is worth an incident. `cut_off`: the sender is now
        ignored.
        """
        worker = self._workers.of(identity)
        if from_worker and worker is None:
            return ()
        if new:
            name = ""
            if worker is not None and worker.run is not None:
                name = worker.run.ref.name
            self._out.record(Incident(category="bad_message", run_name=name, detail=f"{identity!r}: {reason}"))
        if worker and cut_off:
            worker.reject(f"keeps sending invalid messages ({reason})")
        return self._out.taken()

    def exited(self, lane: str, now_s: float) -> None:
        """Note that a lane's worker ended by itself. Its last message may still arrive."""
        self._workers.on_lane(lane).exited_at = now_s

    def stop_requested(self, stop_source: str, now_s: float) -> tuple[Command, ...]:
        """Handle a signal. The first one stops after the current barrier.

        Ctrl-C after the first signal stops at once. A repeated SIGTERM is ignored.
        """
        if not self._stopped_by:
            self._stopped_by = stop_source
            self._say_at = now_s + self._limits.say_s
            self._out.record(incidents.stop_begins(stop_source))
        elif stop_source == CTRL_C:
            self._out.do(commands.Fail(Interrupted("stopped at once by a second Ctrl-C; all records so far are kept")))
        return self._out.taken()

    def close(self) -> None:
        """Start no further blocks, because a time limit has passed; those in progress go on to their end."""
        self._is_closed = True

    def check_ended(self, now_s: float) -> tuple[Command, ...]:
        """End the workers that are at fault, and report those that ended by themselves a moment ago."""
        for worker in self._workers:
            if worker.fault is not None:
                self._end(worker, worker.fault.text, hung=False)
            elif worker.exited_at is not None and now_s - worker.exited_at >= LAST_WORDS_S:
                self._end(worker, "", hung=False)
        return self._out.taken()

    def check_silent(self, now_s: float, crowding: float = 1.0) -> tuple[Command, ...]:
        """Request the stacks of workers that exceeded their limit, then end these workers; ping idle workers."""
        silent_workers: list[tuple[WorkerState, Laggard]] = []
        for laggard in self._liveness.late(now_s, crowding):
            worker = self._workers.of(laggard.worker)
            if worker is not None and not worker.ending:
                silent_workers.append((worker, laggard))
        for worker, _ in silent_workers:
            self._out.do(commands.DumpStacks(worker.lane))
        for worker, laggard in silent_workers:
            silence = f"{laggard.silent_s:.0f} s (limit {laggard.limit_s:.0f} s)"
            self._end(worker, f"gave no sign of life for {silence}", hung=True)
        for identity in self._liveness.ping(now_s):
            self._out.do(commands.Send(identity, messages.Ping()))
        return self._out.taken()

    def _end(self, worker: WorkerState, reason: str, *, hung: bool) -> None:
        if worker.ending:
            return
        worker.ending = True
        run_log = worker.run.log_file if worker.run else ""
        self._out.do(commands.EndWorker(worker.lane, reason=reason, hung=hung, run_log=run_log))

    def lost(self, lane: str, end_words: str, log: str, *, hung: bool, blameless: bool = False) -> tuple[Command, ...]:
        """Handle the end of a worker: restart it, or give up its replicate.

        `end_words`: the way in which the worker ended. `log`: the end of its log, "" for none. `blameless`: the node, a
        failed start or a full disk ended the worker, so its end does not count as a death of the run.
        """
        worker = self._workers.on_lane(lane)
        run = self._run_of(worker)
        reached_milestone = self._blocks.stands(run) if run else runs.NOWHERE
        place = incidents.whereabouts(worker, run, reached_milestone, self._liveness.last(worker.identity))
        if worker.cancelled and worker.fault is not None and self._liveness.is_just_assigned(worker.identity):
            blameless = True  # the run that it was told to leave failed, not the one that it was then given
            place = "after its run was cancelled"
        if self._stopped_by and self._limits.ended_together:  # the scheduler kills workers, too: no failure of a run
            self._out.do(commands.Fail(incidents.ended_together(self._stopped_by, worker, place)))
            return self._out.taken()
        outcome = self._losses.judge(
            Loss(worker=worker, run=run, how=end_words, where=place, log=log, hung=hung, blameless=blameless)
        )
        error = self._drop([outcome]) if isinstance(outcome, Dropped) else outcome
        self._out.do(commands.RestartWorker(lane) if error is None else commands.Fail(error))
        return self._out.taken()

    def _drop(self, dropped_replicates: Sequence[Dropped]) -> EsperError | None:
        """Give up replicates, then take the look that may be due; return an error if this ends the experiment."""
        error: EsperError | None = None
        for replicate in dropped_replicates:
            error = self._giving_up.drop(replicate) or error
        if dropped_replicates and error is None and not self._stopped_by:
            self._look()
        return error

    def end_round(self, now_s: float) -> tuple[Command, ...]:
        """Release the runs that may continue, and start the blocks whose lanes are free.

        Call this after all messages of a round are handled.
        """
        self._release_due(now_s)
        if not (self._stopped_by or self._is_closed):
            due_drops = self._giving_up.due(nothing_else=not (self._blocks or self._waiting))
            error = self._drop(due_drops)
            if error is not None:
                self._out.do(commands.Fail(error))
            self._start_blocks(now_s)
            while self._blocks.anything_due:  # blocks in which every run is reused
                self._release_due(now_s)
                self._start_blocks(now_s)
        self._out.do(commands.Flush())
        self._warn_of_slow_runs(now_s)
        return self._out.taken()

    # --- reports ---

    def _greet(self, worker: WorkerState, hello: messages.Hello, now_s: float) -> None:
        check_hello(hello, worker.order)
        if worker.greeted and worker.run is not None and self._liveness.is_just_assigned(worker.identity):
            run = self._history.runs[worker.run.ref.name]
            self._out.send(worker, runs.assignment(run, self._history.mended))  # lost with a connection
        if worker.greeted:
            return
        worker.greeted = True
        self._liveness.rest(worker.identity, now_s)
        if move_incident := incidents.moved(hello, worker, self._history):
            self._out.record(move_incident)
        self._out.record(incidents.worker_started(hello, worker.order))
        if warning := incidents.other_code(hello, worker.lane, self._history):
            self._out.do(commands.Warn(warning))
        if worker.run is not None and not self._stopped_by:
            self._assign(worker, worker.run, now_s)

    def _note_progress(self, worker: WorkerState, progress: messages.Progress, now_s: float) -> None:
        if worker.run is None or progress.run != worker.run.ref or self._liveness.last(worker.identity) is None:
            return  # outdated: the run's own report came first
        sign = Sign(phase=progress.phase, run_name=progress.run.name, step=progress.step)
        self._liveness.sign(worker.identity, sign, now_s)
        self._out.do(commands.Show(progress))

    def _take_report(self, worker: WorkerState, report: Report, now_s: float) -> None:
        run = self._history.runs.get(report.run.name)
        if run is None or not run.started or run.ref.device != worker.lane:
            raise Rejected(f"reports about {report.run.name}, which it was not assigned")
        if run.lost or self._blocks.is_set_aside(run):
            return  # sent before the run was given up, or its replicate set aside
        milestone = milestone_of(report, run.spec, self._history.design.measures)
        arrival = self._blocks.arrival(run, milestone, report)
        if arrival == "repeat":
            return self._take_repeat(worker, run, milestone, report)
        self._deaths.reset_lane(worker.lane)
        if arrival == "new" or isinstance(report, messages.Ready):
            for event in incidents.reported(report, run):
                self._out.record(event)
        elif not runs.same_record(run, milestone, report):
            self._out.record(incidents.inexact(run, milestone, "done again after a restart and had"))
        self._liveness.rest(worker.identity, now_s)
        self._blocks.arrived(run, milestone)

    def _take_repeat(self, worker: WorkerState, run: RunHistory, milestone: int, report: Report) -> None:
        """Handle a report that was received before: resend the release that the worker missed.

        If the release is due, it is sent at the end of this round.
        """
        if not runs.same_record(run, milestone, report):
            self._out.record(incidents.inexact(run, milestone, "reported again with"))
        if self._blocks.may_pass(run, milestone):
            self._out.send(worker, messages.Release(run_name=run.ref.name, milestone=milestone))

    # --- releases and looks ---

    def _release_due(self, now_s: float) -> None:
        """Record the releases that are due, sync once for all blocks, then send them."""
        if not self._blocks.anything_due:
            return
        releases = self._blocks.take_due(stopping=self._stopped_by != "")
        for block, release in releases:
            self._out.record(MilestoneReleased(replicate=block, milestone=release.milestone, runs=release.runs))
        self._out.do(commands.Sync())
        for _, release in releases:
            for name in release.runs:
                if self._history.runs[name].reused is None:  # else its lane's worker may be at another run
                    self._send_release(self._history.runs[name], release.milestone, now_s)
        done_blocks = {block for block, _ in releases if self._blocks.is_done(block)}
        for block in done_blocks:
            self._blocks.remove(block)
        if done_blocks and not (self._stopped_by and any_expected(self._history)):
            self._look()

    def _send_release(self, run: RunHistory, milestone: int, now_s: float) -> None:
        """Send a release. If the worker is gone, its successor gets the release when it reaches the milestone."""
        worker = self._workers.on_lane(run.ref.device)
        self._out.send(worker, messages.Release(run_name=run.ref.name, milestone=milestone))
        if milestone > run.spec.episodes:
            if worker.run == run.spec:
                worker.run = None
        elif self._blocks.stands(run) == milestone:
            self._liveness.sign(worker.identity, Sign(phase="released", run_name=run.ref.name), now_s)

    def _look(self) -> None:
        """Record the decisions of the plan's rule after a block was completed or given up."""
        for event in looks.due(self._history):
            self._out.record(event)
            self._waiting.update(event.extension.blocks if isinstance(event, PlanExtended) else ())
        self._out.do(commands.Sync())

    # --- blocks ---

    def _start_blocks(self, now_s: float) -> None:
        if check := reuse.check_due(self._history):
            self._out.record(check)
            if not check.agrees:
                self._out.do(commands.Warn(f"kept runs are not reused, because {check.detail}"))
        free_lanes = {worker.lane for worker in self._workers if worker.is_free}
        for block in self._waiting.take(free_lanes):
            self._out.record_all(reuse.events_due(self._history, block))
            self._blocks.begin_or_restore(block, self._history)
            expected = [spec for spec in block.runs if self._history.runs[spec.ref.name].evaluation is None]
            for spec in expected:
                worker = self._workers.on_lane(spec.ref.device)
                worker.run = spec
                self._assign(worker, spec, now_s)

    def _assign(self, worker: WorkerState, spec: worker_order.RunSpec, now_s: float) -> None:
        """Order the worker to begin the run, or to continue it where its records end."""
        run = self._history.runs[spec.ref.name]
        if not run.started:
            order = worker.order
            self._out.record(RunStarted(run=spec.ref, worker=order.worker, incarnation=order.incarnation))
        self._out.send(worker, runs.assignment(run, self._history.mended))
        self._liveness.sign(worker.identity, Sign(phase=ASSIGNED, run_name=spec.ref.name), now_s)

    def _warn_of_slow_runs(self, now_s: float) -> None:
        if now_s < self._say_at:
            return
        self._say_at = now_s + _SAY_AGAIN_S
        for name in self._blocks.at_work():
            run = self._history.runs[name]
            worker = self._workers.on_lane(run.ref.device)
            silence = self._liveness.silence(worker.identity, now_s)
            self._out.do(commands.Warn(incidents.stop_waits(worker, run, self._blocks.stands(run), silence)))

    def _run_of(self, worker: WorkerState) -> RunHistory | None:
        return self._history.runs[worker.run.ref.name] if worker.run else None
