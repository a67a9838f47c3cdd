"""The findings of a check, in words, with what to do."""

from __future__ import annotations

from esper_ab.commands._findings import Findings
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.wording import counted

_LISTED = 8  # file names on one line of text; --json lists them all


def describe(found: Findings) -> str:
    """Return the findings as text, one per line, and then the remedy."""
    last = f", the last from {found.wall_time}" if found.wall_time else ""
    verb = "is" if found.lines == 1 else "are"
    lines = [
        f"{found.experiment_dir}: {counted(found.lines, 'line')} of the journal {verb} "
        f"intact{last}; {counted(found.episodes, 'episode')}, {counted(found.evaluations, 'evaluation')}"
    ]
    if found.in_use_by:
        lines.append(f"in use by {found.in_use_by}: checkpoints were not checked")
    if found.damage:
        line = f"damaged: {found.damage}"
        if found.lines_behind:
            line += f"; {counted(found.lines_behind, 'line')} not read"
        lines.append(line)
    elif found.lines_behind:
        lines.append("an unfinished line follows, which is ignored and which resume cuts off")
    lines += [f"damaged: {file}: {what}" for file, what in found.faults.items()]
    if found.removable:
        size_mb = found.removable_bytes / 1e6
        names = ", ".join(found.removable[:_LISTED])
        if len(found.removable) > _LISTED:
            names += f" and {len(found.removable) - _LISTED} more"
        lines.append(f"tidy removes {counted(len(found.removable), 'file')}, {size_mb:.1f} MB: {names}")
    lines.append(_remedy(found))
    return "\n".join(lines)


def _remedy(found: Findings) -> str:
    if found.damage and found.repairable:
        cut = shell_command("tidy", found.experiment_dir, "--repair")
        rest = "saves the removed part to a file next to it; resume then repeats the work recorded in that part"
        return f"`{cut}` cuts the journal after line {found.lines} and {rest}"
    if found.damage:
        return "cutting the journal would not repair this damage"
    if found.faults:
        return "the journal is intact, but the files named above cannot be repaired"
    return "no damage found"
