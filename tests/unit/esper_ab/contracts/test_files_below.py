"""Files below a folder: links are not followed, nothing outside is touched, and writes are atomic."""

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

APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


WRITES = (write_below, partial(write_below, synced=True))
ACTIONS = {
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


def read_precious(root):
    """Return the names and contents of the files outside the root."""
    folder = root.parent / "precious"
    return {str(path.relative_to(folder)): path.is_file() and path.read_bytes() for path in folder.rglob("*")}


@pytest.mark.parametrize("act", ACTIONS.values(), ids=ACTIONS)
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
def test_no_function_touches_files_behind_links_or_above_the_folder(root, act, name):
    (root / "a" / "b").symlink_to(root.parent / "precious" / "b")
    (root / "a" / "new").symlink_to(root.parent / "precious")
    content_before = read_precious(root)
    with pytest.raises(NotRegular, match=r"is a symbolic link|is not below"):
        act(root, name)
    assert read_precious(root) == content_before


@pytest.mark.parametrize("write", WRITES)
def test_writing_a_file_replaces_a_symbolic_link_without_following_it(root, write):
    (root / "a" / "x").symlink_to(root.parent / "precious" / "b" / "thesis")
    content_before = read_precious(root)
    write(root, "a/x", b"new")
    assert (root / "a" / "x").read_bytes() == b"new"
    assert not (root / "a" / "x").is_symlink()
    assert read_precious(root) == content_before


def test_links_pipes_and_folders_are_not_opened(root):
    (root / "link").symlink_to(root.parent / "precious" / "b" / "thesis")
    os.mkfifo(root / "pipe")
    for name, complaint in (("link", "is a symbolic link"), ("pipe", "is not a regular"), ("a", "is not a regular")):
        with pytest.raises(NotRegular, match=complaint):
            open_below(root, name, APPEND)


def test_the_top_folder_may_be_a_symbolic_link(root, tmp_path):
    (tmp_path / "mine").symlink_to(root)
    write_below(tmp_path / "mine", "a/b/c", b"new")
    assert (root / "a" / "b" / "c").read_bytes() == b"new"


@pytest.mark.parametrize("write", WRITES)
def test_a_failed_write_leaves_the_old_file(root, write, monkeypatch):
    write(root, "a/x", b"before")
    with monkeypatch.context() as full_disk:

        def raise_disk_full(*_args, **_options):
            raise OSError(28, "No space left on device")

        full_disk.setattr(os, "write", raise_disk_full)
        with pytest.raises(OSError, match="No space left") as disk_error:
            write(root, "a/x", b"after")
    assert disk_error.value.filename == str(root / "a" / "x")
    assert {path.name: path.read_bytes() for path in (root / "a").iterdir()} == {"x": b"before"}


def test_creating_a_file_neither_replaces_files_nor_follows_links(root):
    create_below(root, "a/x", b"first")
    with pytest.raises(FileExistsError):
        create_below(root, "a/x", b"second")
    (root / "a" / "link").symlink_to(root / "nowhere")
    with pytest.raises(OSError, match=r"link|exists"):
        create_below(root, "a/link", b"second")
    assert (root / "a" / "x").read_bytes() == b"first"
    assert not (root / "nowhere").exists()


def test_only_an_empty_folder_is_removed(root):
    write_below(root, "a/b/c", b"")
    assert not remove_empty_below(root, "a/b")
    remove_below(root, "a/b/c")
    assert remove_empty_below(root, "a/b")
    assert not (root / "a" / "b").exists()


def test_removing_a_folder_tree_removes_no_files_behind_links(root, tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    write_below(root, "c/d/file", b"x")
    (root / "c" / "link").symlink_to(tmp_path / "kept")
    remove_folder_below(root, "c")
    remove_folder_below(root, "c")
    assert not (root / "c").exists()
    assert (tmp_path / "kept" / "file").exists()


def test_symbolic_links_are_found_at_any_depth(root):
    (root / "a" / "b").mkdir()
    check_no_links(root, ("a", "missing"))
    (root / "a" / "b" / "c").symlink_to(root)
    with pytest.raises(NotRegular, match="is a symbolic link") as link_error:
        check_no_links(root, ("a",))
    assert link_error.value.filename == str(root / "a" / "b" / "c")
    check_no_links(root, ("missing",))


def record_synced_folders(make, monkeypatch):
    """Call `make`; return the paths that were synced to the disk meanwhile."""
    folders = []
    real_fsync = os.fsync

    def fsync(descriptor):
        folders.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real_fsync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        make()
    return folders


def test_making_a_folder_syncs_every_new_parent(root, monkeypatch):
    """A power cut right after keeps the folder and all parents that were made with it."""
    folders = record_synced_folders(lambda: make_folder(root / "x" / "y" / "z", exist_ok=False), monkeypatch)
    assert folders == [str(root), str(root / "x"), str(root / "x" / "y")]
    assert (root / "x" / "y" / "z").is_dir()
    with pytest.raises(FileExistsError):
        make_folder(root / "x", exist_ok=False)
    make_folder(root / "x")


def test_a_synced_write_syncs_the_file_and_its_new_folders(root, monkeypatch):
    folders = record_synced_folders(lambda: write_below(root, "x/y/file", b"new", synced=True), monkeypatch)
    assert [folder.partition("/.")[0] for folder in folders] == [
        str(root),
        str(root / "x"),
        str(root / "x" / "y"),
        str(root / "x" / "y"),
    ]
