from pathlib import Path

import pytest

from workers.devices import signs


def test_a_device_file_of_the_driver_shows_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signs, "_SIGNS", (tmp_path / "nvidia0", tmp_path / "nvidiactl"))
    assert not signs.gpu_is_there()
    (tmp_path / "nvidiactl").touch()
    assert signs.gpu_is_there()
