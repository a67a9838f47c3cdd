"""`esper-ab heuristic`: the hand-written controller alone, slot by slot; a child of the data plane grows the hosts."""

from __future__ import annotations

import json as json_module
from typing import Any

import click
import msgspec

from esper_ab.commands._exit_status import epilog
from esper_ab.commands._options import ExperimentCommand, hosts_options, shared_options
from esper_ab.contracts import catalog
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.solo import Host, Seed, SoloAnswer, SoloQuestion
from esper_ab.execution.child import answer_of
from esper_ab.settings.assignments import did_you_mean
from esper_ab.stats.text import counted

_OPS = ("germinated", "advanced", "fossilised", "pruned")
_decode_answer = msgspec.json.Decoder(SoloAnswer).decode


@click.command(cls=ExperimentCommand, epilog=epilog(
    "esper-ab heuristic --task digits --episodes 1 --slots early mid late",
    "esper-ab heuristic --task synthetic --steps 25 --n-envs 2 --json",
))  # fmt: skip
@hosts_options("task", "data_dir")
@click.option("--slots", metavar="A B …", help="Slots that may grow, in "
              "network order. [default: all]")
@click.option("--episodes", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Each on "
              "fresh hosts.")
@click.option("--steps", type=click.IntRange(1), default=75, show_default=True, metavar="N", help="Host epochs, "
              "and decisions, per episode. An experiment has 25, in which a second seed module is rare.")
@click.option("--n-envs", type=click.IntRange(1), default=4, show_default=True, metavar="N", help="Hosts per episode.")
@hosts_options("rng_seed", "device")
@shared_options("json")
def command(json: bool, **options: Any) -> None:
    """Grow hosts by the heuristic controller alone, and count what it does in each slot.

    It germinates, advances, fossilises and prunes. Nothing is compared and no experiment directory is written;
    `launch --groups heuristic,…` compares.
    """
    asked = make_question(**options)
    said = answer_of("workers.commands.heuristic", line=msgspec.json.encode(asked))
    answer = _decode_answer(said)
    if json:
        counts = {"by_slot": count_by_slot(answer), "several_slots": count_several_slots(answer)}
        tree = {"question": asked, "kernel": answer.kernel, **counts}
        click.echo(json_module.dumps(msgspec.to_builtins(tree | {"hosts": answer.hosts})))
    else:
        click.echo(describe_answer(asked, answer))


def make_question(*, slots: str | None, **options: Any) -> SoloQuestion:
    """The question that the flags ask; UsageError for an unknown task."""
    known = catalog.names("workers.tasks")
    if options["task"] not in known:
        raise UsageError(f"no task {options['task']!r}; {did_you_mean(options['task'], known)}")
    named = tuple(slot for slot in (slots or "").split(",") if slot)
    if slots is not None and not named:
        raise UsageError("--slots: names are missing, as in --slots early late; leave it out for all there are")
    return SoloQuestion(slots=named, **options)


def count_by_slot(answer: SoloAnswer) -> dict[str, dict[str, int]]:
    """Counts of operations by slot, over all hosts."""
    seeds = [seed for host in answer.hosts for seed in host.seeds]
    done = {slot: _done([seed for seed in seeds if seed.slot == slot]) for slot in answer.slots}
    return {slot: dict(zip(_OPS, counts, strict=True)) for slot, counts in done.items()}


def _done(seeds: list[Seed]) -> tuple[int, ...]:
    ends = [seed.end for seed in seeds]
    return len(seeds), sum(seed.advanced for seed in seeds), ends.count("fossilized"), ends.count("pruned")


def count_several_slots(answer: SoloAnswer) -> int:
    """Number of hosts with seeds in more than one slot."""
    return sum(len({seed.slot for seed in host.seeds}) > 1 for host in answer.hosts)


def describe_answer(asked: SoloQuestion, answer: SoloAnswer) -> str:
    """The answer in words: a table of slots, then a line per host."""
    hosts = answer.hosts
    accuracies = [host.held_out_accuracy for host in hosts]
    width = max(map(len, ("slot", *answer.slots)))
    table = [f"{'slot':<{width}}  {'  '.join(_OPS)}"]
    for slot, counts in count_by_slot(answer).items():
        table.append(f"{slot:<{width}}  {'  '.join(f'{counts[op]:>{len(op)}}' for op in _OPS)}")
    return "\n".join((
        f"heuristic on {asked.task}: {asked.episodes} x {counted(asked.n_envs, 'host')} of "
        f"{counted(asked.steps, 'step')}, rng seed {asked.rng_seed}, trained by {answer.kernel}",
        "", *table, "",
        f"held-out accuracy {sum(accuracies) / len(hosts):.2f} % ({min(accuracies):.2f} to {max(accuracies):.2f})",
        f"seed modules in more than one slot: {count_several_slots(answer)} of {len(hosts)} hosts", "",
        *map(_line, hosts),
    ))


def _line(host: Host) -> str:
    settled = "never settled" if host.settled_step is None else f"settled at step {host.settled_step}"
    seeds = "; ".join(map(_life, host.seeds)) or (
        f"no seed module: {host.unsettled_steps} steps not settled, {host.improving_steps} without a plateau"
    )
    end = ", diverged" if host.diverged else ""
    return f"{host.episode}/{host.env}: {host.held_out_accuracy:.2f} %, {settled}{end}; {seeds}"


def _life(seed: Seed) -> str:
    words = {"fossilized": f"fossilised at {seed.end_step}", "pruned": f"pruned at {seed.end_step}"}
    return f"{seed.slot} {seed.blueprint} from {seed.germinated}, {words.get(seed.end, 'under way')}"
