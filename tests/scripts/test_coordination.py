"""The benchmark of the coordinator: its fake workers are still what a coordinator takes for workers."""


from benchmarks import coordination


def test_a_cell_is_carried_out_to_its_last_round(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where its experiment is
    found = coordination.cell(blocks=2, runs=2, n_envs=2, episodes=4)
    assert found["rounds"] == 3
    assert found["bytes_per_record"] > 500
    assert 0.0 < found["wait_ms"]["median"] <= found["wait_ms"]["max"]
    assert list(tmp_path.iterdir()) == []
