"""Recreate all goldens of tests/golden/experiments and print differences; exit status 1 if there are any.

    scripts/goldens                    compare
    scripts/goldens --write            store the results
    scripts/goldens --only lost plan   only those whose names start with these
    scripts/goldens --judge            train nothing: judge the stored outcomes again

All experiments are made in one temporary folder, so another such script waits until this one has ended. Experiments are
trained by the command line, or run by the engine with drawn outcomes; tables of outcomes are judged again as they are
stored. Words and numbers are compared (floats to seven digits) and, for experiments, the digests of their records.
Digests of `growth` and `cartpole` are the same only on one kind of CPU; `--without-records` skips them.

tests/statistics/test_goldens.py judges the stored goldens again, without training.
"""

import argparse
import contextlib
import fcntl
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = (
    Path(tempfile.gettempdir()).resolve() / "esper_ab_goldens"
)  # always the same: records name a user's reward by it
sys.path.insert(0, str(ROOT / "tests"))

import golden_runs  # noqa: E402
from support.goldens import golden_experiments, golden_json  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="store the results")
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME", help="goldens whose names start with NAME")
    parser.add_argument("--without-records", action="store_true", help="do not compare digests of records")
    parser.add_argument("--judge", action="store_true", help="judge the stored outcomes again, without training")
    options = parser.parse_args()
    lock = FOLDER.with_suffix(".lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)  # until this process ends
    names = sorted({*golden_runs.GOLDENS, *golden_json.names()})
    chosen_names = [name for name in names if name.startswith(tuple(options.only))]
    differing_goldens = 0
    for name in chosen_names:
        begin_s = time.perf_counter()
        path = golden_json.FOLDER / f"{name}.json"
        stored = golden_json.stored(name) if path.is_file() else {}
        if options.judge or name not in golden_runs.GOLDENS:
            new_golden = golden_experiments.rejudged(stored)
        else:
            new_golden = _golden_made(name)
        if options.write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(golden_json.encoded(new_golden), encoding="utf-8")
        differing_lines = list(
            golden_json.differences(*(_compared(golden, options.without_records) for golden in (stored, new_golden)))
        )
        differing_goldens += bool(differing_lines)
        outcome = "the same" if not differing_lines else "DIFFERS" if stored else "not stored yet"
        print(f"{name}: {time.perf_counter() - begin_s:.1f} s, {outcome}", flush=True)
        for line in differing_lines if stored else ():
            print(f"    {line}")
    print(f"{len(chosen_names)} goldens, {differing_goldens} of them differ")
    return 1 if differing_goldens and not options.write else 0


def _golden_made(name: str) -> dict[str, Any]:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    try:
        with contextlib.chdir(FOLDER):
            golden_runs.prepare()
            golden = golden_json.plain(golden_runs.GOLDENS[name]())
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
    return json.loads(json.dumps(golden).replace(str(FOLDER), "HERE").replace(sys.executable, "PYTHON"))


def _compared(golden: Any, without_records: bool) -> Any:
    """Return the golden and its parts, without record digests if digests are not compared."""
    if not without_records:
        return golden
    parts = {name: _compared(part, without_records) for name, part in golden.get("parts", {}).items()}
    return {key: value for key, value in golden.items() if key != "records"} | ({"parts": parts} if parts else {})


if __name__ == "__main__":
    sys.exit(main())
