"""`esper-ab growth`: grow hosts and seed modules without an experiment; child processes do the work."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Any

import click
import msgspec

from esper_ab.campaign.reward_audit import FILE_NAME, PAGE_NAME, audit, check_folder, encode, save
from esper_ab.commands._exit_status import epilog
from esper_ab.commands._options import ExperimentCommand, hosts_options
from esper_ab.commands._parameters import AT_LEAST_1, PATH, Command, CommandGroup, json_flag, valued
from esper_ab.contracts import catalog
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.reward_audit import RewardAuditQuestion
from esper_ab.contracts.shell_command import typeable
from esper_ab.contracts.solo import Host, Seed, SoloAnswer, SoloQuestion
from esper_ab.contracts.wording import counted, did_you_mean
from esper_ab.control.child_answer import answer_of
from esper_ab.settings.assignments import read_assignment
from esper_ab.settings.reward_audit import KERNELS
from esper_ab.settings.reward_audit import make_question as make_audit_question

_OPS = ("germinated", "advanced", "fossilised", "pruned")
_AUDIT = RewardAuditQuestion(rewards=())
_DECODER = msgspec.json.Decoder(SoloAnswer)
_TEXT = msgspec.json.Decoder(str)


@click.group(cls=CommandGroup, epilog=epilog("esper-ab growth rewards shaped sparse", "esper-ab growth fetch cifar10"))
def command() -> None:
    """Audit rewards for growth, run its heuristic controller alone, or download a task's data."""


@command.command(
    cls=Command,
    epilog=epilog(
        "esper-ab growth rewards",
        "esper-ab growth rewards shaped mine.py:reward --task digits --schedules 128",
        "esper-ab growth rewards simplified --set reward.pbrs_weight=0.1 --out reward-audits/weaker-potential",
    ),
)
@click.argument("rewards", metavar="[MODE | FILE:FUNCTION]…", nargs=-1)
@hosts_options("task", "data_dir")
@valued("--slots", "A,B,…", "Slots that may grow a seed module, in network order. [default: all]", default="")
@valued(
    "--schedules",
    "N",
    "Number of random schedules, from which the best of n are chosen.",
    type=click.IntRange(2),
    default=_AUDIT.schedules,
)
@valued("--hosts", "N", "Number of hosts on which each behaviour is tried.", type=AT_LEAST_1, default=_AUDIT.hosts)
@valued(
    "--search",
    "N",
    "Number of behaviours to try in the search for the one that each reward pays most; 0 means no search.",
    "searched",
    type=click.IntRange(0),
    default=_AUDIT.searched,
)
@valued("--steps", "N", "Decisions (and host epochs) per episode.", type=click.IntRange(2), default=_AUDIT.steps)
@valued(
    "--set", "KEY=VALUE", "Change a reward or growth setting for all rewards. Repeatable.", "assignments", multiple=True
)
@hosts_options("rng_seed", "device")
@valued(
    "--kernel",
    None,
    "Train hosts on a CPU with torch or with the native kernel; auto: the native kernel if it is available.",
    type=click.Choice(KERNELS),
    default=KERNELS[0],
)
@valued("--out", "DIR", "Folder for the files. [default: reward-audits/TASK-DIGEST]", type=PATH)
@json_flag
def rewards(out: Path | None, json: bool, slots: str, assignments: tuple[str, ...], **options: Any) -> None:
    """Show the returns that rewards give to known behaviours, and the outcome lost by choosing behaviours by return.

    No policy is trained. Without arguments, every reward mode of the catalogue is audited.
    """
    question = make_audit_question(
        slots=tuple(filter(None, slots.split(","))),
        assignments=[read_assignment(text, f"--set {text}") for text in assignments],
        **options,
    )
    # Imported here, so that --help needs neither scipy nor matplotlib.
    from esper_ab.analysis.reward_audit import findings_of
    from esper_ab.live.console import waiting
    from esper_ab.report.page import render_page
    from esper_ab.report.reward_audit import reward_audit_report
    from esper_ab.report.text import render_text

    if out is not None:
        check_folder(out)
    with waiting("growing hosts with every behaviour"):
        reward_audit = audit(question)
    document = reward_audit_report(findings_of(reward_audit))
    folder = save(reward_audit, render_page(document), out)
    if json:
        click.echo(encode(reward_audit).decode().strip())
    else:
        data = folder / FILE_NAME
        page = folder / PAGE_NAME
        click.echo(f"{typeable(render_text(document, in_full=True))}\nreward audit: {data}\npage: {page}")


@command.command(
    cls=ExperimentCommand,
    epilog=epilog(
        "esper-ab growth heuristic --task digits --episodes 1 --slots early mid late",
        "esper-ab growth heuristic --task synthetic --steps 25 --n-envs 2 --json",
    ),
)
@hosts_options("task", "data_dir")
@valued("--slots", "A B …", "Slots that may grow a seed module, in network order. [default: all]")
@valued("--episodes", "N", "Episodes, each on fresh hosts.", type=AT_LEAST_1, default=1)
@valued(
    "--steps",
    "N",
    "Decisions (and host epochs) per episode. The default of an experiment is 25, which rarely leaves time for a "
    "second seed module.",
    type=AT_LEAST_1,
    default=75,
)
@valued("--n-envs", "N", "Hosts per episode.", type=AT_LEAST_1, default=4)
@hosts_options("rng_seed", "device")
@json_flag
def heuristic(json: bool, **options: Any) -> None:
    """Grow hosts with the heuristic controller alone.

    The output counts the germinations, advances, fossilisations and prunings in each slot. Nothing is compared, and no
    experiment directory is written; to compare the controller, use `launch --groups heuristic,…`.
    """
    question = make_question(**options)
    answer = answer_of("workers.kinds.growth.commands.heuristic", question, _DECODER)
    counts = {"by_slot": count_by_slot(answer), "several_slots": count_several_slots(answer)}
    tree = msgspec.to_builtins({"question": question, "kernel": answer.kernel, **counts, "hosts": answer.hosts})
    if json:
        click.echo(json_module.dumps(tree))
    else:
        click.echo(typeable(describe_answer(question, answer)))


@command.command(
    cls=Command,
    epilog=epilog(
        "esper-ab growth fetch cifar10",
        "esper-ab growth fetch cifar10 --data-dir data",
    ),
)
@click.argument("task", metavar="TASK")
@valued("--data-dir", "DIR", "Folder for the data. [default: the user's cache folder]", default="")
@json_flag
def fetch(task: str, data_dir: str, json: bool) -> None:
    """Download the data of TASK (cifar10), and verify its size and checksum."""
    detail = answer_of("workers.kinds.growth.commands.fetch", (task, data_dir), _TEXT)
    if json:
        click.echo(json_module.dumps({"task": task, "detail": detail}))
    else:
        click.echo(typeable(detail))


def make_question(*, slots: str | None, **options: Any) -> SoloQuestion:
    """Return the question for the child process; UsageError for an unknown task or empty --slots."""
    known_tasks = catalog.names("workers.kinds.growth.tasks")
    if options["task"] not in known_tasks:
        raise UsageError(f"no task {options['task']!r}; {did_you_mean(options['task'], known_tasks)}")
    named_slots = tuple(filter(None, (slots or "").split(",")))
    if slots is not None and not named_slots:
        raise UsageError("--slots: name at least one slot, as in --slots early late, or omit the flag for all slots")
    return SoloQuestion(slots=named_slots, **options)


def count_by_slot(answer: SoloAnswer) -> dict[str, dict[str, int]]:
    """Count operations by slot, over all hosts."""
    seeds = [seed for host in answer.hosts for seed in host.seeds]
    return {slot: _done([seed for seed in seeds if seed.slot == slot]) for slot in answer.slots}


def _done(seeds: list[Seed]) -> dict[str, int]:
    ends = [seed.end for seed in seeds]
    return {
        "germinated": len(seeds),
        "advanced": sum(seed.advanced for seed in seeds),
        "fossilised": ends.count("fossilized"),
        "pruned": ends.count("pruned"),
    }


def count_several_slots(answer: SoloAnswer) -> int:
    """Count the hosts that have seed modules in more than one slot."""
    slots = [{seed.slot for seed in host.seeds} for host in answer.hosts]
    return sum(len(host_slots) > 1 for host_slots in slots)


def describe_answer(question: SoloQuestion, answer: SoloAnswer) -> str:
    """Return the answer as text: a table of slots, and then one line per host."""
    hosts = answer.hosts
    accuracies = [host.held_out_accuracy for host in hosts]
    width = max(map(len, ("slot", *answer.slots)))
    table = [f"{'slot':<{width}}  {'  '.join(_OPS)}"]
    for slot, counts in count_by_slot(answer).items():
        cells = "  ".join(f"{counts[op]:>{len(op)}}" for op in _OPS)
        table.append(f"{slot:<{width}}  {cells}")
    size = f"{question.episodes} x {counted(question.n_envs, 'host')} of {counted(question.steps, 'step')}"
    mean = sum(accuracies) / len(hosts)
    lines = [
        f"heuristic on {question.task}: {size}, rng seed {question.rng_seed}, trained by {answer.kernel}",
        "",
        *table,
        "",
        f"held-out accuracy {mean:.2f} % ({min(accuracies):.2f} to {max(accuracies):.2f})",
        f"seed modules in more than one slot: {count_several_slots(answer)} of {len(hosts)} hosts",
        "",
    ]
    lines += map(_line, hosts)
    return "\n".join(lines)


def _line(host: Host) -> str:
    if host.settled_step is None:
        settled_words = "never settled"
    else:
        settled_words = f"settled at step {host.settled_step}"
    if host.seeds:
        seeds = "; ".join(map(_life, host.seeds))
    else:
        seeds = f"no seed module: {host.unsettled_steps} steps not settled, {host.improving_steps} without a plateau"
    end = ", diverged" if host.diverged else ""
    return f"{host.episode}/{host.env}: {host.held_out_accuracy:.2f} %, {settled_words}{end}; {seeds}"


def _life(seed: Seed) -> str:
    words = {"fossilized": f"fossilised at {seed.end_step}", "pruned": f"pruned at {seed.end_step}"}
    return f"{seed.slot} {seed.blueprint} from {seed.germinated}, {words.get(seed.end, 'under way')}"
