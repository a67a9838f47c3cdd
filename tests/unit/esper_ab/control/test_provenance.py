"""The recorded commit is that of a repository that tracks this package."""

import subprocess

import msgspec
import pytest
from support.journals.synthetic import Synthetic

from esper_ab.control import provenance


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Make a user's repository with this package installed below it."""
    for name, value in (("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_SYSTEM", "/dev/null")):
        monkeypatch.setenv(name, value)
    installed_module = tmp_path / ".venv" / "esper_ab" / "control" / "provenance.py"
    installed_module.parent.mkdir(parents=True)
    installed_module.touch()
    git(tmp_path, "init", "--quiet")
    (tmp_path / "mine.py").touch()
    commit(tmp_path, "mine.py")
    monkeypatch.setattr(provenance, "__file__", str(installed_module))
    return tmp_path


def git(folder, *arguments):
    identity_options = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    return subprocess.check_output(["git", *identity_options, *arguments], cwd=folder, text=True).strip()


def commit(folder, name):
    git(folder, "add", "--force", name)
    git(folder, "-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message", name)


def test_the_commit_is_recorded_only_for_a_repository_that_tracks_the_package(repository):
    assert provenance.code().keys() == {"sources"}
    commit(repository, ".venv/esper_ab/control/provenance.py")
    code = provenance.code()
    assert (code["commit"], code["dirty"]) == (git(repository, "rev-parse", "HEAD"), "no")


def test_the_repository_of_a_command_is_recorded_and_that_of_other_trainers_is_not(repository):
    def of(trainer, **changes):
        settings = {"trainer": trainer, "trainer_folder": str(repository), **changes}
        experiment = msgspec.structs.replace(Synthetic().plan().experiment, **settings)
        return provenance.repository_of_command(experiment)

    assert of("./train {seed}")["commit"] == git(repository, "rev-parse", "HEAD")
    assert of("mine.py") == of("mine.py:train") == of("") == {}
    assert of("./train {seed}", code=("shaped=c1", "simplified=c2")) == {}
