"""Unpack Zstandard by DuckDB, which has it built in."""

from __future__ import annotations

import os

from esper_ab.contracts.errors import UsageError

_LIMITS = "SET threads = 1; SET memory_limit = '1GiB'; SET temp_directory = ''"
_ANY_TEXT = """
SELECT line FROM read_csv($path, compression = 'zstd', columns = {line: 'VARCHAR'}, header = false, delim = '\x01',
                          quote = '', escape = '', auto_detect = false, strict_mode = false, max_line_size = $longest)
"""


def unpack_text(where: str, content: bytes, most_bytes: int) -> bytes:
    """Return the unpacked text. Raises UsageError, which begins with `where`, if it is damaged or too much."""
    import duckdb

    descriptor = os.memfd_create("esper-ab")
    try:
        os.write(descriptor, content)
        path = f"/proc/self/fd/{descriptor}"
        with duckdb.connect() as connection:
            connection.execute(_LIMITS)
            rows = connection.execute(_ANY_TEXT, {"path": path, "longest": most_bytes}).fetchall()
    except duckdb.Error as error:
        raise UsageError(f"{where} cannot be unpacked: {str(error).splitlines()[0]}") from None
    finally:
        os.close(descriptor)
    return "\n".join(line or "" for (line,) in rows).encode()
