import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.settings.references import read_references, read_size

NAMES = ("--references", "--references-limit")


@pytest.mark.parametrize(
    ("text", "size"),
    [("2000000", 2e6), ("500MB", 500e6), ("2 GB", 2e9), ("1.5GiB", 1.5 * 2**30), ("3k", 3000), ("0", 0), ("1tb", 1e12)],
)
def test_sizes(text, size):
    assert read_size(text, "--references-limit") == size


@pytest.mark.parametrize("text", ["", "GB", "-1", "1.5.5MB", "1e9", "ten", "5 MBit"])
def test_text_that_is_no_size_is_refused(text):
    with pytest.raises(UsageError, match="expected a size, as in 500MB or 2GB"):
        read_size(text, "--references-limit")


@pytest.mark.parametrize("text", ["20", "0.5", "999999"])
def test_a_size_whose_unit_was_forgotten_is_refused(text):
    with pytest.raises(UsageError, match=f"this would be {text} bytes; add the unit, as in {text}MB or {text}GB"):
        read_size(text, "--references-limit")


def test_a_folder_need_not_exist(tmp_path):
    references = read_references(tmp_path / "a" / ".." / "b", None, NAMES)
    assert (references.folder, references.limit_bytes) == ((tmp_path / "b").resolve(), 10**9)
    assert read_references(None, None, NAMES) is None


def test_a_file_and_a_limit_without_a_folder_are_refused(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="this is a file"):
        read_references(tmp_path / "file", None, NAMES)
    with pytest.raises(UsageError, match="add --references"):
        read_references(None, "1GB", NAMES)
