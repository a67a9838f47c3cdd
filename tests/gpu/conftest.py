"""What tests on a GPU compute with is pinned as a worker pins it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from esper_ab.contracts.settings import Arithmetic
from workers.devices.by_torch import pin


def _pinned(monkeypatch: pytest.MonkeyPatch, *, deterministic: bool) -> Iterator[None]:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")  # so that it is as it was afterwards
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    pin(Arithmetic(deterministic=deterministic))
    yield
    torch.set_deterministic_debug_mode("default")


@pytest.fixture
def deterministic(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As workers compute by default."""
    yield from _pinned(monkeypatch, deterministic=True)


@pytest.fixture(params=[True, False], ids=["deterministic", "free"])
def pinned(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both ways in which workers compute."""
    yield from _pinned(monkeypatch, deterministic=request.param)
