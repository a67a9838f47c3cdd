"""Make the pictures, examples and numbers of docs anew, and say which are older than the code they measure.

    scripts/refresh_docs                  the example of the demo, the pictures of it and of two pages, and the
                                          tables of benchmarks: minutes; then what is older than its code
    scripts/refresh_docs --check          only say what is older; exit status 1 when anything is
    scripts/refresh_docs --only NAME…     measure these anew, hours for some; see --list
    scripts/refresh_docs --list           every product: its files, the code it measures, its command

A file is older when a commit after its own touched the code that it measures. Needs Chromium for the picture.
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
EXAMPLE, SHAPING, SCREENING = (f"docs/examples/{name}" for name in ("demo", "shaping", "screening-digits"))
OTHER_NUMBERS = "docs/examples/other-numbers.csv"  # outcomes of the screening, as a table of anybody's
_SHOWN = ("report.html", "summary.txt")
_KEPT = (*_SHOWN, "verdict.json")
_TRAINING = ("workers/growth", "workers/native", "workers/ppo", "workers/rewards", "workers/run")
_STATISTICS = ("esper_ab/design", "esper_ab/stats", "esper_ab/verdict")
_CONTROL = ("esper_ab/control", "esper_ab/journal", "workers/process")


@dataclass(frozen=True, kw_only=True)
class Product:
    """Files of docs that one command makes; `code` is what they measure or show."""

    files: tuple[str, ...]
    code: tuple[str, ...]
    command: tuple[str, ...]  # that measures anew


def _bench(part: str, *code: str, pages: bool = True) -> Product:
    files = (f"docs/evidence/benchmarks/{part}.json", *((f"docs/evidence/benchmarks/{part}.md",) if pages else ()))
    return Product(files=files, code=code, command=("scripts/bench", part))


PRODUCTS = {
    "example": Product(
        files=("docs/report.png", *(f"{EXAMPLE}/{name}" for name in _KEPT)),
        code=("esper_ab/report", "esper_ab/verdict", "esper_ab/analysis"), command=("scripts/refresh_docs",),
    ),
    "shaping": Product(
        files=tuple(f"{SHAPING}/{name}" for name in (*_SHOWN, "curves.png")),
        code=("esper_ab/report", "esper_ab/verdict", "esper_ab/analysis", "workers/gymnasium_task", "workers/ppo"),
        command=("scripts/refresh_docs", "--only", "shaping"),
    ),
    "screening": Product(
        files=(*(f"{SCREENING}/{name}" for name in (*_KEPT, "experiment.toml")), OTHER_NUMBERS),
        code=("esper_ab/report", "esper_ab/analysis", *_TRAINING), command=("scripts/refresh_docs", "--only",
        "screening"),
    ),
    "hosts": _bench("hosts", "workers/native", "workers/growth/bank"),
    "profile": _bench("profile", "workers/native", "workers/growth"),
    "deterministic": _bench("deterministic", "workers/growth", pages=False),
    "devices": _bench("devices", "workers/growth", pages=False),
    "coordination": _bench("coordination", *_CONTROL),
    "fleet": _bench("fleet", *_CONTROL, "esper_ab/launchers", pages=False),
    "clusters": _bench("clusters", *_CONTROL, "esper_ab/launchers", pages=False),
    "two runs": _bench("scaling", "workers/growth", *_CONTROL),
    "startup": _bench("startup", "esper_ab/commands", "esper_ab/execution"),
    "records": _bench("records", "esper_ab/journal", "esper_ab/readers", "esper_ab/report"),
    "ppo": _bench("ppo", "workers/gymnasium_task", "workers/ppo", "workers/run"),
    "evaluation": Product(
        files=("docs/evidence/benchmarks/eval-episodes.json",), code=_TRAINING, command=("scripts/eval_episodes",),
    ),
    "other numbers": Product(
        files=("docs/other-numbers.png",),
        code=("esper_ab/readers/external_table.py", "esper_ab/report/figures", *_STATISTICS),
        command=("scripts/refresh_docs",),
    ),
    "several tasks": Product(
        files=("docs/several-tasks.png",), code=("esper_ab/readers", "esper_ab/report/figures"),
        command=("scripts/refresh_docs",),
    ),
}


def commits_since(root: Path, files: tuple[str, ...], code: tuple[str, ...]) -> int | None:
    """Number of commits that touched `code` after the last of each of `files`, at most; None where a file has none."""
    counts = []
    for file in files:
        last = _git(root, "log", "-1", "--format=%H", "--", file)
        if not last:
            return None
        counts.append(int(_git(root, "rev-list", "--count", f"{last}..HEAD", "--", *code)))
    return max(counts)


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout.strip()


def older() -> list[str]:
    """A line for every product that is older than its code."""
    lines = []
    for name, product in PRODUCTS.items():
        since = commits_since(ROOT, product.files, product.code)
        if since is None:
            lines.append(f"{name}: not all of its files are there; {' '.join(product.command)}")
        elif since:
            lines.append(f"{name}: {since} commits touched its code since; {' '.join(product.command)}")
    return lines


def example() -> None:
    """Run the demo, keep its report as an example, and draw the picture of its first screen."""
    line = (ROOT / "scripts" / "demo").read_text(encoding="utf-8").splitlines()[-1]
    words = shlex.split(line.removesuffix('"$@"'))
    asked = words[words.index("esper_ab.launch") + 1 :]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "esper_ab.launch", *asked, "--name", "demo", "--output-dir", folder]
        subprocess.run([*command, "--quiet", "--json"], check=True, stdout=subprocess.DEVNULL, cwd=ROOT,
                       env=os.environ | {"PYTHONPATH": str(ROOT)})  # fmt: skip
        kept = ROOT / EXAMPLE
        keep(Path(folder) / "demo", kept)
        picture(kept / "report.html", ROOT / "docs" / "report.png", Path(folder))


def keep(experiment_dir: Path, to: Path, names: tuple[str, ...] = _KEPT) -> None:
    """Write what an experiment came to into the folder `to` of examples, as if it lay in `experiments`."""
    from esper_ab.journal.load import load
    from esper_ab.report.content import content, render_verdict
    from esper_ab.report.experiment import experiment_report
    from esper_ab.report.page import render_page
    from esper_ab.report.text import render_text

    history = load(experiment_dir).history
    found = content(history, place=f"experiments/{history.plan.experiment.name}")
    report = experiment_report(found)
    to.mkdir(parents=True, exist_ok=True)
    made = {
        "report.html": lambda: render_page(report).encode(),
        "summary.txt": lambda: render_text(report, whole=True).encode(),
        "verdict.json": lambda: render_verdict(found),
    }  # fmt: skip
    for name in names:
        (to / name).write_bytes(made[name]())


def screening() -> None:
    """Run scripts/screening, half an hour, and keep what it came to."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["scripts/screening", "--output-dir", folder, "--quiet", "--json"], check=True, cwd=ROOT,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        keep_screening(Path(folder) / "screening-digits")


def keep_screening(experiment_dir: Path) -> None:
    """Keep the report of the screening, and its outcomes as numbers of somebody else's, with the picture of them."""
    keep(experiment_dir, ROOT / SCREENING)
    shutil.copyfile(experiment_dir / "experiment.toml", ROOT / SCREENING / "experiment.toml")
    document = json.loads((ROOT / SCREENING / "verdict.json").read_bytes())
    compared = dict.fromkeys(group for one in document["comparisons"] for group in (one["a"], one["b"]))
    ended = [(one["run"]["group_id"], one["run"]["replicate"], one["outcome"]) for one in document["runs"]]
    lines = [
        f"{group},{replicate},{outcome!r}" for group in compared
        for name, replicate, outcome in ended if name == group and outcome is not None
    ]  # fmt: skip
    (ROOT / OTHER_NUMBERS).write_text("\n".join(("group,seed,outcome", *lines)) + "\n", encoding="utf-8")
    other_numbers()


def other_numbers() -> None:
    """Draw the picture of docs/other-numbers.md, with the command that stands there."""
    asked = (OTHER_NUMBERS, "--margin", "2", "--unit", "%", "--control", "random")
    shown = ("--scores", "10..100", "--figure", "docs/other-numbers.png")
    subprocess.run([sys.executable, "-m", "esper_ab.commands.cli", "judge", *asked, *shown], check=True, cwd=ROOT,
                   stdout=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": str(ROOT)})  # fmt: skip


def several_tasks() -> None:
    """Run the experiment of docs/several-tasks.md and draw its picture, with the commands that stand there."""
    names = ("digits", "mixture")
    asked = (
        "--groups looking,random --task digits,mixture --margin 10 --seeds 8 --name several "
        "--episodes 1 --steps 12 --n-envs 4 --eval-episodes 8 --quiet --json"
    )
    within = os.environ | {"PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "esper_ab.launch", *asked.split(), "--output-dir", folder], check=True,
                       cwd=ROOT, stdout=subprocess.DEVNULL, env=within)  # fmt: skip
        parts = [f"{name}={Path(folder) / 'several' / name}" for name in names]
        shown = ("--scores", "0..100", "--figure", "docs/several-tasks.png")
        subprocess.run([sys.executable, "-m", "esper_ab.commands.cli", "judge", str(Path(folder, "several/plan.json")),
                        *parts, *shown], check=True, cwd=ROOT, stdout=subprocess.DEVNULL, env=within)  # fmt: skip


def shaping() -> None:
    """Run the experiment of docs/evidence/shaping.md, minutes, and keep its report and curves."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "esper_ab.launch", f"{SHAPING}/experiment.toml", "--output-dir", folder]
        subprocess.run([*command, "--name", "shaping", "--quiet", "--json"], check=True, cwd=ROOT,
                       stdout=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": str(ROOT)})  # fmt: skip
        keep_shaping(Path(folder) / "shaping")


def keep_shaping(experiment_dir: Path) -> None:
    """Keep the report of the experiment of docs/evidence/shaping.md, and draw rewards above outcomes.

    Its verdict.json would name the folder in which the rewards lie here.
    """
    import numpy as np
    from matplotlib import image

    from esper_ab.journal.load import load
    from esper_ab.report.content import content
    from esper_ab.report.figures import style
    from esper_ab.report.figures.catalogue import figure

    keep(experiment_dir, ROOT / SHAPING, _SHOWN)
    found, parts = content(load(experiment_dir).history), []
    for name in ("own-reward", "curves"):
        drawn, buffer = figure(name, found), io.BytesIO()
        assert drawn is not None, "every run has ended"
        with style.look():
            drawn.savefig(buffer, format="png", dpi=90, transparent=False)
        buffer.seek(0)
        parts.append(image.imread(buffer)[..., :3])
    width = max(part.shape[1] for part in parts)
    wide = [np.pad(part, ((0, 0), (0, width - part.shape[1]), (0, 0)), constant_values=1.0) for part in parts]
    image.imsave(ROOT / SHAPING / "curves.png", np.concatenate(wide))


# Made here without being asked for by name.
DRAWN = {"example": example, "other numbers": other_numbers, "several tasks": several_tasks}
MADE = {**DRAWN, "shaping": shaping, "screening": screening}  # made here


def picture(page: Path, to: Path, scratch: Path) -> None:
    """Draw the first screen of a page with Chromium; RuntimeError without one."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    browser = next((found for name in names if (found := shutil.which(name))), None)
    if browser is None:
        raise RuntimeError("the picture needs Chromium on the path")
    subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1150,1180",
         f"--user-data-dir={scratch / 'profile'}", f"--screenshot={to}", page.as_uri()],
        check=True, capture_output=True, timeout=300,
    )  # fmt: skip


def main() -> int:
    """Refresh, or say what is older."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="only say what is older")
    what.add_argument("--list", action="store_true", help="every product")
    what.add_argument("--only", nargs="+", choices=PRODUCTS, metavar="NAME", help="measure these anew")
    asked = parser.parse_args()
    if asked.list:
        for name, product in PRODUCTS.items():
            print(f"{name}: {' '.join(product.command)}\n  {', '.join(product.files)}\n  of {', '.join(product.code)}")
        return 0
    if not asked.check:
        for name in asked.only or DRAWN:
            if name in MADE:
                MADE[name]()
            else:
                subprocess.run(PRODUCTS[name].command, check=True, cwd=ROOT)
        if not asked.only:
            subprocess.run(["scripts/bench", "tables"], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    lines = older()
    print("\n".join(lines) or "Nothing is older than the code that it measures.")
    return 1 if asked.check and lines else 0


if __name__ == "__main__":
    sys.exit(main())
