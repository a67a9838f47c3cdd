"""How fast? Ratios measured side by side, interleaved; one JSON and one table per run under docs/evidence/benchmarks/.

    scripts/bench hosts                        the native kernel beside the torch path and a loop, episodes, memory
    scripts/bench hosts --envs 16 --quick      fewer cells, fewer repeats; of every part written only with --out
    scripts/bench hosts --compile              also vmap under torch.compile for bare hosts, some minutes more
    scripts/bench profile                      what a training step is made of
    scripts/bench deterministic                what --deterministic costs
    scripts/bench devices                      one run on one device and on two
    scripts/bench coordination                 barrier round trip, and many blocks at once
    scripts/bench fleet                        1,000 to 10,000 runs at once, over TCP with keys; a minute and a half
    scripts/bench clusters                     faults with each launcher that is installed
    scripts/bench scaling                      two runs on two cores against one on one
    scripts/bench startup                      --help, status, launch to first episode
    scripts/bench records                      report, status, query over 10^5 and 10^6 records; 3 GB of disk
    scripts/bench ppo                          PPO beside the environment alone; --sb3 PYTHON: beside Stable-Baselines3
    scripts/bench tables                       measures nothing: docs/evidence/scaling.md from the records, fitted rates
    scripts/bench all                          every part, each in a process of its own
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))  # fake workers and their plans
DOCS = ROOT / "docs" / "evidence" / "benchmarks"
PARTS = (
    "hosts", "profile", "deterministic", "devices", "coordination", "fleet", "clusters", "scaling", "startup",
    "records", "ppo",
)  # fmt: skip


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("part", choices=[*PARTS, "tables", "all"])
    parser.add_argument("--tasks", nargs="+", default=["digits", "cifar10"], choices=["digits", "cifar10"])
    parser.add_argument("--envs", nargs="+", type=int, default=[1, 4, 16, 64])
    parser.add_argument("--live-seeds", nargs="+", type=int, default=[0, 1, 3], choices=[0, 1, 2, 3])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="3 repeats; written only with --out")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--sb3", default="", metavar="PYTHON", help="an interpreter that has stable-baselines3")
    parser.add_argument("--out", type=Path, help="folder of the records (default docs/evidence/benchmarks)")
    return parser.parse_args(words)


def small(part: str, about: dict[str, Any], options: argparse.Namespace, words: list[str]) -> None:
    """A part that is a module: its record, and its page where it has one."""
    module = importlib.import_module(f"benchmarks.{part}")
    others = {"sb3": options.sb3} if part == "ppo" else {}
    found = module.measure(3 if options.quick else options.repeats, **others)
    record = {"machine": about, "command": " ".join(["scripts/bench", *words]), **found}
    if options.quick and options.out is None:
        print(page(part, module, record) if hasattr(module, "render") else json.dumps(record, indent=1))
        return
    folder = options.out or DOCS
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{part}.json").write_text(json.dumps(record, indent=1) + "\n")
    if hasattr(module, "render"):
        (folder / f"{part}.md").write_text(page(part, module, record))
    print(f"written: {folder / part}.json")


def page(part: str, module: ModuleType, record: dict[str, Any]) -> str:
    """What was measured, on which machine, and the module's tables."""
    about = record["machine"]
    where = (
        f"Written by `scripts/bench {part}`. {about['processor']} (family {about['family']}, model {about['model']}), "
        f"{about['cores']} cores, torch {about['torch']}. Load average at the start {about['load_average']:.1f}."
    )
    title = (module.__doc__ or part).splitlines()[0].rstrip(".")
    return "\n".join([f"# {title}", "", where, "", *module.render(record)]) + "\n"


def every_part(words: list[str]) -> None:
    """One after the other; a part that fails ends it."""
    rest = [word for word in words if word != "all"]
    for part in PARTS:
        subprocess.run([sys.executable, __file__, part, *rest], check=True)


def main(words: list[str]) -> None:
    """Run one part and write its record and table."""
    options = _arguments(words)
    if options.part == "all":
        every_part(words)
        return
    if options.part == "tables":
        from benchmarks import pages  # with the packages whose rates it fits

        pages.write()
        return
    import torch
    from benchmarks import hosts, machine, table
    from benchmarks.worlds import Case

    from workers.process.setup import keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()  # as a worker does; the loop gets it for nothing
    about = machine.describe()
    if options.part != "hosts":
        small(options.part, about, options, words)
        return
    cases = [
        Case(task=task, n_envs=n, live_seeds=seeds, batches={1: 16, 4: 8}.get(n, 4))
        for task in options.tasks
        for seeds in options.live_seeds
        for n in options.envs
    ]
    cases += [
        Case(task=task, n_envs=16, live_seeds=seeds, equal_seeds=True)
        for task in options.tasks
        for seeds in options.live_seeds
        if seeds and 16 in options.envs
    ]
    repeats = 3 if options.quick else options.repeats
    found = hosts.measure_all(cases, repeats, compiled=options.compile)
    record = {"machine": about, "command": " ".join(["scripts/bench", *words]), **found}
    if options.quick and options.out is None:
        print(table.render(record))
        return
    folder = options.out or DOCS
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hosts.json").write_text(json.dumps(record, indent=1) + "\n")
    (folder / "hosts.md").write_text(table.render(record))
    print(f"written: {folder / 'hosts.json'}, {folder / 'hosts.md'}")


if __name__ == "__main__":
    main(sys.argv[1:])
