"""The findings of a check, in words, with what to do."""

from __future__ import annotations

from esper_ab.commands._findings import Findings
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.wording import counted

_LISTED = 8  # file names on one line of text; --json lists them all


def describe(findings: Findings) -> str:
    """Return the findings as text, one per line, and then the remedy."""
    time_words = f", the last from {findings.wall_time}" if findings.wall_time else ""
    verb = "is" if findings.lines == 1 else "are"
    lines = [
        f"{findings.experiment_dir}: {counted(findings.lines, 'line')} of the journal {verb} "
        f"intact{time_words}; {counted(findings.episodes, 'episode')}, {counted(findings.evaluations, 'evaluation')}"
    ]
    if findings.in_use_by:
        lines.append(f"in use by {findings.in_use_by}: checkpoints were not checked")
    if findings.damage:
        line = f"damaged: {findings.damage}"
        if findings.lines_behind:
            line += f"; {counted(findings.lines_behind, 'line')} not read"
        lines.append(line)
    elif findings.lines_behind:
        lines.append("an unfinished line follows, which is ignored and which resume cuts off")
    lines += [f"damaged: {file}: {complaint}" for file, complaint in findings.faults.items()]
    if findings.removable:
        size = findings.removable_bytes
        size_words = f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"
        names = ", ".join(findings.removable[:_LISTED])
        if len(findings.removable) > _LISTED:
            names += f" and {len(findings.removable) - _LISTED} more"
        files_words = counted(len(findings.removable), "file")
        lines.append(f"without --check, tidy would remove {files_words} ({size_words}): {names}")
    lines.append(_remedy(findings))
    return "\n".join(lines)


def _remedy(findings: Findings) -> str:
    if findings.damage and findings.repairable:
        repair_command = shell_command("tidy", findings.experiment_dir, "--repair")
        saving_words = "saves the removed part to a file next to it; resume then repeats the work recorded in that part"
        return f"`{repair_command}` cuts the journal after line {findings.lines} and {saving_words}"
    if findings.damage:
        return "cutting the journal would not repair this damage"
    if findings.faults:
        return "the journal is intact, but the files named above cannot be repaired"
    return "no damage found"
