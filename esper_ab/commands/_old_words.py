"""Commands and flags of earlier versions, and what to write today. Used in messages only; none of them works."""

from __future__ import annotations

from collections.abc import Collection

# Command -> what to write today.
_COMMANDS = {
    "run": "esper-ab launch FILE",
    "rewards": "esper-ab growth rewards",
    "heuristic": "esper-ab growth heuristic",
    "fetch": "esper-ab growth fetch",
    "fsck": "esper-ab tidy --check EXPERIMENT",
    "gc": "esper-ab tidy EXPERIMENT",
    "extend": "esper-ab resume EXPERIMENT --seeds N",
    "attach": "esper-ab status -f EXPERIMENT",
    "board": "esper-ab list",
}
_TRAINER = "name the trainer without a flag: esper-ab launch train.py, or esper-ab launch 'python train.py … {seed}'"
_DETACH = "an experiment outlives its terminal: end the command with &, and then write esper-ab status -f EXPERIMENT"
# Flag -> a flag that the command must have, "" for none; and what to write today.
_FLAGS = {
    "--out": ("--output-dir", "write --output-dir DIR"),
    "--trainer": ("--higher", _TRAINER),
    "--config": ("--name", "name the file without a flag: esper-ab launch experiment.toml"),
    "--outcome": ("--higher", "write --higher NAME or --lower NAME"),
    "--outcome-better": ("--higher", "write --higher NAME or --lower NAME"),
    "--csv": ("", "write esper-ab judge FILE.csv --margin SIZE"),
    "--detach": ("--quiet", _DETACH),
    "--dual-ab": ("--groups", "write --groups A,B"),
    "--output-dir": ("--html", "name the folder without a flag: esper-ab list DIR"),
}


def command_today(name: str) -> str:
    """Return what to write instead of a command of an earlier version; "" if there was no such command."""
    return _COMMANDS.get(name, "")


def flag_today(name: str, known_flags: Collection[str]) -> str:
    """Return what to write instead of a flag of an earlier version; "" if a command with the flags `known_flags` had
    none.
    """
    needed_flag, today = _FLAGS.get(name, ("", ""))
    if needed_flag and needed_flag not in known_flags:
        return ""
    return today
