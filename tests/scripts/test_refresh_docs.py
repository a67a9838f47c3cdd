"""Every number and picture of docs has a command that makes it, and what is older than its code is found."""

import subprocess

from refresh_docs import PRODUCTS, ROOT, commits_since


def test_every_file_of_numbers_belongs_to_one_product_or_names_the_commit_that_made_it():
    listed = [file for product in PRODUCTS.values() for file in product.files]
    assert len(listed) == len(set(listed))
    there = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "evidence" / "benchmarks").iterdir()]
    assert [file for file in there if file not in listed and " at commit `" not in (ROOT / file).read_text()] == []


def test_every_command_and_every_piece_of_code_exists():
    for name, product in PRODUCTS.items():
        assert (ROOT / product.command[0]).is_file(), name
        assert all((ROOT / code).exists() for code in product.code), name


def test_a_commit_that_touches_the_code_makes_a_file_older(tmp_path):
    def commit(name: str) -> None:
        (tmp_path / name).write_text(f"{(tmp_path / name).exists()}")
        words = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        for command in (("add", name), (*words, "commit", "-qm", name)):
            subprocess.run(["git", *command], cwd=tmp_path, check=True)

    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    commit("code")
    assert commits_since(tmp_path, ("numbers",), ("code",)) is None
    commit("numbers")
    assert commits_since(tmp_path, ("numbers",), ("code",)) == 0
    commit("other")
    assert commits_since(tmp_path, ("numbers",), ("code",)) == 0
    commit("code")
    assert commits_since(tmp_path, ("numbers",), ("code",)) == 1
