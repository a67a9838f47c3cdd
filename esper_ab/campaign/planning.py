"""Plan a campaign: every part, and the comparisons over all of them. Every refusal comes before anything is started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from esper_ab.campaign.campaign import Campaign, CampaignPlan, PartPlan, PriorResults
from esper_ab.campaign.directory import choose_directory
from esper_ab.campaign.leftover import is_leftover
from esper_ab.campaign.machines import Machines
from esper_ab.campaign.part_planning import needed_bytes, plan_on
from esper_ab.campaign.reuse import with_offers
from esper_ab.campaign.taken_directory import taken
from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.trainer import is_guarded
from esper_ab.control.preflight import check_experiment_dir, check_launcher
from esper_ab.journal.begun import begun
from esper_ab.launchers import Launcher
from esper_ab.plan.plan import EarlierExperiment
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.kind import settings_of
from esper_ab.settings.parts import Part, as_part

if TYPE_CHECKING:
    from esper_ab.code_trees.sealing import SealedCode
    from esper_ab.verdict.analysis_plan import AnalysisPlan


def plan_campaign(campaign: Campaign, launcher: Launcher, *, only_plan: bool = False) -> CampaignPlan:
    """Plan every part. Raises UsageError for every problem that can be found before anything starts.

    With `only_plan`, the modules that carry out a plan are not imported, because this process will not need them.
    """
    directory = choose_directory(campaign)
    if not (campaign.may_have_begun and begun(directory)):
        required_bytes = sum(needed_bytes(part.asked, campaign.prior) for part in campaign.parts)
        check_experiment_dir(directory, required_bytes)
        if directory.exists() and not is_leftover(directory):
            raise taken(directory)
    _check_threads(campaign.parts[0].asked, launcher)
    machines = Machines(launcher, only_plan=only_plan)
    parts = tuple(_plan_parts(campaign, directory, machines))
    for part in parts:
        check_launcher(launcher, part.plan.lanes, part.machine.devices)
    generated_name = "" if campaign.name else directory.name
    plan = CampaignPlan(
        campaign=campaign, directory=directory, generated=generated_name, parts=parts, launcher=launcher
    )
    if len(parts) == 1:
        return plan
    joint_plan = _plan_joint_analysis(plan)
    original = campaign.prior.original_parts
    pooled_with: tuple[EarlierExperiment, ...] = ()
    if original is not None and original.replicated_by({part.name: part.plan for part in parts}):
        pooled_with = original.earlier
    return replace(plan, over_all=joint_plan, scores=_scores(campaign.scores, joint_plan), pooled_with=pooled_with)


def plan_part(
    name: str,
    asked_experiment: AskedExperiment,
    folder: Path,
    machines: Machines,
    prior_results: PriorResults,
    code: SealedCode | None = None,
) -> PartPlan:
    """Plan the part `name`, which is an experiment in `folder`. Raises UsageError as `plan_on` and the preflight do.

    `code`: the sealed states of the code, if the groups have one each.
    """
    questions = settings_of(asked_experiment.task).ask(asked_experiment)
    if code is not None:
        questions = code.asked_in(questions)
    machine = machines.examine(questions, folder.parent)
    plan, cost = plan_on(machine, asked_experiment, folder.name, prior_results)
    return PartPlan(
        name=name,
        asked=asked_experiment,
        machine=machine,
        plan=plan,
        cost=cost,
        folder=folder,
        code=code,
        prior=prior_results,
    )


def seal_code(asked_experiment: AskedExperiment, unsealed: Sequence[Path]) -> SealedCode | None:
    """Seal the states of the code that the groups are trained with, if each has one; UsageError if one is missing.

    `unsealed`: folders and files that are no part of a state, unless they are tracked.
    """
    if not asked_experiment.code:
        return None
    from esper_ab.code_trees.sealing import seal  # most experiments have one state of the code

    kept_folder = Path(asked_experiment.code_kept) if asked_experiment.code_kept else None
    folder = Path(asked_experiment.trainer_folder)
    return seal(asked_experiment.states_of_code, folder, kept_folder, unsealed)


def _check_threads(asked_experiment: AskedExperiment, launcher: Launcher) -> None:
    """Raise UsageError if runs with different states of the code would share a working directory."""
    if asked_experiment.code and launcher.threads and not is_guarded(asked_experiment.trainer):
        raise UsageError(
            SettingName("launcher", launcher.name),
            ": runs of a Python trainer would be threads of one process, and each state of the code needs a process; "
            "use ",
            SettingName("launcher", "local"),
        )


def _plan_parts(campaign: Campaign, directory: Path, machines: Machines) -> Iterator[PartPlan]:
    """Yield the plan of every part; UsageError, with the name of the part, if one cannot be planned or comes twice."""
    references = campaign.references
    kept_folders = () if references is None else (references.folder,)
    unsealed = (campaign.output_dir, *campaign.unsealed, *kept_folders)
    code = seal_code(campaign.parts[0].asked, unsealed)  # the same for all parts
    if len(campaign.parts) == 1:
        only_part = plan_part("", campaign.parts[0].asked, directory, machines, campaign.prior, code)
        yield with_offers(only_part, references, unsealed)
        return
    names = dict[str, str]()  # of the parts, by digest
    for part in campaign.parts:
        with _naming_part(part):
            asked_experiment = as_part(part.asked, len(campaign.parts))
            folder = directory / part.folder
            planned_part = plan_part(part.name, asked_experiment, folder, machines, campaign.prior, code)
            digest = planned_part.plan.digest
            if digest in names:
                twin = names[digest]
                raise UsageError(f"this is the same experiment as {twin}, which would count twice; name each once")
        names[digest] = part.name
        yield with_offers(planned_part, references, unsealed)


@contextmanager
def _naming_part(part: Part) -> Iterator[None]:
    """Prefix the messages of UsageErrors inside this context with the name of the part."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{part.name}: ", *error.args) from None


def _plan_joint_analysis(plan: CampaignPlan) -> AnalysisPlan:
    """Return the analysis plan over all parts."""
    from esper_ab.verdict.analysis_plan import Rule, make_plan  # --help does not need it
    from esper_ab.verdict.scale import Scale  # as above

    scales = []
    for part in plan.parts:
        design = part.plan.design
        scales.append(Scale(task=part.name, outcome=design.outcome, margin=design.margin, worst=design.worst))
    first_experiment = plan.parts[0].plan.experiment
    replicates = tuple(map(str, range(first_experiment.seeds)))
    rule = Rule(
        control=first_experiment.control,
        alpha=plan.campaign.parts[0].asked.alpha,
        looks=first_experiment.looks,
        claim=first_experiment.claim,
        variances=first_experiment.variances,
        shape=first_experiment.shape,
    )
    return make_plan(plan.groups, replicates, tuple(scales), rule)


def _scores(asked_scores: str, plan: AnalysisPlan) -> dict[str, tuple[float, float]]:
    """Return the worst and the target outcome of each part, as in `asked_scores`.

    If nothing is asked, they are the ends of the declared ranges, or {} if a part does not declare both ends.
    """
    from esper_ab.readers.scales import ranges_of, read_by_task  # --help does not need it

    if asked_scores:
        return ranges_of(plan.tasks, read_by_task(asked_scores))
    ranges = {}
    for scale in plan.scales:
        low = scale.outcome.low
        high = scale.outcome.high
        if low is None or high is None:
            return {}
        ranges[scale.task] = (low, high) if scale.outcome.sign > 0.0 else (high, low)
    return ranges
