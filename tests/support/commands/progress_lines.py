"""Remove the progress lines that a command prints to stderr while it waits on a busy machine."""

PROGRESS = "before the start: "


def without_progress(stderr: str) -> list[str]:
    """Return the lines of `stderr` except empty lines and progress lines of a preflight."""
    return [line for line in stderr.splitlines() if line.strip() and not line.startswith(PROGRESS)]
