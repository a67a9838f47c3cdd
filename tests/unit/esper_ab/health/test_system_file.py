"""Files of /proc and /sys, some of which a system may lack."""

from esper_ab.health.system_file import text_of


def test_a_missing_system_file_is_read_as_empty(tmp_path):
    (tmp_path / "there").write_bytes(b"12\xff\n")
    assert text_of(tmp_path / "there") == "12\N{REPLACEMENT CHARACTER}\n"
    assert text_of(tmp_path / "nowhere") == ""
    assert text_of(tmp_path) == ""
