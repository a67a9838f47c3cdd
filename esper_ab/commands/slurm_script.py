"""`esper-ab slurm-script`: print an sbatch script that runs an experiment and resumes it after interruptions."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._options import LAUNCHER_FLAGS
from esper_ab.commands._parameters import AT_LEAST_1, PATH, valued
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.experiment_name import check_name
from esper_ab.contracts.own_packages import child_command
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.readers.joint_directory import JOINT_NAME

if TYPE_CHECKING:
    from esper_ab.commands._launch_flags import LaunchFlags

_OWN = (
    "--launcher",
    "--name",
    "--output-dir",
    "--dry-run",
    "--transport",
    "--quiet",
    "--json",
    "--yes",
    "--verbose",
    "-v",
)
_PROGRAM = "esper_ab.commands.cli"
_LAUNCHER = "slurm"
_BOTH = ("--launcher", _LAUNCHER, "--quiet")  # added to both launch and resume
Words = tuple[str, ...]  # of a command line
_WARNING_S = 120  # before the time limit, to finish the current barrier


@command_with(
    "esper-ab slurm-script --nodes 2 --cores 4 --name digits --groups shaped,simplified --seeds 10",
    "esper-ab slurm-script --nodes 4 --cores 16 --gpus 8 --name big --sbatch --partition=gpu --task cifar10",
    context_settings={"ignore_unknown_options": True},
)
@valued("--name", "NAME", "Name of the experiment directory and of the job.", required=True)
@valued(
    "--output-dir",
    "DIR",
    "Folder for experiment directories; all nodes must see it.",
    type=PATH,
    default=Path("experiments"),
)
@valued("--nodes", "N", "Number of nodes, all of one kind.", type=AT_LEAST_1, required=True)
@valued("--cores", "N", "Cores per node.", type=AT_LEAST_1, required=True)
@valued("--gpus", "N", "GPUs per node.", type=click.IntRange(min=0), default=0)
@valued("--time", "TIME", "Time limit in sbatch's format, as in 8:00:00. [default: the partition's]")
@valued("--sbatch", "OPTION", "Another option for sbatch, as in --sbatch --constraint=h100. Repeatable.", multiple=True)
@valued("--setup", "COMMAND", "A command to run first, as in --setup 'module load cuda'. Repeatable.", multiple=True)
@click.argument("launch_flags", nargs=-1, type=click.UNPROCESSED, metavar="[WHAT] FLAGS OF LAUNCH…")
def command(name: str, output_dir: Path, launch_flags: Words, setup: Words, **flags: Any) -> None:
    """Print an sbatch script that launches an experiment, and resumes it after interruptions.

    When the job is requeued after a preemption, or submitted again, it continues from the journal.
    """
    # Imported here, because --help needs no settings.
    from esper_ab.commands._launch_flags import typed_flags
    from esper_ab.commands.launch import command as launch

    check_name(name)
    for flag in launch_flags:
        if flag.partition("=")[0] in _OWN:
            raise UsageError(f"{flag}: the script sets this flag itself; leave it out")
    context = launch.make_context("launch", list(launch_flags))
    _check_flags(typed_flags(context.params))
    options = _options(name, **flags)
    click.echo(batch_script(output_dir / name, launch_flags, _collect_resume_flags(context), options, setup), nl=False)


def _check_flags(flags: LaunchFlags) -> None:
    """Raise UsageError, before the job starts, for flags that `launch` would refuse on any node."""
    # Imported here, because --help needs no settings.
    from esper_ab.campaign.answering import parse_requirements
    from esper_ab.campaign.launcher import launcher_factory
    from esper_ab.commands._requested_campaign import read_campaign
    from esper_ab.design.check import check_design
    from esper_ab.design.design import comparisons

    campaign = read_campaign(flags)
    launcher_factory(_LAUNCHER, campaign.launcher.own)
    asked_experiment = campaign.parts[0].asked  # all parts have the same groups and control
    check_design(asked_experiment)
    group_names = [group.name for group in asked_experiment.groups]
    has_guardrails = bool(asked_experiment.guardrails)
    parse_requirements(flags.fail_unless, group_names, comparisons(asked_experiment), has_guardrails=has_guardrails)


def _collect_resume_flags(launch_context: click.Context) -> Words:
    """Return the flags of `launch` that `resume` must repeat, because the journal does not record them."""
    words: list[str] = []
    for param in launch_context.command.params:
        name = param.name or ""
        is_given = launch_context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_given and name in (*LAUNCHER_FLAGS, "fail_unless"):
            words += _spell_flag(param.opts[0], launch_context.params[name])
    return tuple(words)


def _spell_flag(flag: str, value: Any) -> list[str]:
    """Return a flag with its value; one that is repeatable with each of its values."""
    if value is True:
        return [flag]
    if isinstance(value, tuple):
        words: list[str] = []
        for item in value:
            words += [flag, str(item)]
        return words
    return [flag, str(value)]


def _options(name: str, *, nodes: int, cores: int, gpus: int, time: str | None, sbatch: Words) -> Words:
    """Return options for sbatch: the allocation survives the loss of a node, stops cleanly and can be requeued.

    The job's output file goes into the current folder, because Slurm creates no folders.
    """
    output = str(Path.cwd() / f"{name}.slurm.txt").replace("%", "%%")  # % starts a replacement
    options = [f"--job-name={name}", f"--nodes={nodes}", "--ntasks-per-node=1", f"--cpus-per-task={cores}"]
    if gpus:
        options.append(f"--gpus-per-node={gpus}")
    if time:
        options.append(f"--time={time}")
    options += [
        "--no-kill",
        "--requeue",
        "--propagate=NONE",
        f"--signal=B:TERM@{_WARNING_S}",
        "--open-mode=append",
        f"--output={output}",
    ]
    return (*options, *sbatch)


def batch_script(experiment_dir: Path, flags: Words, resume_flags: Words, options: Words, setup: Words) -> str:
    """Return the script's text; `flags` are the flags of `launch`, and `resume_flags` are the flags that `resume`
    repeats.

    Because the script uses `exec`, signals that Slurm sends to the script reach the coordinator itself.
    """
    place_flags = ("--name", experiment_dir.name, "--output-dir", str(experiment_dir.parent))
    resume = shlex.join(child_command(_PROGRAM, "resume", str(experiment_dir), *resume_flags, *_BOTH, outlives=True))
    launch = shlex.join(child_command(_PROGRAM, "launch", *flags, *place_flags, *_BOTH, "--yes", outlives=True))
    journal = shlex.quote(str(experiment_dir / JOURNAL_NAME))
    joint_file = shlex.quote(str(experiment_dir / JOINT_NAME))
    begun_test = (
        f"{{ read -r _ < {journal}; }} 2> /dev/null || [[ -s {joint_file} ]]"  # read fails without a whole line
    )
    lines = (
        "#!/bin/bash",
        *(f"#SBATCH {_quoted(option)}" for option in options),
        *setup,
        f"cd {shlex.quote(str(Path.cwd()))} || exit 2",
        f"if {begun_test}; then",
        f"    exec {resume}",
        "fi",
        f"exec {launch}",
    )
    return "\n".join(lines) + "\n"


def _quoted(option: str) -> str:
    """Quote an option for a #SBATCH line. Unlike in a shell, a backslash is special there even within quotes."""
    name, equals_sign, value = option.partition("=")
    if not equals_sign:
        return option
    doubled_value = value.replace("\\", r"\\")
    return f"{name}={shlex.quote(doubled_value)}"
