import pytest

from esper_ab.api.spelling import in_python
from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.marked_settings import in_every_door, marked, parts_of


@pytest.mark.parametrize(
    ("setting", "in_shell", "as_argument"),
    [
        (SettingName("outcome_range", "0..1"), "--outcome-range 0..1", "outcome_range=0..1"),
        (SettingName("outcome_range", "..1"), "--outcome-range ..1", "outcome_range=..1"),
        (SettingName("end_idle"), "--end-idle", "end_idle"),
        (SettingName("eval_episodes", 8), "--eval-episodes 8", "eval_episodes=8"),
    ],
)
def test_a_setting_that_a_worker_marked_is_spelled_by_the_door_that_shows_it(setting, in_shell, as_argument):
    error = UsageError("trainer f: ", *parts_of(f"outside {marked(setting)}; correct it"))
    assert str(error) == f"trainer f: outside {in_shell}; correct it"
    assert error.spelled(in_python()) == f"trainer f: outside {as_argument}; correct it"


@pytest.mark.parametrize("text", ["", "no settings", "⟦ a list ⟧", "⟦", "python train.py --seed 3"])
def test_a_text_without_marked_settings_is_unchanged(text):
    assert str(UsageError(*parts_of(text))) == text


def test_stored_texts_name_the_flag_and_the_argument():
    assert in_every_door(SettingName("max_parallel", 1)) == "--max-parallel 1 (in Python max_parallel)"
    assert in_every_door(SettingName("outcome_range")) == "--outcome-range (in Python outcome_range)"
