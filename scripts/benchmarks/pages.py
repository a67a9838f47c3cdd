"""Writes the tables of docs/evidence/scaling.md from measurements; fits the rates of kinds/growth/estimate.py."""

import json
import math
from pathlib import Path
from typing import Any

from benchmarks.markdown import hosts_of, table
from esper_ab.contracts import catalog
from esper_ab.contracts.machine import TaskFacts
from esper_ab.contracts.settings import GrowthSettings
from esper_ab.kinds.growth import estimate
from esper_ab.kinds.growth.estimate import Rates
from workers.kinds.growth.preflight import task_facts

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/evidence/scaling.md"
DATA = ROOT / "docs/evidence/benchmarks"
BATCHES = {"digits": 64, "cifar10": 32}  # of scripts/bench
TRAINING_WAYS = {  # of each way of training hosts
    "NATIVE": [
        Rates(value=value, validated=validated, step_s=step_s)
        for value in (5, 10, 15, 20, 30, 40, 50)
        for validated in (0.5, 1.0, 1.5, 2.0, 3.0)
        for step_s in (0.0, 0.1e-3, 0.2e-3, 0.3e-3, 0.5e-3, 1e-3)
    ],
    "TORCH": [
        Rates(value=value, validated=validated, step_s=step_s)
        for value in (100, 150, 200, 300, 400, 500)
        for validated in (1.0, 1.5, 2.0, 3.0, 4.0, 5.0)
        for step_s in (1.5e-3, 2e-3, 3e-3, 5e-3, 10e-3, 15e-3)
    ],
}


def task(name: str, **sizes: int) -> TaskFacts:
    """Return the task as planning sees it; `train` and `validation`: sample counts of a measurement."""
    facts = task_facts(catalog.entry("workers.kinds.growth.tasks", name, "TASK"))
    if not sizes:
        return facts
    fields = {field: getattr(facts, field) for field in facts.__struct_fields__}
    return TaskFacts(**{**fields, "sizes": (sizes["train"], sizes["validation"], facts.sizes[2])})


def predicted(episode: dict[str, Any], speed: float, rates: Rates) -> float:
    """Return the estimated seconds of a measured episode."""
    name = episode["case"]["task"]
    facts = task(name, train=episode["train_samples"], validation=episode["validation_samples"])
    return episode["steps"] * estimate.epoch_s(facts, episode["case"]["n_envs"], BATCHES[name], speed, rates)


def way(episode: dict[str, Any]) -> str:
    """Return which rates of kinds/growth/estimate.py apply to a measured episode."""
    return "TORCH" if episode["kernel"] == "torch" else "NATIVE"


def fitted(episodes: list[dict[str, Any]], speed: float, name: str) -> Rates:
    """Return, among the rates tried, those with the smallest squared error of the logarithm."""

    def error(rates: Rates) -> float:
        measured_cells = [episode for episode in episodes if way(episode) == name]
        return sum(
            math.log(predicted(episode, speed, rates) / episode["seconds"]["median"]) ** 2 for episode in measured_cells
        )

    return min(TRAINING_WAYS[name], key=error)


def episodes_table(episodes: list[dict[str, Any]], speed: float) -> list[str]:
    """Return a table of measured and estimated episode times."""
    rows = []
    for episode in episodes:
        predicted_s = predicted(episode, speed, getattr(estimate, way(episode)))
        measured_s = episode["seconds"]["median"]
        rows.append(
            [
                hosts_of(episode["case"]),
                episode["case"]["n_envs"],
                way(episode).lower(),
                episode["train_samples"],
                f"{measured_s:.2f}",
                f"{predicted_s:.2f}",
                f"{predicted_s / measured_s:.2f}",
            ]
        )
    header = "hosts | n_envs | kernel | training images | measured, s per episode | estimated | ÷ measured"
    return table(header, rows)


def growth_table(speed: float) -> list[str]:
    """Return core-hours of whole experiments on this machine's cores."""
    rows = []
    for name, n_envs, groups, replicates, episodes in (
        ("digits", 4, 2, 6, 3),
        ("digits", 16, 2, 20, 50),
        ("digits", 64, 2, 32, 100),
        ("digits", 16, 6, 20, 50),
        ("cifar10", 4, 2, 20, 10),
        ("cifar10", 16, 2, 32, 50),
    ):
        epoch = estimate.epoch_s(task(name), n_envs, GrowthSettings().batch_size, speed, estimate.NATIVE)
        run_h = epoch * 25 * (episodes + 2) / 3600
        hours = run_h * math.ceil(replicates / min(64 // groups, replicates))
        rows.append([name, n_envs, groups, replicates, episodes, f"{run_h * groups * replicates:.2f}", f"{hours:.2f}"])
    return table("task | n_envs | groups | seeds | episodes | core-hours | on 64 cores, hours", rows)


def memory_table(cells: list[dict[str, Any]]) -> list[str]:
    """Return memory by n_envs and host, with three live seeds."""
    return table(
        "hosts | n_envs | kept per environment, KiB | a worker grew by, MiB",
        (
            [
                hosts_of(cell["case"]),
                cell["case"]["n_envs"],
                f"{cell['kept_bytes_per_env'] / 1024:.0f}",
                f"{cell['grown_mib']:.0f}",
            ]
            for cell in cells
        ),
    )


def coordinator_table(cells: list[dict[str, Any]]) -> list[str]:
    """Return the cost of a record, and how many records per second saturate one core."""
    header = "blocks | runs each | n_envs | last report to release, median | worst | core per record, µs | full at"
    return table(
        header,
        (
            [
                cell["blocks"],
                cell["runs"],
                cell["n_envs"],
                f"{cell['wait_ms']['median']:.1f} ms",
                f"{cell['wait_ms']['max']:.1f} ms",
                f"{cell['core_us_per_record']:.0f}",
                f"{1e6 / cell['core_us_per_record']:,.0f} records/s",
            ]
            for cell in cells
        ),
    )


def fleet_table(record: dict[str, Any]) -> list[str]:
    """Return the table of thousands of concurrent runs."""
    machine = record["machine"]
    header = (
        "runs | nodes | start to last assignment, s | core, s | last report to last release, s | core, s "
        "| core per record, µs | memory at most, MiB"
    )
    rows = (
        [
            f"{cell['runs']:,}",
            cell["nodes"],
            f"{cell['start_s']:.1f}",
            f"{cell['start_core_s']:.1f}",
            f"{cell['release_s']:.2f}",
            f"{cell['round_core_s']:.2f}",
            f"{cell['core_us_per_record']:.0f}",
            f"{cell['memory_mib']:,.0f}",
        ]
        for cell in record["cells"]
    )
    return [
        f"Measured by `scripts/bench fleet` on {machine['processor']} (family {machine['family']}, "
        f"model {machine['model']}), {machine['cores']} cores, "
        f"load average at the start {machine['load_average']:.1f}.",
        "",
        *table(header, rows),
    ]


def with_section(page: str, mark: str, text: str) -> str:
    """Return `page` with the text between <!-- mark --> and <!-- /mark --> replaced; ValueError if the marks are
    missing.
    """
    begin = f"<!-- {mark} -->"
    end = f"<!-- /{mark} -->"
    head, begin_mark, tail_with_old_text = page.partition(begin)
    _, end_mark, tail = tail_with_old_text.partition(end)
    if not (begin_mark and end_mark):
        raise ValueError(f"no {begin} … {end} in the page")
    return f"{head}{begin}\n{text}\n{end}{tail}"


def with_tables(page: str) -> str:
    """Return the text of the page with the tables of the stored measurements."""
    hosts, coordination, fleet = map(_stored, ("hosts", "coordination", "fleet"))
    speed = hosts["machine"]["multiply_adds_per_s"]
    for mark, lines in {
        "episode table": episodes_table(hosts["episode"], speed),
        "growth table": growth_table(speed),
        "memory table": memory_table(hosts["memory"]),
        "coordinator table": coordinator_table(coordination["cells"]),
        "fleet table": fleet_table(fleet),
    }.items():
        page = with_section(page, mark, "\n".join(lines))
    return page


def _stored(part: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((DATA / f"{part}.json").read_text(encoding="utf-8"))
    return record


def write() -> None:
    """Write the tables, and print fitted rates next to those in the code."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    hosts = _stored("hosts")
    speed = hosts["machine"]["multiply_adds_per_s"]
    print("\n".join(episodes_table(hosts["episode"], speed)))
    for name in TRAINING_WAYS:
        print(f"{name} in esper_ab/kinds/growth/estimate.py: {getattr(estimate, name)}")
        print(f"    fitted to hosts.json: {fitted(hosts['episode'], speed, name)}")
