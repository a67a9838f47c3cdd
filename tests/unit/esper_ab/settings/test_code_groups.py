import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.settings.parse import parse
from esper_ab.settings.request import read_request
from esper_ab.settings.settings_file import NO_FILE, read_toml

TRAINER = {"trainer": "train.py:train", "margin": 1.0}


def asked(options, file=NO_FILE):
    return parse(read_request({**TRAINER, **options}, file))


def groups(experiment):
    return [group.name for group in experiment.groups]


def test_every_state_makes_a_group_and_the_first_is_the_control():
    experiment = asked({"code": ("base=main", "head=dev", "old=v1")})
    assert groups(experiment) == ["base", "head", "old"]
    assert experiment.control == "base"
    assert experiment.states_of_code == {"base": "main", "head": "dev", "old": "v1"}


def test_states_may_be_set_like_any_setting():
    assert groups(asked({"set": ("code=[base=main,head=dev]",)})) == ["base", "head"]


def test_a_folder_is_made_absolute_and_a_commit_is_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    experiment = asked({"code": ("base=feature/x", "head=.")})
    assert experiment.states_of_code == {"base": "feature/x", "head": str(tmp_path)}
    assert experiment.trainer_folder == str(tmp_path)


def test_a_group_may_also_differ_in_a_setting():
    experiment = asked({"code": ("base=main", "head=dev"), "group": ("head:trainer.lr=1",)})
    assert groups(experiment) == ["base", "head"]
    assert [group.settings.trainer for group in experiment.groups] == [{}, {"lr": "1"}]


def test_a_control_that_is_named_stays():
    assert asked({"code": ("base=main", "head=dev"), "control": "head"}).control == "head"


def test_a_table_of_a_file_has_the_states(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text('[code]\nbase = "main"\n"a.b" = "."\n', encoding="utf-8")
    experiment = asked({}, read_toml(file))
    assert experiment.states_of_code == {"base": "main", "a.b": str(tmp_path)}


def test_flags_replace_the_states_of_a_file(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text('groups = ["base", "head"]\n[code]\nbase = "main"\nhead = "dev"\n', encoding="utf-8")
    experiment = asked({"code": ("base=v1", "head=v2")}, read_toml(file))
    assert experiment.states_of_code == {"base": "v1", "head": "v2"}


def test_a_name_that_the_list_could_not_hold_is_refused(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text('[code]\n"lr=0.1" = "main"\n', encoding="utf-8")
    with pytest.raises(UsageError, match="has no =; rename it"):
        asked({}, read_toml(file))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"code": ("base=main",)}, "base is the only state"),
        ({"code": ("base=main", "head=dev"), "group": ("other:trainer.lr=1",)}, "other would have no state"),
        ({"code": ("base",)}, "expected NAME=COMMIT or NAME=FOLDER"),
        ({"code": ("base=main", "head=dev"), "vary": "lr=1,2"}, "write --grid trainer.lr=1,2 instead"),
        ({"code": ("base=main", "head=dev"), "vary": "a.lr=1,2"}, "write --grid a.lr=1,2 instead"),
    ],
)
def test_contradictions_are_refused(options, message):
    with pytest.raises(UsageError) as refused:
        asked(options)
    assert message in "".join(map(str, refused.value.args))
