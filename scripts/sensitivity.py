"""The same comparison at several settings, because a mode that is ahead at one setting may only be better tuned there.

    scripts/sensitivity --over ppo.lr=3e-4,1e-3 --over episodes=3,6 --out experiments/horizon --groups shaped,simplified

Every combination is an experiment of its own below --out, by `esper-ab launch` with all other arguments. Called again
it keeps finished experiments and resumes the others; more values may be added. Nothing is pooled, and there is no
verdict over all settings: `summary.txt` shows whether the verdicts agree.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from esper_ab.contracts.errors import UsageError
from esper_ab.settings.assignments import SHORT, split_commas

_DECIDED = ("BETTER", "WORSE", "EQUIVALENT", "IDENTICAL")
_LONGEST_NAME = 100  # with a hash, below the 128 characters that an experiment directory's name may have

Setting = dict[str, str]  # key -> value as typed
Verdict = dict[str, Any]  # verdict.json


def make_grid(over: list[str]) -> list[Setting]:
    """All combinations of KEY=V1,V2 texts; UsageError for a key or value given twice, and without two values."""
    axes: dict[str, list[str]] = {}
    for text in over:
        key, equals, values = text.partition("=")
        pieces = split_commas(values, f"--over {text}")
        if not equals or not all(pieces) or len(set(pieces)) < len(pieces):
            raise UsageError(f"--over {text}: expected different values between commas, as in ppo.epochs=2,4")
        key = SHORT.get(key.strip(), key.strip())
        if key in axes:
            raise UsageError(f"--over {text}: {key} is varied twice")
        axes[key] = pieces
    if all(len(values) < 2 for values in axes.values()):
        raise UsageError("nothing is varied: name two values at least, as in --over ppo.lr=3e-4,1e-3")
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def name_folder(setting: Setting) -> str:
    """Name of an experiment's folder: its settings, with a hash where they cannot be in a name."""
    text = "_".join(f"{key}-{value}" for key, value in setting.items())
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", text)
    if name == text and len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:_LONGEST_NAME]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def title(setting: Setting) -> str:
    return ", ".join(f"{key}={value}" for key, value in setting.items())


def describe_agreement(verdicts: dict[str, str], missing: int) -> str:
    """Say whether the verdicts, by title of the setting, agree; `missing`: number of settings still to come."""
    places = defaultdict(list)
    for place, verdict in verdicts.items():
        places[verdict.partition(",")[0]].append(place)
    listed = "; ".join(f"{word} at {' and '.join(where)}" for word, where in places.items())
    decided = [word for word in places if word in _DECIDED]
    if len(decided) > 1:
        return f"does not agree: {listed}. The answer depends on the setting."
    if missing:
        return f"{missing} of {missing + len(verdicts)} settings are still to come; so far {listed}."
    if not decided:
        return f"no setting carries a verdict ({listed}), so there is nothing to agree."
    if len(places) > 1:
        return f"does not agree everywhere: {listed}. A setting without a verdict shows nothing either way."
    return f"agrees: {decided[0]} at every one of the {len(verdicts)} settings."


def summarise(found: list[tuple[Setting, Verdict | None]]) -> str:
    """A row per setting and comparison, then a sentence per comparison; None: the experiment is still to come."""
    rows, said = [], defaultdict[str, dict[str, str]](dict)
    for setting, verdict in found:
        if verdict is None:
            rows.append(f"{title(setting)}: to come")
        for one in verdict["comparisons"] if verdict else ():
            said[f"{one['a']} - {one['b']}"][title(setting)] = one["verdict"]
            rows.append(f"{title(setting)}: {one['verdict']}: {one['headline']}")
    told = [f"{name}: {describe_agreement(one, len(found) - len(one))}" for name, one in said.items()]
    alpha = next((verdict["design"]["alpha"] for _, verdict in found if verdict), None)
    if alpha is not None:
        told.append(
            f"Each of the {len(found)} settings is an experiment with its own error rate of {alpha:.3g}. If nothing "
            f"differed anywhere, one or more would say BETTER or WORSE with a chance of up to "
            f"{min(1.0, len(found) * alpha):.0%}; no verdict is given over all settings."
        )
    return "\n".join([*rows, "", *told])


def read_verdict(folder: Path) -> Verdict | None:
    """The verdict of an experiment that has ended; None before."""
    file = folder / "verdict.json"
    verdict: Verdict | None = json.loads(file.read_bytes()) if file.exists() else None
    return verdict if verdict and verdict["state"] in ("finished", "incomplete") else None


def call(*command: str, quiet: bool = False) -> None:
    """Run a command of `esper-ab`; ends this script, with the same exit status, where it fails."""
    output = subprocess.DEVNULL if quiet else None
    status = subprocess.run([sys.executable, "-m", "esper_ab.commands.cli", *command], stdout=output).returncode
    if status:
        raise SystemExit(status)


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw, allow_abbrev=False)
    parser.add_argument("--over", action="append", default=[], metavar="KEY=V1,V2", help="repeatable")
    parser.add_argument("--out", type=Path, required=True, help="folder of all experiments")
    options, arguments = parser.parse_known_args()
    parent: Path = options.out
    given = parent / "arguments.json"
    try:
        grid = make_grid(options.over)
        if given.exists() and json.loads(given.read_text()) != arguments:
            raise UsageError(f"{parent} holds experiments with other arguments, those in {given}; choose another --out")
    except UsageError as error:
        parser.error(str(error))
    launches = {
        parent / name_folder(setting): ("launch", *arguments, "--out", str(parent), "--name", name_folder(setting),
                                        *(f"--set={key}={value}" for key, value in setting.items()))
        for setting in grid
    }  # fmt: skip
    for folder, launch in launches.items():  # a setting that is refused is so before hours of training
        if not folder.exists():
            call(*launch, "--dry-run", quiet=True)
    parent.mkdir(parents=True, exist_ok=True)
    given.write_text(json.dumps(arguments))
    for folder, launch in launches.items():
        if read_verdict(folder) is None:
            print(f"\n{folder.name}", flush=True)
            call(*(("resume", str(folder)) if folder.exists() else launch))
    text = summarise([(setting, read_verdict(parent / name_folder(setting))) for setting in grid])
    (parent / "summary.txt").write_text(text + "\n", encoding="utf-8")
    print(f"\n{text}\n\nreports: {parent}/*/report.html")


if __name__ == "__main__":
    main()
