"""What stands below the options of `COMMAND --help`: examples that work, and the exit statuses. Tests run them."""

from __future__ import annotations

from esper_ab.commands._exit_status import EPILOG

HEADING = "Examples:"


def epilog(*lines: str) -> str:
    """For `click.command(epilog=…)`: the example command lines as they stand, then the exit statuses."""
    shown = "\n".join(f"  {line}" for line in lines)
    return f"\b\n{HEADING}\n{shown}\n\n{EPILOG}"


def examples_of(text: str | None) -> tuple[str, ...]:
    """The command lines of an epilog; none when it has no examples."""
    _, found, rest = (text or "").partition(f"{HEADING}\n")
    return tuple(line.strip() for line in rest.partition("\n\n")[0].splitlines()) if found else ()
