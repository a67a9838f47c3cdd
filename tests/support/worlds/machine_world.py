"""A simulated experiment around the ExperimentMachine: workers, faults, a journal, and a clock that the world sets."""

from collections import Counter
from functools import cache

from esper_ab.contracts.failure_cause import UNKNOWN, cause_of_text
from esper_ab.contracts.messages import PROTOCOL, Assign, Cancel, Failed, Hello, Progress, Ready, Release
from esper_ab.contracts.records import Checkpoint
from esper_ab.control.rules import commands
from esper_ab.control.rules.limits import Limits
from esper_ab.control.rules.machine import ExperimentMachine
from esper_ab.control.rules.waves import Waves
from esper_ab.journal.events import ExperimentContinued
from esper_ab.journal.fold import fold
from support.journals.synthetic import started
from support.outcomes.drawn_decisions import Choices
from support.plans.worker_orders import order
from support.workers.fake_worker import phase_of, report_of

ROUND_S = (1.0, 1.0, 9.0, 60.0)  # the last: the coordinator itself stood still
MOST_ROUNDS = 300  # without further faults; these worlds take a tenth of it
CAUSES = (cause_of_text("ValueError: 3"), cause_of_text("KeyError: 3"))  # of failures of a user's program
FAULTS = ("progress", "repeat", "die", "die", "fail", "program", "hang", "garbage", "late word", "ahead", "out of turn")


def limits_of(deaths=3):
    """Return limits by which a hung worker is found within a few rounds."""
    return Limits(floor_s=5.0, start_up_s=20.0, deaths=deaths)


@cache
def checkpoint(run, milestone):
    return Checkpoint(milestone=milestone, file=f"checkpoints/{run}/{milestone}.pt", sha256="0" * 64, size_bytes=1)


class SimulatedWorker:
    """A worker without process or socket, which acts when the world lets it."""

    def __init__(self, order):
        self.order = order
        self.greeted = self.hung = False
        self.assign = None
        self.milestone = None  # last milestone that it reported; None before Ready
        self.working = False
        self.reports = []  # reports of this run, newest last

    @property
    def identity(self):
        return self.order.identity

    @property
    def run(self):
        return self.assign.spec.ref.name if self.assign else ""

    @property
    def is_waiting(self):
        """Return whether the worker has reported a milestone and has not been released from it."""
        return self.assign is not None and self.milestone is not None and not self.working

    @property
    def next_report(self):
        """Return (run, milestone) of the worker's next report."""
        return self.run, 0 if self.milestone is None else self.milestone + 1

    def receive(self, message):
        match message:
            case Assign():
                self.assign = message
                self.milestone = None
                self.working = True
                self.reports = []
            case Release() if message.run_name == self.run and message.milestone == self.milestone and not self.working:
                self.working = message.milestone <= self.assign.spec.episodes
                if not self.working:
                    self.assign = None
            case Cancel() if message.run_name == self.run:
                if self.working and self.milestone is not None:
                    self.report()  # was on its way
                self.assign = None
                self.working = False

    def hello(self):
        self.greeted = True
        order = self.order
        return Hello(
            worker=order.worker,
            incarnation=order.incarnation,
            protocol=PROTOCOL,
            pid=1,
            uuids=order.lane.uuids,
            torch_version="none",
            sources="",
            titles=order.lane.titles,
        )

    def progress(self):
        spec = self.assign.spec
        (_, milestone) = self.next_report
        return Progress(run=spec.ref, milestone=milestone, step=1, phase=phase_of(spec, milestone))

    def starts(self):
        """Return the milestones from which the worker could resume, newest first, and 0 for the beginning."""
        return [checkpoint.milestone for checkpoint in self.assign.checkpoints] + [0]

    def ready(self, milestone):
        self.milestone = milestone
        self.working = False
        return self._add_report(Ready(run=self.assign.spec.ref, warm_up_s=0.0, milestone=milestone))

    def report(self):
        """Complete the next milestone and report it."""
        self.milestone = self.milestone + 1
        self.working = False
        spec = self.assign.spec
        milestone = self.milestone
        saved_checkpoint = checkpoint(self.run, milestone) if milestone <= spec.episodes else None
        return self._add_report(report_of(spec, milestone, saved_checkpoint))

    def _add_report(self, report):
        self.reports.append(report)
        return report

    def failed(self, cause=UNKNOWN):
        return Failed(summary="RuntimeError: the planted error", traceback="", cause=cause)


class World:
    """A coordinator that executes commands on simulated workers and checks the invariants of each command."""

    def __init__(self, plan, events=(), limits=None, start_limit=100):
        """`start_limit`: the number of workers that may start at the same time."""
        self.plan = plan
        self.at_once = start_limit
        self.waves = Waves(start_limit)
        self.journal = [*events] or [started(plan)]
        self.recorded = fold(self.journal)  # what a reader of the journal would see
        self.durable = fold(self.journal)  # what would be left after a power cut
        self.unsynced = []
        self.now = 0.0
        self.limits = limits or limits_of()
        self.workers = {}  # by lane
        self.ended_workers = []  # earlier incarnations
        self.delayed = []  # lanes whose workers could not be started
        self.waiting = set()  # lanes whose workers wait for their turn
        self.lacking = 0  # rounds until workers can start
        self.started = Counter(event.worker for event in self.journal if type(event).__name__ == "WorkerStarted")
        self.error = None
        self.warnings = []
        self.machine = ExperimentMachine(fold(self.journal), self.limits, self.now)
        for n, lane in enumerate(plan.lanes):
            self.queue(lane, f"w{n:02d}")
        self.start_due()
        self.perform(self.machine.take_over())

    def queue(self, lane, worker):
        """Queue a worker for its start wave, as the fleet does."""
        order = self.order(lane, worker)
        self.workers[lane.name] = SimulatedWorker(order)
        self.workers[lane.name].hung = True
        self.waiting.add(lane.name)
        self.waves.ask(lane.name)
        self.machine.waits_for_its_turn(order)

    def start_due(self):
        for lane in self.waves.turns():
            self.waiting.discard(lane)
            previous_order = self.workers[lane].order
            self.launch(previous_order.lane, previous_order.worker)
        starting_workers = [worker for worker in self.workers.values() if not worker.hung and not worker.greeted]
        assert len(starting_workers) <= self.at_once

    def order(self, lane, worker):
        return order(lane=lane, worker=worker, incarnation=self.started[worker] + 1)

    def launch(self, lane, worker):
        order = self.order(lane, worker)
        self.workers[lane.name] = SimulatedWorker(order)
        if self.lacking:
            self.workers[lane.name].hung = True
            self.delayed.append(lane.name)
            self.waves.over(lane.name)
            self.perform(self.machine.start_delayed(order, "no descriptor is free"))
            return
        self.started[worker] += 1
        self.perform(self.machine.launched(order, self.now))

    # --- performing, as the coordinator does ---

    def perform(self, new_commands):
        for command in new_commands:
            if self.error is not None:
                return
            match command:
                case commands.Append() | commands.Sync() | commands.Warn():
                    self.keep(command)
                case commands.Send(identity, message):
                    self.check_sent(message)
                    for worker in self.workers.values():
                        if worker.identity == identity and not worker.hung:
                            worker.receive(message)
                case commands.EndWorker(lane, reason, is_hung):
                    self.ended_workers.append(self.workers[lane])
                    self.waves.over(lane)
                    self.perform(self.machine.lost(lane, reason or "was killed", "", hung=is_hung))
                case commands.RestartWorker(lane):
                    order = self.workers[lane].order
                    self.queue(order.lane, order.worker)
                case commands.Fail(error):
                    self.error = error

    def keep(self, command):
        if isinstance(command, commands.Warn):
            self.warnings.append(command.text)
            return
        if isinstance(command, commands.Append):
            self.journal.append(command.event)
            self.recorded.add(command.event)
            self.unsynced.append(command.event)
            return
        for event in self.unsynced:
            self.durable.add(event)
        self.unsynced.clear()

    def check_sent(self, message):
        if isinstance(message, Release):
            run = self.durable.runs[message.run_name]
            assert run.released >= message.milestone, "its release is not on the disk"
            assert run.recorded >= message.milestone, "what it is released from is not on the disk"
            assert not run.lost
            worker = self.workers[run.ref.device]
            if worker.run == message.run_name and worker.milestone == message.milestone and not worker.working:
                self.check_barrier(run, message.milestone)  # else it is the answer to a repeat, and changes nothing
        elif isinstance(message, Assign):
            run = self.recorded.runs[message.spec.ref.name]
            assert run.started
            assert run.expected, "it has its outcome, or will have none"
            assert message.milestone == max(0, run.recorded)
        elif isinstance(message, Cancel):
            assert not self.recorded.runs[message.run_name].expected or "is set aside" in message.reason

    def check_barrier(self, run, milestone):
        """Check that no run works towards a milestone before all its partners have reached the previous one."""
        experiment = self.plan.experiment
        block = [self.durable.runs[spec.ref.name] for spec in self.durable.blocks[run.ref.replicate].runs]
        partners = [partner for partner in block if not partner.left_out]
        if experiment.placement == "sequence":
            assert milestone == run.spec.episodes + 1 or all(
                partner.released > run.spec.episodes for partner in partners[: partners.index(run)]
            )
        elif experiment.sync == "lockstep":
            assert min(partner.recorded for partner in partners) >= milestone
        if experiment.takes_turns and milestone <= run.spec.episodes:
            training_workers = [
                worker for worker in self.workers.values() if worker.working and worker.run != run.ref.name
            ]
            assert not [worker for worker in training_workers if worker.milestone is not None]

    # --- what may happen ---

    def hear(self, worker, message):
        self.perform(self.machine.heard(worker.identity, message, self.now))

    def go_on(self, worker, choices):
        """Let the worker take its next step without a fault."""
        if worker.hung:
            return
        if not worker.greeted:
            self.waves.over(worker.order.lane.name)
            self.hear(worker, worker.hello())
        elif worker.working and worker.milestone is None:
            self.hear(worker, worker.ready(choices.choose(worker.starts())))
        elif worker.working:
            self.hear(worker, worker.report())

    def act(self, action, worker, choices):
        match action:
            case "progress" if worker.assign and not worker.hung:
                self.hear(worker, worker.progress())
            case "repeat" if worker.reports and not worker.hung:
                self.hear(worker, choices.choose(worker.reports))
            case "die" if not worker.hung:
                worker.hung = True
                self.machine.exited(worker.order.lane.name, self.now)
            case "fail" | "program" if not worker.hung:
                self.hear(worker, worker.failed(choices.choose(CAUSES) if action == "program" else UNKNOWN))
            case "hang":
                worker.hung = True
            case "garbage":
                cut_off = choices.number(4) == 3
                self.perform(
                    self.machine.heard_garbage(worker.identity, "noise", from_worker=True, new=True, cut_off=cut_off)
                )
            case "late word" if self.ended_workers:
                ended_worker = choices.choose(self.ended_workers)
                if ended_worker.reports:
                    self.hear(ended_worker, ended_worker.reports[-1])
            case _ if not worker.hung:
                self.report_wrongly(action, worker, choices)

    def report_wrongly(self, action, worker, choices):
        """Misbehave: continue without a release, or report an unassigned run."""
        if action == "ahead" and worker.is_waiting:
            self.hear(worker, worker.report())
        elif action == "out of turn":
            specs = [spec for block in self.recorded.blocks for spec in block.runs]
            spec = choices.choose(specs)
            milestone = 1 + choices.number(self.plan.experiment.episodes + 1)
            if (spec.ref.name, milestone) != worker.next_report:
                self.hear(worker, report_of(spec, milestone))

    def finish_round(self, seconds=ROUND_S[0]):
        self.now += seconds
        self.lacking = max(0, self.lacking - 1)
        if not self.lacking:
            delayed_lanes = self.delayed
            self.delayed = []
            for lane in delayed_lanes:
                self.waves.ask(lane)
        for check in (self.machine.check_ended, self.machine.check_silent, self.machine.end_round):
            if self.error is None:
                self.perform(check(self.now))
            if self.error is None and check == self.machine.check_silent:
                self.start_due()

    @property
    def is_over(self):
        return self.error is not None or not self.machine.in_progress

    def some_faults(self, choices):
        """Run rounds without faults, then rounds in which a share of the actions are faults."""
        for _ in range(choices.number(40)):
            self.in_peace()
        share = 1 + choices.number(8)
        for _ in range(choices.number(60)):
            for _ in range(1 + choices.number(4)):
                worker = choices.choose(list(self.workers.values()))
                if self.is_over:
                    return
                if choices.number(32) == share:
                    self.lacking = 1 + choices.number(4)
                elif choices.number(16) < share and worker.order.lane.name not in (*self.delayed, *self.waiting):
                    self.act(choices.choose(FAULTS), worker, choices)
                else:
                    self.go_on(worker, choices)
            self.finish_round(choices.choose(ROUND_S))

    def in_peace(self):
        for worker in list(self.workers.values()):
            if not self.is_over:
                self.go_on(worker, Choices(b""))
        if not self.is_over:
            self.finish_round()

    def to_the_end(self):
        """Run rounds without faults until the experiment is over."""
        for _ in range(MOST_ROUNDS):
            if self.is_over:
                self.error = self.error or self.machine.error_at_end()
                return self
            self.in_peace()
        raise AssertionError("it does not end")

    def resumed(self, kept_lines):
        """Return the world of another coordinator, which reads only the first `kept_lines` lines of the journal."""
        continuation = ExperimentContinued(versions={}, machine={}, code={})
        return World(self.plan, [*self.journal[:kept_lines], continuation], self.limits)
