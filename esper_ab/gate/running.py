"""Runs a gate, or goes on with one: the same question about the same states always has the same directory."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from esper_ab.campaign.answering import write_report
from esper_ab.campaign.campaign import Campaign, CampaignPlan
from esper_ab.campaign.confirming import confirm
from esper_ab.campaign.directory import claim
from esper_ab.campaign.launcher import make_launcher
from esper_ab.campaign.planning import plan_campaign
from esper_ab.campaign.resuming import check_resumable, resume
from esper_ab.campaign.running import RunOptions, run
from esper_ab.contracts.errors import OutOfTime, UsageError, naming
from esper_ab.contracts.shell_command import shell_command
from esper_ab.control.rules.limits import Limits
from esper_ab.gate.answer import GateAnswer, answer_of
from esper_ab.gate.asked import ask, spelled_as_file
from esper_ab.gate.begun_gate import BegunGate, begun_gate
from esper_ab.gate.budget import REPORT_S
from esper_ab.gate.fitting import cost_of, fit, plan_lines, spread_of, with_kept_runs
from esper_ab.gate.look_lines import LookLines
from esper_ab.gate.measured import measured_before
from esper_ab.gate.planning_lock import planned_alone
from esper_ab.gate.question import BASE, HEAD, GateQuestion
from esper_ab.gate.spent import SittingKept, keep_end
from esper_ab.gate.states import GateStates, find_two_states
from esper_ab.journal.begun import begun
from esper_ab.launchers import Launcher
from esper_ab.settings.launcher import NOT_GIVEN
from esper_ab.settings.parts import Part

Say = Callable[[str], object]


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    """Where a gate has its results, and who hears of it; no result depends on it."""

    folder: Path = Path("experiments")  # of the gate's directory, whose name follows from question and states
    say: Say = str  # gets the lines on the plan, and one per look
    command: str = "esper-ab gate"  # what continues an interrupted gate, for messages
    use_directory: Callable[[Path], object] = str  # gets the directory once it exists
    unsealed: tuple[Path, ...] = ()  # files that are no part of the code, unless they are tracked


@dataclass(frozen=True, kw_only=True)
class _Gate:
    """A gate that runs now."""

    question: GateQuestion
    options: GateOptions
    states: GateStates
    launcher: Launcher
    begin_s: float  # monotonic
    began: datetime  # the same instant

    @property
    def directory(self) -> Path:
        return self.options.folder / self.question.name(self.states.base, self.states.head)

    @property
    def passed_s(self) -> float:
        """The seconds since this command began."""
        return time.monotonic() - self.begin_s


def run_gate(question: GateQuestion, options: GateOptions | None = None) -> GateAnswer:
    """Compare two states of the code until the claim is decided or the minutes end, and return the answer.

    A gate that was interrupted goes on in its directory, and one that has ended answers again. Raises UsageError before
    anything is started, Interrupted after Ctrl-C or SIGTERM, and the other errors of an experiment.
    """
    gate = _gate(question, options or GateOptions())
    with naming(gate.options.command, replaced_command=shell_command("resume", gate.directory)):
        if begun(gate.directory):
            has_trained = _continue_gate(gate)
        else:
            has_trained = _begin_gate(gate)
    report = write_report(gate.directory)
    if has_trained:
        keep_end(gate.directory, gate.began)
    return answer_of(question, gate.directory, report)


def plan_gate(question: GateQuestion, options: GateOptions | None = None) -> CampaignPlan | BegunGate:
    """Say how a gate would be run, without starting it, and return its plan; if it has begun, its state.

    Raises UsageError as `run_gate` does.
    """
    gate = _gate(question, options or GateOptions())
    if begun(gate.directory):
        begun_before = begun_gate(question, gate.directory, gate.passed_s)
        for line in begun_before.lines:
            gate.options.say(line)
        return begun_before
    return _planned(gate, only_plan=True)[0]


def _gate(question: GateQuestion, options: GateOptions) -> _Gate:
    begin_s, begin_time = time.monotonic(), datetime.now(UTC)
    return _Gate(
        question=question,
        options=options,
        states=find_two_states(question, unsealed_in(question, options)),
        launcher=make_launcher(NOT_GIVEN),
        begin_s=begin_s,
        began=begin_time,
    )


def unsealed_in(question: GateQuestion, options: GateOptions) -> tuple[Path, ...]:
    """Return the files and folders that are no part of the code, unless they are tracked."""
    kept_folders = () if question.references is None else (question.references,)
    return (options.folder, *options.unsealed, *kept_folders)


def _planned(gate: _Gate, *, only_plan: bool = False) -> tuple[CampaignPlan, float]:
    """Plan the gate and fit it to its minutes; return the plan and the seconds of a pair.

    UsageError as `launch`, `fit` and `cost_of` raise it, and if files were edited meanwhile.
    """
    question = gate.question
    earlier_gates = measured_before(gate.options.folder, question.subject_digest)
    with spelled_as_file():
        asked_experiment = ask(question, gate.states.named, gate.directory.name)
        campaign = Campaign(
            parts=(Part(name="", asked=asked_experiment),),
            output_dir=gate.options.folder,
            unsealed=gate.options.unsealed,
            references=question.kept_runs,
        )
        plan = plan_campaign(campaign, gate.launcher, only_plan=only_plan)
        _refuse_edited(gate, plan)
        cost = cost_of(plan.parts[0], question, earlier_gates)
        spread = spread_of(plan.parts[0], earlier_gates)
        plan = fit(plan, question, cost, spread, gate.passed_s)
        plan = with_kept_runs(plan, unsealed_in(question, gate.options))
    gate.options.say(f"Gate: {HEAD} is {gate.states.head.words}, {BASE} is {gate.states.base.words}.")
    for line in plan_lines(plan.parts[0], question, spread):
        gate.options.say(line)
    return plan, cost.wave_s


def _refuse_edited(gate: _Gate, plan: CampaignPlan) -> None:
    """Raise UsageError if the plan has other files than those that named the directory."""
    code = plan.parts[0].code
    assert code is not None, "both groups have a state of the code"
    if {state.group: state.sealed for state in code.states} != gate.states.sealed:
        raise UsageError("files were edited while the gate was planned; start it again")


def _begin_gate(gate: _Gate) -> bool:
    """Plan and run a gate that has not begun; return True, as `_continue_gate` does if it trains."""
    with ExitStack() as stack:
        with planned_alone(gate.directory):
            plan, pair_s = _planned(gate)
            confirm(plan, yes=True, dry_run=False)
            claimed_plan = stack.enter_context(claim(plan))
        left_s = 60.0 * gate.question.minutes - gate.passed_s - REPORT_S
        options = _options(gate, plan.parts[0].plan.experiment.seeds, left_s, pair_s, gate.passed_s)
        gate.options.use_directory(gate.directory)
        try:
            run(claimed_plan, options)
        except OutOfTime:
            gate.options.say("The minutes have ended before the plan.")
    return True


def _continue_gate(gate: _Gate) -> bool:
    """Run the rest of a gate that has begun, and return True; False if it has ended or has no time left."""
    directory = gate.directory
    begun_before = begun_gate(gate.question, directory, gate.passed_s)
    if begun_before.state == "running":
        status = shell_command("status", directory, "--follow")
        raise UsageError(f"{directory}: this gate is running ({begun_before.holder}); `{status}` shows how far it is")
    if begun_before.state == "ended":
        gate.options.say(f"{directory} has the answer to this question.")
        return False
    if begun_before.state == "out of time":
        gate.options.say(f"{directory}: the minutes of this gate have ended; more of them let it go on.")
        return False
    gate.options.use_directory(directory)
    check_resumable(directory, None, (), allow_changed_code=False)
    spent_s = begun_before.spent_s
    gate.options.say(f"Going on in {directory}, after {spent_s / 60.0:.1f} of {gate.question.minutes:g} min.")
    options = _options(
        gate, begun_before.history.replicates, begun_before.left_s, begun_before.pair_s, spent_s + gate.passed_s
    )
    try:
        resume(directory, gate.launcher, options)
    except OutOfTime:
        gate.options.say("The minutes have ended before the plan.")
    return True


def _options(gate: _Gate, seeds: int, left_s: float, pair_s: float, spent_s: float) -> RunOptions:
    """Return how the experiment is run: with `left_s` seconds left, of which a pair takes `pair_s`.

    `spent_s`: what the gate has taken until now.
    """
    begin_s = time.monotonic() - spent_s
    lines = LookLines(
        say=gate.options.say,
        most_pairs=seeds,
        minutes=gate.question.minutes,
        spent_s=lambda: time.monotonic() - begin_s,
    )
    sitting = SittingKept(directory=gate.directory, began=gate.began)
    limits = Limits(starts_s=max(0.0, left_s - pair_s), ends_s=left_s)
    return RunOptions(watched=False, observers=[sitting, lines], limits=limits)
