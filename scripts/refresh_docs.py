"""Refresh the pictures, examples and numbers in docs, or list those older than the code they measure.

    scripts/refresh_docs                  refresh the demo's example, its picture, two pages' pictures and the
                                          benchmark tables (minutes); then list outdated products
    scripts/refresh_docs --check          only list outdated products; exit status 1 if there are any
    scripts/refresh_docs --only NAME…     refresh only these, hours for some; see --list
    scripts/refresh_docs --list           list all products: files, code they measure, command

A file is outdated if a commit after its own changed the code that it measures. The picture needs Chromium.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE, SHAPING = (f"docs/examples/{name}" for name in ("demo", "shaping"))
OTHER_NUMBERS = "docs/examples/other-numbers.csv"  # outcomes of screening.toml, as an external table
_SHOWN_FILES = ("report.html", "summary.txt")
_KEPT_FILES = (*_SHOWN_FILES, "verdict.json")
_TRAINING = ("workers/kinds/growth", "workers/native", "workers/ppo", "workers/kinds/growth/rewards", "workers/run")
_STATISTICS = ("esper_ab/design", "esper_ab/stats", "esper_ab/verdict")
_CONTROL = ("esper_ab/control", "esper_ab/journal", "workers/process")


@dataclass(frozen=True, kw_only=True)
class Product:
    """Files in docs made by one command; `code` is the code that the files measure or show."""

    files: tuple[str, ...]
    code: tuple[str, ...]
    command: tuple[str, ...]  # that measures anew


def _bench(part: str, *code: str, pages: bool = True) -> Product:
    files = (f"docs/evidence/benchmarks/{part}.json", *((f"docs/evidence/benchmarks/{part}.md",) if pages else ()))
    return Product(files=files, code=code, command=("scripts/bench", part))


PRODUCTS = {
    "example": Product(
        files=("docs/report.png", *(f"{EXAMPLE}/{name}" for name in _KEPT_FILES)),
        code=("esper_ab/report", "esper_ab/verdict", "esper_ab/analysis"),
        command=("scripts/refresh_docs",),
    ),
    "shaping": Product(
        files=tuple(f"{SHAPING}/{name}" for name in (*_SHOWN_FILES, "curves.png")),
        code=("esper_ab/report", "esper_ab/verdict", "esper_ab/analysis", "workers/kinds/gymnasium", "workers/ppo"),
        command=("scripts/refresh_docs", "--only", "shaping"),
    ),
    "screening": Product(
        files=(OTHER_NUMBERS,),
        code=("esper_ab/report", "esper_ab/analysis", *_TRAINING),
        command=("scripts/refresh_docs", "--only", "screening"),
    ),
    "hosts": _bench("hosts", "workers/native", "workers/kinds/growth/bank"),
    "gpu": _bench("gpu", "workers/kinds/growth/bank"),  # missing until a GPU has run it
    "coordination": _bench("coordination", *_CONTROL),
    "fleet": _bench("fleet", *_CONTROL, "esper_ab/launchers", pages=False),
    "startup": _bench("startup", "esper_ab/commands", "esper_ab/campaign"),
    "records": _bench("records", "esper_ab/journal", "esper_ab/readers", "esper_ab/report"),
    "ppo": _bench("ppo", "workers/kinds/gymnasium", "workers/ppo", "workers/run"),
    "precision": _bench("precision", "workers/kinds/growth/bank"),
    "judging": _bench("judging", "esper_ab/readers", "esper_ab/formats", *_STATISTICS),
    "gates on training": Product(  # its runs, trained once, are in the CSV file
        files=("docs/evidence/benchmarks/gate_runs.csv", "docs/evidence/gates-on-training.md"),
        code=("scripts/gate_rates.py", "esper_ab/gate", *_STATISTICS),
        command=("scripts/gate_rates",),
    ),
    "windows": Product(  # its runs, trained once, are in the JSON file
        files=("docs/evidence/benchmarks/windows.json", "docs/evidence/statistics-on-training.md"),
        code=("scripts/outcome_windows.py", "scripts/resample_windows.py", "scripts/resampled_plans.py"),
        command=("scripts/resample_windows",),
    ),
    "item rates": Product(
        files=("docs/evidence/benchmarks/item_rates.json",),
        code=("scripts/item_rates.py", "tests/simulation/items.py"),
        command=("scripts/item_rates",),
    ),
    "other numbers": Product(
        files=("docs/other-numbers.png",),
        code=("esper_ab/readers/external_table.py", "esper_ab/report/figures", *_STATISTICS),
        command=("scripts/refresh_docs",),
    ),
    "several tasks": Product(
        files=("docs/several-tasks.png",),
        code=("esper_ab/readers", "esper_ab/report/figures"),
        command=("scripts/refresh_docs",),
    ),
}


def commits_since(root: Path, files: tuple[str, ...], code: tuple[str, ...]) -> int | None:
    """Return the largest number of commits that changed `code` after the last commit of each of `files`; None if a
    file has no commit.
    """
    counts = []
    for file in files:
        last_commit = _git(root, "log", "-1", "--format=%H", "--", file)
        if not last_commit:
            return None
        counts.append(int(_git(root, "rev-list", "--count", f"{last_commit}..HEAD", "--", *code)))
    return max(counts)


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


def older() -> list[str]:
    """Return one line per product that is older than its code."""
    lines = []
    for name, product in PRODUCTS.items():
        if not any((ROOT / file).exists() for file in product.files):
            continue  # never measured, as what needs a GPU
        since = commits_since(ROOT, product.files, product.code)
        if since is None:
            lines.append(f"{name}: not all of its files are there; {' '.join(product.command)}")
        elif since:
            lines.append(f"{name}: {since} commits touched its code since; {' '.join(product.command)}")
    return lines


def example() -> None:
    """Run the demo, keep its report as an example, and draw a picture of its first screen."""
    line = (ROOT / "scripts" / "demo").read_text(encoding="utf-8").splitlines()[-1]
    arguments = shlex.split(line.removesuffix('"$@"'))
    with tempfile.TemporaryDirectory() as folder:
        keep(_launched(folder, "demo", *arguments[arguments.index("esper_ab.launch") + 1 :]), ROOT / EXAMPLE)
        picture(ROOT / EXAMPLE / "report.html", ROOT / "docs" / "report.png", Path(folder))


def _launched(folder: str, name: str, *arguments: str) -> Path:
    """Run an experiment; return its directory in `folder`."""
    _esper_ab("launch", *arguments, "--name", name, "--output-dir", folder, "--quiet", "--json")
    return Path(folder) / name


def _esper_ab(*arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "esper_ab.commands.cli", *arguments],
        check=True,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def keep(experiment_dir: Path, target: Path, names: tuple[str, ...] = _KEPT_FILES) -> None:
    """Write an experiment's results into the folder `target` of the examples, as if it were in `experiments`."""
    from esper_ab.journal.load import load
    from esper_ab.report.content import content
    from esper_ab.report.experiment import experiment_report
    from esper_ab.report.page import render_page
    from esper_ab.report.text import render_text
    from esper_ab.report.verdict_json import render_verdict

    history = load(experiment_dir).history
    content_of_run = content(history, place=f"experiments/{history.plan.experiment.name}")
    report = experiment_report(content_of_run)
    target.mkdir(parents=True, exist_ok=True)
    writers = {
        "report.html": lambda: render_page(report).encode(),
        "summary.txt": lambda: render_text(report).encode(),
        "verdict.json": lambda: render_verdict(content_of_run),
    }
    for name in names:
        (target / name).write_bytes(writers[name]())


def screening() -> None:
    """Run docs/examples/screening.toml (half an hour); keep its outcomes as a table with a picture."""
    with tempfile.TemporaryDirectory() as folder:
        experiment_dir = _launched(folder, "screening-digits", "docs/examples/screening.toml")
        document = json.loads((experiment_dir / "verdict.json").read_bytes())
    compared_groups = dict.fromkeys(
        group for comparison in document["comparisons"] for group in (comparison["a"], comparison["b"])
    )
    ended = [
        (comparison["run"]["group_id"], comparison["run"]["replicate"], comparison["outcome"])
        for comparison in document["runs"]
    ]
    lines = [
        f"{group},{replicate},{outcome!r}"
        for group in compared_groups
        for name, replicate, outcome in ended
        if name == group and outcome is not None
    ]
    (ROOT / OTHER_NUMBERS).write_text("\n".join(("group,seed,outcome", *lines)) + "\n", encoding="utf-8")
    other_numbers()


def other_numbers() -> None:
    """Draw the picture of docs/other-numbers.md with the command on that page."""
    _esper_ab(
        "judge",
        OTHER_NUMBERS,
        "--margin",
        "2",
        "--unit",
        "%",
        "--control",
        "random",
        "--scores",
        "10..100",
        "--figure",
        "docs/other-numbers.png",
    )


def several_tasks() -> None:
    """Run the experiment of docs/several-tasks.md and draw its picture with the commands on that page."""
    arguments = (
        "--groups looking,random --task digits,mixture --margin 10 --seeds 8 "
        "--episodes 1 --steps 12 --n-envs 4 --eval-episodes 8"
    )
    with tempfile.TemporaryDirectory() as folder:
        joint_dir = _launched(folder, "several", *arguments.split())
        parts = [f"{name}={joint_dir / name}" for name in ("digits", "mixture")]
        _esper_ab(
            "judge", str(joint_dir / "plan.json"), *parts, "--scores", "0..100", "--figure", "docs/several-tasks.png"
        )


def shaping() -> None:
    """Run the experiment of docs/evidence/shaping.md (minutes); keep its report, and draw rewards above outcomes.

    Its verdict.json is not kept, because it would name the folder of the rewards on this machine.
    """
    with tempfile.TemporaryDirectory() as folder:
        experiment_dir = _launched(folder, "shaping", f"{SHAPING}/experiment.toml")
        keep(experiment_dir, ROOT / SHAPING, _SHOWN_FILES)
        draw_shaping(experiment_dir)


def draw_shaping(experiment_dir: Path) -> None:
    import numpy as np
    from matplotlib import image

    from esper_ab.journal.load import load
    from esper_ab.report.content import content
    from esper_ab.report.figures import style
    from esper_ab.report.figures.catalogue import figure

    shown_content = content(load(experiment_dir).history)
    parts = []
    for name in ("own-reward", "curves"):
        drawn_figure = figure(name, shown_content)
        buffer = io.BytesIO()
        assert drawn_figure is not None, "every run has ended"
        with style.look():
            drawn_figure.savefig(buffer, format="png", dpi=90, transparent=False)
        buffer.seek(0)
        parts.append(image.imread(buffer)[..., :3])
    width = max(part.shape[1] for part in parts)
    wide_parts = [np.pad(part, ((0, 0), (0, width - part.shape[1]), (0, 0)), constant_values=1.0) for part in parts]
    image.imsave(ROOT / SHAPING / "curves.png", np.concatenate(wide_parts))


# Made here without being asked for by name.
DRAWN = {"example": example, "other numbers": other_numbers, "several tasks": several_tasks}
MADE_HERE = {**DRAWN, "shaping": shaping, "screening": screening}  # made here


def picture(page: Path, target: Path, scratch: Path) -> None:
    """Draw the first screen of a page with Chromium; RuntimeError if Chromium is missing."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    browser = next((path for name in names if (path := shutil.which(name))), None)
    if browser is None:
        raise RuntimeError("the picture needs Chromium on the path")
    subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--window-size=1150,1180",
            f"--user-data-dir={scratch / 'profile'}",
            f"--screenshot={target}",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=300,
    )


def main() -> int:
    """Refresh products, or list outdated ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--check", action="store_true", help="only list outdated products")
    choice.add_argument("--list", action="store_true", help="list all products")
    choice.add_argument("--only", nargs="+", choices=PRODUCTS, metavar="NAME", help="refresh only these")
    options = parser.parse_args()
    if options.list:
        for name, product in PRODUCTS.items():
            print(f"{name}: {' '.join(product.command)}\n  {', '.join(product.files)}\n  of {', '.join(product.code)}")
        return 0
    if not options.check:
        for name in options.only or DRAWN:
            if name in MADE_HERE:
                MADE_HERE[name]()
            else:
                subprocess.run(PRODUCTS[name].command, check=True, cwd=ROOT)
        if not options.only:
            subprocess.run(["scripts/bench", "tables"], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    lines = older()
    print("\n".join(lines) or "Nothing is older than the code that it measures.")
    return 1 if options.check and lines else 0


if __name__ == "__main__":
    sys.exit(main())
