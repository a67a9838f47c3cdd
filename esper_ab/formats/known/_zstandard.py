"""Unpack Zstandard by DuckDB, which has it built in."""

from __future__ import annotations

import os

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.visible import visible_line

_LIMITS = "SET threads = 1; SET memory_limit = '1GiB'; SET temp_directory = ''"
_LEAST_BYTES = 1 << 16  # of DuckDB's buffer
_ANY_TEXT = """
SELECT line FROM read_csv($path, compression = 'zstd', columns = {line: 'VARCHAR'}, header = false, delim = '\x01',
                          quote = '', escape = '', auto_detect = false, strict_mode = false, max_line_size = $longest,
                          buffer_size = 2 * $longest)
"""


def unpack_text(origin: str, content: bytes, size: int) -> bytes:
    """Return the text of `size` bytes. Raises UsageError, which begins with `origin`, if it is damaged or larger."""
    import duckdb

    longest_text = max(size, _LEAST_BYTES)
    descriptor = os.memfd_create("esper-ab")
    try:
        os.write(descriptor, content)
        path = f"/proc/self/fd/{descriptor}"
        with duckdb.connect() as connection:
            connection.execute(_LIMITS)
            rows = connection.execute(_ANY_TEXT, {"path": path, "longest": longest_text}).fetchall()
    except (duckdb.Error, RuntimeError) as error:
        raise UsageError(f"{origin} cannot be unpacked: {visible_line(str(error), 160)}") from None
    finally:
        os.close(descriptor)
    return "\n".join(line or "" for (line,) in rows).encode()
