"""SB3's progress.csv, in which most rows have no evaluation."""

from esper_ab.formats.known import read_file
from esper_ab.formats.source_table import series_of


def test_rows_without_a_value_are_left_out_of_a_series(tmp_path):
    file = tmp_path / "progress.csv"
    file.write_text("time/total_timesteps,rollout/ep_rew_mean,eval/mean_reward\n100,1,\n200,,7.5\n300,2,\n")
    (table,) = read_file(file)
    series = series_of(table, "eval/mean_reward")
    assert (series.values.tolist(), series.steps.tolist(), series.row_numbers) == ([7.5], [200], [3])
    assert table.outcomes == ("eval/mean_reward", "rollout/ep_rew_mean")
