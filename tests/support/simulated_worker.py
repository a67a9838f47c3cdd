"""A worker as the coordinator knows it, without process or socket: told by messages, asked what it could say next."""

import functools

from esper_ab.contracts.messages import PROTOCOL, Assign, Cancel, Failed, Hello, Progress, Ready, Release
from esper_ab.contracts.records import Checkpoint
from support.fake_worker import phase_of, report_of


@functools.cache
def checkpoint(run, milestone):
    return Checkpoint(milestone=milestone, file=f"checkpoints/{run}/{milestone}.pt", sha256="0" * 64, size_bytes=1)


class SimulatedWorker:
    """One incarnation. It does what it is told, once it is asked to."""

    def __init__(self, order):
        self.order = order
        self.greeted = self.hung = False
        self.assign = None
        self.at = None  # last milestone that it reported; None before Ready
        self.working = False
        self.said = []  # reports of this run, newest last

    @property
    def identity(self):
        return self.order.identity

    @property
    def run(self):
        return self.assign.spec.ref.name if self.assign else ""

    @property
    def waits(self):
        """It has reported a point, and has not been told to go on."""
        return self.assign is not None and self.at is not None and not self.working

    @property
    def next(self):
        """What it may report next."""
        return self.run, 0 if self.at is None else self.at + 1

    def receive(self, message):
        match message:
            case Assign():
                self.assign, self.at, self.working, self.said = message, None, True, []
            case Release() if message.run_name == self.run and message.milestone == self.at and not self.working:
                self.working = message.milestone <= self.assign.spec.episodes
                if not self.working:
                    self.assign = None
            case Cancel() if message.run_name == self.run:
                if self.working and self.at is not None:
                    self.report()  # was on its way
                self.assign, self.working = None, False

    def hello(self):
        self.greeted = True
        order = self.order
        return Hello(
            worker=order.worker, incarnation=order.incarnation, protocol=PROTOCOL, pid=1, uuids=order.lane.uuids,
            torch_version="none", sources="", titles=order.lane.titles,
        )

    def progress(self):
        spec, milestone = self.assign.spec, 0 if self.at is None else self.at + 1
        return Progress(run=spec.ref, milestone=milestone, step=1, phase=phase_of(spec, milestone))

    def starts(self):
        """Points where it could take the run up, the newest first: of intact checkpoints, or the beginning."""
        return [one.milestone for one in self.assign.checkpoints] + [0]

    def ready(self, milestone):
        self.at, self.working = milestone, False
        return self._say(Ready(run=self.assign.spec.ref, warm_up_s=0.0, milestone=milestone))

    def report(self):
        """The next piece of work, done."""
        self.at, self.working = self.at + 1, False
        spec, milestone = self.assign.spec, self.at
        saved = checkpoint(self.run, milestone) if milestone <= spec.episodes else None
        return self._say(report_of(spec, milestone, saved))

    def _say(self, report):
        self.said.append(report)
        return report

    def failed(self):
        return Failed(summary="RuntimeError: the planted error", traceback="")
