"""Continue a campaign after an interruption, or add seeds to a finished experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from esper_ab.campaign.answering import parse_requirements, write_report
from esper_ab.campaign.campaign import PriorResults
from esper_ab.campaign.extending import Preview, extension, further_seeds, preview
from esper_ab.campaign.machines import Machines
from esper_ab.campaign.observers import make_observers
from esper_ab.campaign.part_planning import needed_bytes
from esper_ab.campaign.planning import plan_part, seal_code
from esper_ab.campaign.reuse import kept_afterwards, references_of, with_offers
from esper_ab.campaign.running import RunOptions, resumed_as_a_whole, run_part
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files_below import check_no_links, remove_folder_below
from esper_ab.contracts.machine import Device, Questions
from esper_ab.contracts.regular_file import NotRegular
from esper_ab.contracts.run_files import CHECKPOINTS, LOGS, POLICIES, REUSED, RUNS
from esper_ab.contracts.shell_command import shell_command
from esper_ab.control import experiment_run
from esper_ab.control.preflight import check_experiment_dir, check_launcher
from esper_ab.control.reservation import reserved
from esper_ab.journal.begun import begun
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.journal.lock import Lock
from esper_ab.launchers import Launcher
from esper_ab.plan.plan import Extension
from esper_ab.readers.external_plan import read_plan
from esper_ab.readers.joint_directory import PLAN_NAME, JointPart, is_joint, read_joint, refuse_joint
from esper_ab.settings.kernel import check_kernel
from esper_ab.settings.parse import parse
from esper_ab.settings.references import References
from esper_ab.settings.request import request
from esper_ab.settings.settings_file import read_toml
from esper_ab.trackers.state import read_settings
from esper_ab.verdict.requirement import Requirement

_WRITTEN_TO = (CHECKPOINTS, LOGS, POLICIES, REUSED, RUNS, "tensorboard", "tracking")  # folders of an experiment
_NOTHING = PriorResults()  # several parts have none, because a calibration or reward audit covers one task


@dataclass(frozen=True, kw_only=True)
class Resumption:
    """What a directory that can continue is asked for."""

    requirements: tuple[Requirement, ...]
    added: Preview | None  # the seeds to add; None: the experiment goes on as planned


def check_resumable(
    directory: Path, replicates: int | None, requirements: Sequence[str], *, allow_changed_code: bool
) -> Resumption:
    """Raise UsageError if the campaign cannot continue with this code. Nothing is started or written.

    `replicates`: the new total number for a finished experiment. `requirements`: the texts of --fail-unless.
    """
    if is_joint(directory):
        if replicates is not None:
            refuse_joint(directory, "resume --seeds")
        plan = read_plan(directory / PLAN_NAME)
        required_verdicts = parse_requirements(requirements, plan.groups, plan.design.comparisons)
        return Resumption(requirements=required_verdicts, added=None)
    history = load(directory).history
    extension_preview = None
    if replicates is None:
        experiment_run.check_resumable(directory, history, allow_changed_code=allow_changed_code)
    else:
        extension_preview = preview(directory, history, replicates)
        experiment_run.check_code(directory, history, allowed=allow_changed_code)
    required_verdicts = parse_requirements(requirements, history.groups, history.design.comparisons)
    return Resumption(requirements=required_verdicts, added=extension_preview)


def resume(
    directory: Path,
    launcher: Launcher,
    options: RunOptions,
    *,
    replicates: int | None = None,
    allow_changed_code: bool = False,
) -> None:
    """Train the remaining runs of every part, one part after the other.

    With `replicates`, extend a finished experiment to this number instead.
    """
    if not is_joint(directory):
        _resume_experiment(directory, launcher, options, replicates, allow_changed_code=allow_changed_code)
        return
    joint_experiment = read_joint(directory)
    with closing(Lock(directory)):
        unfinished_parts = [part for part in joint_experiment.parts if not _is_finished(directory / part.folder)]
        if not unfinished_parts:
            report = shell_command("report", directory)
            raise UsageError(f"{directory}: every part of the experiment is finished; `{report}` shows the verdict")
        for part in unfinished_parts:
            options.begin(part.name)
            folder = directory / part.folder
            with resumed_as_a_whole(directory, folder):
                if begun(folder):
                    _resume_experiment(folder, launcher, options, None, allow_changed_code=allow_changed_code)
                else:
                    references = references_of(joint_experiment)
                    _launch_part(directory, part, launcher, options, references)
            write_report(folder)


def add_seeds(experiment_dir: Path, launcher: Launcher, options: RunOptions, replicates: int) -> None:
    """Train more runs of a finished experiment until it has `replicates` seeds, for a caller who decides about it."""
    _continue_experiment(
        experiment_dir,
        load(experiment_dir).history,
        launcher,
        options,
        make_extension=lambda history: further_seeds(history, replicates),
        allow_changed_code=False,
    )


def _is_finished(folder: Path) -> bool:
    """Whether a part has begun and is finished."""
    return begun(folder) and load(folder).history.finished


def _resume_experiment(
    experiment_dir: Path, launcher: Launcher, options: RunOptions, replicates: int | None, *, allow_changed_code: bool
) -> None:
    """Train the remaining runs of an experiment, or extend a finished one to `replicates`, in the same journal."""
    history = load(experiment_dir).history
    if replicates is None:
        experiment_run.check_resumable(experiment_dir, history, allow_changed_code=allow_changed_code)

    def extended(current_history: History) -> Extension:
        assert replicates is not None
        return extension(experiment_dir, current_history, replicates)

    _continue_experiment(
        experiment_dir,
        history,
        launcher,
        options,
        None if replicates is None else extended,
        allow_changed_code=allow_changed_code,
    )


def _continue_experiment(
    experiment_dir: Path,
    history: History,
    launcher: Launcher,
    options: RunOptions,
    make_extension: Callable[[History], Extension] | None,
    *,
    allow_changed_code: bool,
) -> None:
    """Start workers for the remaining runs, or for those of the extension that `make_extension` returns."""
    try:
        check_no_links(experiment_dir, _WRITTEN_TO)
    except NotRegular as error:
        remedy = "nothing is written through links; replace the link with the folder or file itself"
        raise UsageError(f"{error.filename} {error.strerror}, but {remedy}") from None
    lanes = history.plan.lanes
    devices = _examined_devices(history, launcher, experiment_dir)
    check_launcher(launcher, lanes, devices)
    with reserved(launcher, lanes, devices), ExitStack() as stack:
        stack.enter_context(kept_afterwards(experiment_dir, is_asked=history.references is not None))
        observers = make_observers(stack, experiment_dir, history.plan, history, watched=options.watched)
        observers += options.observers
        if make_extension is None:
            experiment_run.resume(
                experiment_dir, launcher, observers, options.limits, allow_changed_code=allow_changed_code
            )
        else:
            experiment_run.extend(
                experiment_dir,
                make_extension,
                launcher,
                observers,
                options.limits,
                allow_changed_code=allow_changed_code,
            )


def _examined_devices(history: History, launcher: Launcher, experiment_dir: Path) -> tuple[Device, ...]:
    """Return the present devices, if the plan names its devices; (): those with which the plan was made.

    Raises UsageError if the plan's arithmetic is not available for the remaining runs.
    """
    experiment = history.plan.experiment
    own_kernel = experiment.arithmetic.kernel != "torch"  # torch's version is checked by the audit
    is_placed = bool(launcher.nodes) or any(any(lane.titles) for lane in history.plan.lanes)
    if not (own_kernel or is_placed):
        return ()
    questions = Questions(task=experiment.task, data_dir=experiment.data_dir, user_rewards=(), gpus=experiment.devices)
    machine = Machines(launcher, only_plan=True).examine(questions, experiment_dir)
    if own_kernel:
        check_kernel(experiment.arithmetic, machine)
    return machine.devices if is_placed else ()


def _launch_part(
    directory: Path, part: JointPart, launcher: Launcher, options: RunOptions, references: References | None
) -> None:
    """Launch a part that has not started, from its settings file; UsageError if settings or user code have changed.

    A folder that the part already has is removed: it has no events, so a command that was killed has left it. No
    running command can be using it, because the caller holds the lock of the campaign.
    """
    folder = directory / part.folder
    remove_folder_below(directory, part.folder)
    file = directory / f"{part.folder}.toml"
    asked_experiment = parse(request(read_toml(file)))
    check_experiment_dir(folder, needed_bytes(asked_experiment, _NOTHING))
    unsealed = [directory.parent] if references is None else [directory.parent, references.folder]
    code = seal_code(asked_experiment, unsealed)
    machines = Machines(launcher, only_plan=False)
    planned_part = plan_part(part.name, asked_experiment, folder, machines, _NOTHING, code)
    if planned_part.plan.digest != part.digest:
        raise UsageError(
            f"{file}: the part {part.name} would differ from the one that was planned, because its settings or your "
            "reward, environment or trainer have changed; restore them, or launch the whole experiment again"
        )
    lanes = planned_part.plan.lanes
    check_launcher(launcher, lanes, planned_part.machine.devices)
    with reserved(launcher, lanes, planned_part.machine.devices):
        run_part(with_offers(planned_part, references, unsealed), launcher, options, read_settings(directory))
