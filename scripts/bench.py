"""Benchmarks: interleaved side-by-side measurements; each run writes JSON and a table to docs/evidence/benchmarks/.

scripts/bench hosts                        native kernel against torch path and loop; episodes; memory
scripts/bench hosts --quick                fewer cells and repeats; results are written only with --out
scripts/bench coordination                 barrier round trip, and many concurrent blocks
scripts/bench fleet                        1,000 to 10,000 runs at once, over TCP with keys; a minute and a half
scripts/bench startup                      --help, status, launch to first episode
scripts/bench records                      report, status, query over 10^5 and 10^6 records; 3 GB of disk
scripts/bench judging                      judge of 10^5 and 10^6 rows of three kinds, beside reading them
scripts/bench ppo                          PPO against the bare environment; --sb3 PYTHON: also Stable-Baselines3
scripts/bench precision                    host training in bfloat16 against float32, on one core; half a minute
scripts/bench gpu                          torch on a GPU against the native kernel on a core; needs a GPU
scripts/bench tables                       rewrite all pages from the stored records, and fit the rates of estimates
scripts/bench all                          every part but gpu, each in its own process
"""

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
PARTS = ("hosts", "coordination", "fleet", "startup", "records", "judging", "ppo", "precision")


def _arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("part", choices=[*PARTS, "gpu", "tables", "all"])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="3 repeats; results are written only with --out")
    parser.add_argument("--sb3", default="", metavar="PYTHON", help="interpreter with stable-baselines3 installed")
    parser.add_argument("--out", type=Path, help="folder for the records (default docs/evidence/benchmarks)")
    return parser.parse_args(arguments)


def measure(part: str, machine: dict[str, Any], options: argparse.Namespace, arguments: list[str]) -> None:
    """Run a part; write its record and, if it has one, its page."""
    module = importlib.import_module(f"benchmarks.{part}")
    options_of_part = {"sb3": options.sb3} if part == "ppo" else {}
    part_results = module.measure(3 if options.quick else options.repeats, **options_of_part)
    record = {"machine": machine, "command": " ".join(["scripts/bench", *arguments]), **part_results}
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
    """Return the page: title, machine and the module's tables."""
    machine = record["machine"]
    description = (
        f"Written by `scripts/bench {part}`. {machine['processor']} (family {machine['family']}, "
        f"model {machine['model']}), {machine['cores']} cores, torch {machine['torch']}. "
        f"Load average at the start {machine['load_average']:.1f}."
    )
    title = (module.__doc__ or part).splitlines()[0].rstrip(".")
    return "\n".join([f"# {title}", "", description, "", *module.render(record)]) + "\n"


def write_pages() -> None:
    """Write the page of each part from its stored record."""
    for part in PARTS:
        module = importlib.import_module(f"benchmarks.{part}")
        if hasattr(module, "render"):
            (DOCS / f"{part}.md").write_text(page(part, module, json.loads((DOCS / f"{part}.json").read_text())))


def every_part(arguments: list[str]) -> None:
    """Run all parts one after another; stop at the first failure."""
    other_words = [word for word in arguments if word != "all"]
    for part in PARTS:
        subprocess.run([sys.executable, __file__, part, *other_words], check=True)


def main(arguments: list[str]) -> None:
    """Run one part and write its record and table."""
    options = _arguments(arguments)
    if options.part == "all":
        every_part(arguments)
        return
    if options.part == "tables":
        from benchmarks import pages  # with the packages whose rates it fits

        pages.write()
        write_pages()
        return
    import torch
    from benchmarks import machine

    from workers.process.setup import end, keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()  # as a worker does; the loop gets it for nothing
    measure(options.part, machine.describe(), options, arguments)
    end()  # without Python's clean-up, in which a thread of torch that still frees a graph for a GPU would abort


if __name__ == "__main__":
    main(sys.argv[1:])
