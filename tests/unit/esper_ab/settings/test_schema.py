"""Settings that older versions lack are left out of hashes as long as they have their defaults."""

import msgspec
import pytest
from support.plans.requests import asked, experiment, machine, planned

from esper_ab.contracts.settings import GroupSettings
from esper_ab.settings.schema import EXPERIMENT_FIELDS, GROUP_FIELDS, leave_out_later

LATER = [key for key, field in GROUP_FIELDS.items() if field.spec.later]


def test_settings_with_their_defaults_are_left_out_if_older_versions_lack_them():
    table = msgspec.to_builtins(GroupSettings())
    leave_out_later(table, GROUP_FIELDS)
    left_keys = {f"{section}.{key}" for section, settings in table.items() for key in settings}
    assert "ppo.value_clip" in LATER
    assert left_keys == {key for key in GROUP_FIELDS if "." in key and key not in LATER}


@pytest.mark.parametrize(("key", "value"), [("ppo.value_clip", 0.2), ("policy.init", "xavier")])
def test_other_values_of_these_settings_stay(key: str, value: object):
    table = msgspec.to_builtins(GroupSettings())
    section, _, name = key.partition(".")
    table[section][name] = value
    leave_out_later(table, GROUP_FIELDS)
    assert table[section][name] == value
    assert [later_key for later_key in LATER if later_key.partition(".")[2] in table["policy"] | table["ppo"]] == [key]


def test_settings_of_an_experiment_are_left_out_as_well():
    table = msgspec.to_builtins(experiment())
    leave_out_later(table, EXPERIMENT_FIELDS)
    assert "claim" not in table
    assert "alpha" in table


def test_the_digest_of_a_plan_changes_with_another_value_only():
    digests = [
        planned(asked("shaped", "simplified", sets=sets), machine()).digest
        for sets in ((), ("policy.trunk=shared",), ("policy.trunk=separate",))
    ]
    assert digests[0] == digests[1] != digests[2]
