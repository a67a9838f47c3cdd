"""What a run left: the files of its folder and the lines of its output."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from esper_ab.contracts.regular_file import open_to_read, read_regular

_SHOWN = 12  # maximum number of names in a message
_MOST_OUTPUT_BYTES = 16 << 20  # from the end


@dataclass(frozen=True)
class Left:
    """The folder of a run and, if its output is known, the file with it."""

    out: Path
    log: Path | None = None
    begin: int = 0  # byte of `log` at which the run's part begins, with the line of its command

    def files(self) -> list[str]:
        """Return all files below the folder, relative to it, sorted."""
        return sorted(path.relative_to(self.out).as_posix() for path in self.out.rglob("*") if path.is_file())

    def text(self, file: str) -> str:
        """Return the text of a file; ValueError if there is none or it cannot be read."""
        try:
            return read_regular(self.out / file).decode("utf-8-sig")
        except FileNotFoundError:
            raise ValueError(f"the script left no {file} in {{out}}; it left {shortened(self.files())}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{file} in {{out}} cannot be read: {getattr(error, 'strerror', error)}") from None

    def output(self) -> list[str]:
        """Return the lines of the output, without that of the command; of a long output, the last 16 MiB."""
        if self.log is None or not self.log.exists():
            return []
        with open_to_read(self.log) as file:
            size = self.log.stat().st_size
            file.seek(max(self.begin, size - _MOST_OUTPUT_BYTES))
            return file.read().decode(errors="replace").splitlines()[1:]


@dataclass(frozen=True)
class Found:
    """An outcome, and where it was."""

    value: float  # need not be finite
    where: str  # "log.csv, score, row 7"; of a mean, its last value
    source: str  # as `contracts.trainer.read_source` reads it, without a search
    total: int = 1  # numbers that the source has
    summary: str = ""  # "the last of 40 values"; "" if there is one
    at: Literal["in", "up to"] = "in"  # how `where` belongs to it

    @property
    def words(self) -> str:
        """Return the number, how it came about and where it was."""
        if self.summary:
            return f"{self.value:g}, {self.summary}, {self.at} {self.where}"
        return f"{self.value:g}, {self.at} {self.where}"


def shortened(names: Iterable[str]) -> str:
    """Return names for a message."""
    names = list(names)
    if not names:
        return "nothing"
    first_names = ", ".join(names[:_SHOWN])
    return f"{first_names}, …" if len(names) > _SHOWN else first_names
