"""What one command writes into a folder of its own is in no state of the code that another one seals."""

from support.repositories.users_repository import users_repository

from esper_ab.code_trees.sealing import seal
from esper_ab.contracts.unversioned import GITIGNORE, leave_unversioned


def test_a_folder_of_ours_is_no_part_of_the_users_code(tmp_path):
    repository = users_repository(tmp_path / "my project")
    repository.commit({"train.py": "one"})
    repository.write({"earlier results/of one/report.html": "long"})
    leave_unversioned(repository.top / "earlier results")
    assert repository.git("status", "--porcelain") == ""
    (state,) = seal({"head": str(repository.top)}, repository.top, None, []).states
    assert (state.changed, state.sealed) == (0, state.commit)


def test_a_gitignore_that_is_there_is_kept(tmp_path):
    (tmp_path / GITIGNORE).write_text("mine", encoding="utf-8")
    leave_unversioned(tmp_path)
    assert (tmp_path / GITIGNORE).read_text(encoding="utf-8") == "mine"
