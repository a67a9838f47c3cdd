"""The loop of an experiment, which passes events to the machine and performs the machine's commands.

`hub` receives messages, `fleet` starts and ends workers, `event_sink` writes the journal, and the machine
(`rules/machine.py`) decides. Its commands are performed in order: first the record, then the sync, then the message.
So an event is on disk before a worker acts on it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable

from esper_ab.contracts.errors import NO_ROOM
from esper_ab.contracts.messages import Hello
from esper_ab.control.crowding import crowding
from esper_ab.control.event_sink import EventSink
from esper_ab.control.fleet import LOG_LINES, Fleet, WorkerHandle, ending
from esper_ab.control.hub import BadMessage, Hub, Incoming, Readable, Received
from esper_ab.control.rules import commands
from esper_ab.control.rules.incidents import LAST_WORDS_LINES, out_of_time
from esper_ab.control.rules.limits import Limits
from esper_ab.control.rules.machine import CTRL_C, LAST_WORDS_S, ExperimentMachine
from esper_ab.control.signals import CaughtSignals

_POLL_S, _ENDING_POLL_S = 0.5, 0.02  # the latter while a worker that was told to end is still running
_LOOK_S = 0.05  # between two checks of all workers, of which there may be thousands
_STACKS_S = 1.0  # time for a hung worker to write its stacks


class Coordinator:
    """Performs one experiment, whether it is new or continues the history of an earlier coordinator."""

    def __init__(self, sink: EventSink, hub: Hub, fleet: Fleet, limits: Limits) -> None:
        self._sink = sink
        self._hub = hub
        self._fleet = fleet
        self._limits = limits
        self._endings: dict[str, tuple[commands.EndWorker, str]] = {}  # by lane: the command, and how the worker ended
        self._machine = ExperimentMachine(sink.history, limits, time.monotonic())

    def work(self, signals: CaughtSignals) -> None:
        """Run the loop until every run is done or given up.

        Raises Interrupted after Ctrl-C, and WorkerFailed or WorkerHung when workers keep dying after every restart.
        """
        machine = self._machine
        self._hub.watch(signals.descriptor)
        for handle in self._fleet:
            self._report_start(handle)
        self._perform(machine.take_over())
        look_time = 0.0
        begin_s = time.monotonic()
        while machine.in_progress:
            for event in self._hub.poll(_ENDING_POLL_S if self._fleet.any_ending else _POLL_S):
                self._take(event, signals)
            if (now_s := time.monotonic()) >= look_time:
                look_time = now_s + _LOOK_S
                self._heed_time_limits(now_s - begin_s)
                self._perform(machine.check_ended(now_s))
                self._perform(machine.check_silent(now_s, crowding(self._fleet.on_each_machine)))
            for handle in self._fleet.ended(time.monotonic()):
                self._report_end(handle)
            for handle in self._fleet.start_due(time.monotonic(), self._limits.start_up_s):
                self._report_start(handle)
            self._perform(machine.end_round(time.monotonic()))
        if (error := machine.error_at_end()) is not None:
            raise error

    def _heed_time_limits(self, passed_s: float) -> None:
        """End the experiment as far as the time that has passed requires."""
        if passed_s >= self._limits.ends_s:
            raise out_of_time()
        if passed_s >= self._limits.starts_s:
            self._machine.close()

    def _take(self, event: Incoming, signals: CaughtSignals) -> None:
        machine = self._machine
        now_s = time.monotonic()
        match event:
            case Received(identity, message):
                if isinstance(message, Hello):
                    self._fleet.greeted(identity)
                self._perform(machine.heard(identity, message, now_s))
            case BadMessage(identity, reason, is_known, is_cut_off, is_new):
                self._perform(
                    machine.heard_garbage(identity, reason, from_worker=is_known, new=is_new, cut_off=is_cut_off)
                )
            case Readable(descriptor) if descriptor == signals.descriptor:
                for number in signals.read():
                    stop_source = CTRL_C if number == signal.SIGINT else number.name
                    self._perform(machine.stop_requested(stop_source, now_s))
            case Readable(descriptor):
                for lane in self._fleet.handle_event(descriptor):
                    machine.exited(lane, now_s)

    def _perform(self, due_commands: Iterable[commands.Command]) -> None:
        """Perform the commands in order, and also the commands that follow from starting or ending a worker."""
        for command in due_commands:
            match command:
                case commands.Append(event):
                    self._sink.append(event)
                case commands.Send(identity, message):
                    self._hub.send(identity, message)
                case commands.Sync():
                    self._sink.commit()
                case commands.Flush():
                    self._sink.flush()
                case commands.Show(progress):
                    self._sink.show(progress)
                case commands.Warn(text):
                    self._sink.warn(text)
                case commands.Fail(error):
                    raise error
                case _:
                    self._manage(command)

    def _manage(self, command: commands.DumpStacks | commands.EndWorker | commands.RestartWorker) -> None:
        handle = self._fleet.on_lane(command.lane)
        match command:
            case commands.DumpStacks():
                handle.worker.dump_stacks()
            case commands.EndWorker(lane, reason, is_hung):
                self._endings[lane] = (command, reason or ending(handle))
                self._fleet.end(handle, _STACKS_S if is_hung else LAST_WORDS_S)
            case commands.RestartWorker():
                self._fleet.restart(handle)
                self._report_start(handle)

    def _report_end(self, handle: WorkerHandle) -> None:
        """Tell the machine how a worker ended, and pass on the end of its log, which is now complete."""
        end_request, end_words = self._endings.pop(handle.order.lane.name)
        log = self._fleet.log_end(handle, LAST_WORDS_LINES if end_request.hung else LOG_LINES, end_request.run_log)
        no_room = any(os.strerror(number) in log for number in NO_ROOM)
        is_blameless = no_room or bool(handle.worker.ended_how)
        self._perform(
            self._machine.lost(end_request.lane, end_words, log, hung=end_request.hung, blameless=is_blameless)
        )

    def _report_start(self, handle: WorkerHandle) -> None:
        if handle.waits:
            self._machine.waits_for_its_turn(handle.order)
        elif handle.delay is not None:
            self._perform(self._machine.start_delayed(handle.order, handle.delay.lack))
        else:
            self._perform(self._machine.launched(handle.order, time.monotonic()))
