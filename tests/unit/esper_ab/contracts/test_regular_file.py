"""Open files that others may have replaced by a link, a named pipe or a device: a read never blocks."""

import errno
import os
from pathlib import Path

import pytest

from esper_ab.contracts.regular_file import NotRegular, open_to_read, read_regular


def test_a_regular_file_is_read_up_to_a_size_limit(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link") == read_regular(tmp_path / "file", 7) == b"content"
    with open_to_read(tmp_path / "file", 2) as file:
        assert (file.seek(3), file.read()) == (3, b"tent")
    with pytest.raises(OSError, match="is larger than") as size_error:
        read_regular(tmp_path / "file", 6)
    assert size_error.value.errno == errno.EFBIG


def test_pipes_devices_folders_and_link_loops_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    for name in ("pipe", "zeros"):
        with pytest.raises(NotRegular, match="is not a regular file"):
            read_regular(tmp_path / name)
    with pytest.raises(IsADirectoryError):
        read_regular(tmp_path)
    (tmp_path / "itself").symlink_to("itself")
    with pytest.raises(OSError, match="itself"):
        read_regular(tmp_path / "itself")
