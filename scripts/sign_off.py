"""Sign off a machine with GPUs: ten parts in at most twelve minutes, one JSON, one page; the last line is PASSED or
FAILED, and the exit status 0 or 1.

    scripts/sign_off                       all parts; writes docs/evidence/gpu.md and gpu.json beside it
    scripts/sign_off --part 6              resume: parts 6 to 10, with the results before them from the JSON
    scripts/sign_off --wheels DIR          with the machine's own torch and the wheels in DIR, without a network
    scripts/sign_off --collect DIR         fill DIR with those wheels, where there is a network
    scripts/sign_off --out DIR             write both files there
    scripts/sign_off --test-device         rehearse all parts in small sizes on the test device of tests/gpu
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from signoff.machine import ROOT, environment_of_gpu, environment_of_test_device
from signoff.parts import NAMES, part
from signoff.results import Results

EVIDENCE = ROOT / "docs" / "evidence"
REHEARSED = ROOT / ".sign_off"
_LOG_CHARACTERS = 4000


def _arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/sign_off", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--part",
        type=int,
        default=1,
        choices=range(1, len(NAMES) + 1),
        metavar="N",
        help="begin with part N; earlier results are taken from the JSON",
    )
    parser.add_argument("--wheels", metavar="DIR", help="install these wheels, for this run only, beside torch")
    parser.add_argument("--collect", metavar="DIR", help="download and build the wheels into DIR, and stop")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of gpu.json and gpu.md (docs/evidence)")
    parser.add_argument("--test-device", action="store_true", help="rehearse without a GPU")
    return parser.parse_args(arguments)


def run_part(name: str, env: dict[str, str], real: bool, folder: Path) -> dict[str, Any]:
    """Run a part in its own process group, which ends at the part's budget; return its entry of the results."""
    folder.mkdir()
    command = [sys.executable, "-P", "-m", "signoff.run_part", name, str(folder), "real" if real else "rehearsal"]
    limit_s = part(name).BUDGET_S if real else None
    start = time.monotonic()
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            command, env=env, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        ) as process,
    ):
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        except BaseException:  # Ctrl-C, and SIGTERM from a scheduler
            os.killpg(process.pid, signal.SIGKILL)
            raise
    seconds = time.monotonic() - start
    answer = folder / "answer.json"
    if process.returncode == 0 and answer.exists():
        return {"seconds": seconds, **json.loads(answer.read_text())}
    log_text = (folder / "log").read_text(errors="replace")[-_LOG_CHARACTERS:]
    last_line = (log_text.strip().splitlines() or ["it said nothing"])[-1]
    if process.returncode == -signal.SIGKILL:
        last_line = f"it took longer than its {limit_s} s"
    return {"seconds": seconds, "found": {}, "problems": [last_line], "section": [], "log": log_text}


def _results(options: argparse.Namespace) -> Results:
    """Return empty results with their files; SystemExit if a rehearsal would write the page of a GPU."""
    real = not options.test_device
    folder = (options.out or (EVIDENCE if real else REHEARSED)).resolve()
    if not real and folder.is_relative_to(ROOT / "docs"):
        raise SystemExit("error: a rehearsal is no evidence: --out must be outside of docs")
    return Results(json_file=folder / "gpu.json", page_file=folder / "gpu.md", real=real)


def sign_off(options: argparse.Namespace, scratch: Path) -> bool:
    """Run the parts; return whether all have passed."""
    results = _results(options)
    env = environment_of_gpu() if results.real else environment_of_test_device(scratch / "gpus")
    for number, name in enumerate(NAMES, 1):
        if 1 < number < options.part:
            continue
        results.parts[name] = run_part(name, env, results.real, scratch / name)
        if name == "header":
            _check_header(results, options.part)
        results.write()
        _print_part(number, name, results.parts[name])
    for name in results.missing:
        print(f"not run: {part(name).TITLE}")
    print(f"written: {results.json_file} and {results.page_file}")
    return results.passed


def _check_header(results: Results, first_part: int) -> None:
    """Take up earlier results; SystemExit if there is no GPU, or if the results are of something else."""
    header = results.parts["header"]
    if not header["found"]:
        raise SystemExit(header["problems"][0])
    refusal = results.restore(first_part) if first_part > 1 else ""
    if refusal:
        raise SystemExit(f"error: {refusal}")


def _print_part(number: int, name: str, part_results: dict[str, Any]) -> None:
    print(
        f"{number:2} of {len(NAMES)}  {part(name).TITLE:34} {part_results['seconds']:5.0f} s  "
        f"{'FAILED' if part_results['problems'] else 'ok'}",
        flush=True,
    )
    for problem in part_results["problems"]:
        print(f"          {problem}", flush=True)


def main(arguments: list[str]) -> int:
    """Sign off, and return the exit status."""
    options = _arguments(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    scratch = Path(tempfile.mkdtemp(prefix="sign_off-"))
    try:
        has_passed = sign_off(options, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if options.test_device:
        print("rehearsed on the test device: nothing was measured on a GPU")
    print("PASSED" if has_passed else "FAILED")
    return 0 if has_passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
