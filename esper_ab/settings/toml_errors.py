"""Errors while a TOML file of the user is read, in one line that begins with the file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.settings.values import TOO_MANY_DIGITS


@contextmanager
def toml_errors(path: Path) -> Iterator[None]:
    """Inside this context, whatever keeps `path` from being read as TOML is raised as UsageError."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not TOML: {error}") from None
    except ValueError:
        raise UsageError(f"{path}: {TOO_MANY_DIGITS}") from None
    except RecursionError:
        raise UsageError(f"{path}: lists or tables are nested too deeply") from None
