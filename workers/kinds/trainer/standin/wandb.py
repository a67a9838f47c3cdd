"""Stand-in for the package wandb in a script that a run starts: it keeps the values of one key and nothing else.

It is used instead of wandb's offline mode, which needs wandb installed, starts a service for every run, and writes a
format that changes. Scripts make their usual calls. `init`, `log`, `config` and `summary` behave like wandb's as far as
a script can tell. `sync_tensorboard=True` counts a SummaryWriter's scalars as logged. All other calls are accepted and
ignored, including those to submodules: `wandb.integration.sb3` has a no-op callback for Stable-Baselines3. The stand-in
needs no account, network or dependency.

ESPER_AB_WANDB_KEY names the key, and ESPER_AB_WANDB_FILE names the file that gets one line per value.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_KEY = os.environ["ESPER_AB_WANDB_KEY"]
_FILE = os.environ["ESPER_AB_WANDB_FILE"]
__version__ = "0.31.0"  # for scripts that require a minimum version
__path__: list[str] = []  # a package; its modules are made below


class _DroppedType(type):
    """Type of classes that have every attribute."""

    def __getattr__(cls, name: str) -> Any:
        return _attribute(name)


class _Dropped(metaclass=_DroppedType):
    """No-op stub for any wandb attribute."""

    def __init__(self, *args: Any, **options: Any) -> None: ...

    def __call__(self, *args: Any, **options: Any) -> _Dropped:
        return self

    def __getattr__(self, name: str) -> Any:
        return _attribute(name)

    def __enter__(self) -> _Dropped:
        return self

    def __exit__(self, *error: object) -> None: ...


@functools.cache
def _attribute(name: str) -> Any:
    """Return a stub for an unknown name: a class where wandb has one, an exception if the name ends in "Error"."""
    if name.startswith("__"):  # Python's protocol lookups
        raise AttributeError(name)
    if name.endswith("Error"):
        return type(name, (Exception,), {})
    return type(name, (_Dropped,), {}) if name[:1].isupper() else _Dropped()


class _Modules:
    """Finder and loader that makes every submodule importable."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.startswith(f"{__name__}.") else None  # type: ignore[arg-type]  # has what a loader needs

    def create_module(self, spec: ModuleSpec) -> None: ...

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__getattr__"] = _attribute
        if module.__name__ == f"{__name__}.integration.sb3":
            vars(module)["WandbCallback"] = _sb3_callback()


def _sb3_callback() -> type:
    """Return a no-op callback that can be subclassed and used in a list."""
    base = importlib.import_module("stable_baselines3.common.callbacks").BaseCallback

    def init(self: Any, verbose: int = 0, *args: Any, **options: Any) -> None:
        base.__init__(self, verbose)

    return type("WandbCallback", (base,), {"__init__": init, "_on_step": lambda self: True})


class _Config(dict[str, Any]):
    """The script's settings, readable as items and as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value

    def update(self, values: Any = (), /, allow_val_change: bool = False, **named_values: Any) -> None:
        is_object = hasattr(values, "__dict__") and not isinstance(values, Mapping)
        super().update(vars(values) if is_object else values, **named_values)


class _Summary(dict[str, Any]):
    """The last value of every key; assigning one counts as logging it."""

    def __setitem__(self, key: str, value: object) -> None:
        super().__setitem__(key, value)
        _keep(key, value)

    def update(self, values: Any = (), /, **named_values: Any) -> None:
        for key, value in {**dict(values), **named_values}.items():
            self[key] = value


class ScriptRun(_Dropped):
    """The run of this process."""

    id = name = "run"
    dir = os.path.dirname(_FILE)  # noqa: PTH120  wandb gives text

    def __init__(self) -> None:
        self.config = _Config()
        self.summary = _Summary()

    def log(self, data: Mapping[str, Any], *args: Any, **options: Any) -> None:
        """Keep the values of the key; names in nested mappings are joined by dots."""
        for key, value in data.items():
            if isinstance(value, Mapping):
                self.log({f"{key}.{inner_key}": inner_value for inner_key, inner_value in value.items()})
            else:
                self.summary[key] = value


run = ScriptRun()
config = run.config
summary = run.summary
log = run.log


def init(*args: Any, config: Any = None, sync_tensorboard: bool = False, **options: Any) -> ScriptRun:
    """Store the settings; with `sync_tensorboard` a SummaryWriter's scalars count as logged."""
    if config is not None:
        run.config.update(config)
    if sync_tensorboard:
        for module in ("torch.utils.tensorboard", "tensorboardX"):
            try:
                _follow(importlib.import_module(module).SummaryWriter)
            except ImportError:
                continue
    return run


def _follow(writer: Any) -> None:
    original_add = writer.add_scalar

    @functools.wraps(original_add)
    def add_scalar(self: Any, tag: str, scalar_value: Any, *args: Any, **options: Any) -> None:
        run.log({tag: scalar_value})
        original_add(self, tag, scalar_value, *args, **options)

    writer.add_scalar = add_scalar


def _keep(key: str, value: Any) -> None:
    if key == _KEY:
        try:
            number = float(value.item() if hasattr(value, "item") else value)
        except (TypeError, ValueError, RuntimeError, OverflowError):  # an image, None, an array of several numbers
            return
        with open(_FILE, "a", encoding="utf-8") as file:  # noqa: PTH123  as light as a script's own imports
            file.write(f"{number!r}\n")


__getattr__ = _attribute
sys.meta_path.append(_Modules())
