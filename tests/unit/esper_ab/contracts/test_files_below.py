"""Whatever bytes are damaged to, decoding them ends in UNREADABLE or in a value."""

import os
from functools import partial
from pathlib import Path

import pytest

from esper_ab.contracts.files_below import (
    check_no_links,
    create_below,
    folder_below,
    make_folder,
    open_below,
    remove_below,
    remove_empty_below,
    remove_folder_below,
    write_below,
)
from esper_ab.contracts.regular_file import NotRegular

# below: whatever is asked for, nothing outside the folder is touched, and what is written is whole.


APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


WRITES = (write_below, partial(write_below, synced=True))
ACTS = {
    "append": partial(open_below, flags=APPEND),
    "write": partial(write_below, data=b"new"),
    "create": partial(create_below, data=b"new"),
    "write synced": partial(write_below, data=b"new", synced=True),
    "remove": remove_below,
    "make a folder": folder_below,
    "remove a folder": remove_empty_below,
    "remove a folder with all in it": remove_folder_below,
}


@pytest.fixture
def root(tmp_path):
    (tmp_path / "root" / "a").mkdir(parents=True)
    (tmp_path / "precious" / "b").mkdir(parents=True)
    (tmp_path / "precious" / "b" / "thesis").write_text("years of work")
    return tmp_path / "root"


def precious(root):
    """All that is outside, with what is in it."""
    folder = root.parent / "precious"
    return {str(path.relative_to(folder)): path.is_file() and path.read_bytes() for path in folder.rglob("*")}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
@pytest.mark.parametrize(
    "name",
    [
        "a/b/thesis",
        "a/b/new",
        "a/new/x",
        "../precious/b/thesis",
        "a/../../precious/x",
        "/etc/x",
    ],
)
def test_nothing_behind_a_link_or_above_is_touched(root, act, name):
    (root / "a" / "b").symlink_to(root.parent / "precious" / "b")
    (root / "a" / "new").symlink_to(root.parent / "precious")
    before = precious(root)
    with pytest.raises(NotRegular, match=r"is a symbolic link|is not below"):
        act(root, name)
    assert precious(root) == before


@pytest.mark.parametrize("write", WRITES)
def test_a_link_that_is_the_file_is_replaced_and_not_followed(root, write):
    (root / "a" / "x").symlink_to(root.parent / "precious" / "b" / "thesis")
    before = precious(root)
    write(root, "a/x", b"new")
    assert (root / "a" / "x").read_bytes() == b"new"
    assert not (root / "a" / "x").is_symlink()
    assert precious(root) == before


def test_a_link_and_a_pipe_are_not_opened(root):
    (root / "link").symlink_to(root.parent / "precious" / "b" / "thesis")
    os.mkfifo(root / "pipe")
    for name, what in (("link", "is a symbolic link"), ("pipe", "is not a regular"), ("a", "is not a regular")):
        with pytest.raises(NotRegular, match=what):
            open_below(root, name, APPEND)


def test_the_folder_itself_may_be_a_link(root, tmp_path):
    (tmp_path / "mine").symlink_to(root)
    write_below(tmp_path / "mine", "a/b/c", b"new")
    assert (root / "a" / "b" / "c").read_bytes() == b"new"


@pytest.mark.parametrize("write", WRITES)
def test_what_cannot_be_written_leaves_what_was_there(root, write, monkeypatch):
    write(root, "a/x", b"before")
    with monkeypatch.context() as limited:

        def full(*_args, **_options):
            raise OSError(28, "No space left on device")

        limited.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left") as raised:
            write(root, "a/x", b"after")
    assert raised.value.filename == str(root / "a" / "x")
    assert {path.name: path.read_bytes() for path in (root / "a").iterdir()} == {"x": b"before"}


def test_a_file_that_is_created_replaces_nothing(root):
    create_below(root, "a/x", b"first")
    with pytest.raises(FileExistsError):
        create_below(root, "a/x", b"second")
    (root / "a" / "link").symlink_to(root / "nowhere")
    with pytest.raises(OSError, match=r"link|exists"):
        create_below(root, "a/link", b"second")
    assert (root / "a" / "x").read_bytes() == b"first"
    assert not (root / "nowhere").exists()


def test_a_folder_with_something_in_it_stays(root):
    write_below(root, "a/b/c", b"")
    assert not remove_empty_below(root, "a/b")
    remove_below(root, "a/b/c")
    assert remove_empty_below(root, "a/b")
    assert not (root / "a" / "b").exists()


def test_a_folder_is_removed_with_all_in_it_and_nothing_behind_its_links(root, tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    write_below(root, "c/d/file", b"x")
    (root / "c" / "link").symlink_to(tmp_path / "kept")
    remove_folder_below(root, "c")
    remove_folder_below(root, "c")
    assert not (root / "c").exists()
    assert (tmp_path / "kept" / "file").exists()


def test_links_are_found_however_deep(root):
    (root / "a" / "b").mkdir()
    check_no_links(root, ("a", "missing"))
    (root / "a" / "b" / "c").symlink_to(root)
    with pytest.raises(NotRegular, match="is a symbolic link") as raised:
        check_no_links(root, ("a",))
    assert raised.value.filename == str(root / "a" / "b" / "c")
    check_no_links(root, ("missing",))


def synced(make, monkeypatch):
    """The folders that were forced to disk while `make` was called."""
    folders = []
    real = os.fsync

    def fsync(descriptor):
        folders.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    with monkeypatch.context() as watched:
        watched.setattr(os, "fsync", fsync)
        make()
    return folders


def test_every_new_name_above_a_new_folder_is_on_the_disk(root, monkeypatch):
    """Law: a power cut right after keeps the folder, with the names of all the parents that were made with it."""
    folders = synced(lambda: make_folder(root / "x" / "y" / "z", exist_ok=False), monkeypatch)
    assert folders == [str(root), str(root / "x"), str(root / "x" / "y")]
    assert (root / "x" / "y" / "z").is_dir()
    with pytest.raises(FileExistsError):
        make_folder(root / "x", exist_ok=False)
    make_folder(root / "x")


def test_a_synced_file_is_on_the_disk_with_its_folders(root, monkeypatch):
    folders = synced(lambda: write_below(root, "x/y/file", b"new", synced=True), monkeypatch)
    assert [folder.partition("/.")[0] for folder in folders] == [
        str(root),
        str(root / "x"),
        str(root / "x" / "y"),
        str(root / "x" / "y"),
    ]
