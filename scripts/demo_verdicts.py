"""Does the first experiment that a newcomer runs decide, and in the right direction?

First the difference of the demo's groups is established on 40 pairs of one rng seed; then the demo itself runs with 20
other rng seeds. Both are fixed here, before the first run. What is there already is not run again.

    scripts/demo_verdicts [--out FOLDER]    run what is missing in FOLDER (experiments/demo-verdicts), then write
                                            docs/evidence/benchmarks/demo.json and the table in docs/examples/README.md
    scripts/demo_verdicts --table           write the table from the numbers that are there
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.machine import describe
from marks import between
from questions.experiments import ROOT, run

PAGE, DATA = ROOT / "docs" / "examples" / "README.md", ROOT / "docs/evidence/benchmarks/demo.json"
ESTABLISHED_RNG_SEED, ESTABLISHED_PAIRS = 1000, 40
RNG_SEEDS = tuple(range(2001, 2021))


def demo_arguments() -> tuple[str, ...]:
    """Arguments of the launcher in scripts/demo, without those that it passes on."""
    line = (ROOT / "scripts" / "demo").read_text(encoding="utf-8").splitlines()[-1]
    words = shlex.split(line.removesuffix('"$@"'))
    return tuple(words[words.index("esper_ab.launch") + 1 :])


def answer(experiment_dir: Path) -> dict[str, Any]:
    """The one comparison of a finished experiment."""
    document = json.loads((experiment_dir / "verdict.json").read_text(encoding="utf-8"))
    (one,) = document["comparisons"]
    kept = {key: one[key] for key in ("a", "b", "verdict", "used", "estimate", "low", "high", "level")}
    return {**kept, "sd": one["effect"]["sd"]}


def measure(folder: Path) -> Iterator[dict[str, Any]]:
    """Run what is missing; yield every answer so far after each demo."""
    asked = demo_arguments()
    found = run(folder, "established", (
        *asked, "--seeds", str(ESTABLISHED_PAIRS), "--rng-seed", str(ESTABLISHED_RNG_SEED), "--no-early-stop",
    ))  # fmt: skip
    command, machine = shlex.join(("python", "-m", "esper_ab.launch", *asked)), describe()
    demos: dict[str, dict[str, Any]] = {}
    for rng_seed in RNG_SEEDS:
        demos[str(rng_seed)] = answer(run(folder, f"demo-{rng_seed}", (*asked, "--rng-seed", str(rng_seed))))
        yield {"command": command, "established": answer(found), "demos": demos, "machine": machine}


def counted(data: dict[str, Any]) -> tuple[int, int, int]:
    """Number of demos decided in the established direction, decided against it, and not decided."""
    right = "BETTER" if data["established"]["estimate"] > 0 else "WORSE"
    wrong = "WORSE" if right == "BETTER" else "BETTER"
    words = [one["verdict"].split(",")[0] for one in data["demos"].values()]
    return words.count(right), words.count(wrong), len(words) - words.count(right) - words.count(wrong)


def table(data: dict[str, Any]) -> str:
    """The paragraph between the marks of the page."""
    whole, (right, wrong, open_) = data["established"], counted(data)
    sizes = sorted(one["estimate"] for one in data["demos"].values() if one["estimate"] is not None)
    machine = data["machine"]
    return (
        f"`{whole['a']} - {whole['b']}` on {whole['used']} pairs: {whole['estimate']:+.1f} points "
        f"[{whole['low']:+.1f}, {whole['high']:+.1f}], standard deviation of a pair {whole['sd']:.1f}.\n"
        f"The demo with {len(data['demos'])} of {len(RNG_SEEDS)} other rng seeds: decided in that direction in "
        f"{right}, in the other in {wrong}, not decided in {open_};\nits estimates lie between {sizes[0]:+.1f} and "
        f"{sizes[-1]:+.1f} points. Measured on {machine['cores']} cores of an {machine['processor']}."
    )


def main() -> None:
    """Run, count, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "experiments" / "demo-verdicts", help="where they are kept")
    parser.add_argument("--table", action="store_true", help="run nothing")
    asked = parser.parse_args()
    if not asked.table:
        folder = asked.out.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        os.nice(10)
        for data in measure(folder):
            DATA.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    data = json.loads(DATA.read_text(encoding="utf-8"))
    PAGE.write_text(between(PAGE.read_text(encoding="utf-8"), "demo", table(data)), encoding="utf-8")
    print(table(data))


if __name__ == "__main__":
    main()
