"""Run `esper-ab track` with the real libraries, and read W&B's offline files and TensorBoard's event files."""

import json
import struct
import warnings
from pathlib import Path

from support.journals import synthetic
from support.processes.children import python

PATIENCE_S = 600.0  # libraries that load in seconds take minutes on a machine that is fifteen times overloaded
SMALL = synthetic.Synthetic(replicates=2, episodes=3, n_envs=2, steps=10, eval_episodes=2)
_HEADER_BYTES = 7
_BLOCK_BYTES = 32768
_FULL = 1
_FIRST = 2
_LAST = 4


def track(experiment_dir, *flags):
    """Run `esper-ab track`, by default with all trackers, and return its JSON."""
    flags = flags or ("--wandb", "--tensorboard")
    process = python("-m", "esper_ab.commands.cli", "track", experiment_dir, "--json", *flags)
    assert process.returncode == 0, process.stdout + process.stderr
    return json.loads(process.stdout)


def wandb_records(path):
    """Yield the records of a .wandb file: a header, then chunks in blocks of 32 KiB, as in LevelDB's log."""
    from wandb.proto.wandb_internal_pb2 import Record

    data = path.read_bytes()
    offset = _HEADER_BYTES
    content = b""
    assert data[:4] == b":W&B"
    while offset + _HEADER_BYTES <= len(data):
        bytes_left = _BLOCK_BYTES - offset % _BLOCK_BYTES
        if bytes_left < _HEADER_BYTES:
            offset += bytes_left
            continue
        _, length, kind = struct.unpack("<IHB", data[offset : offset + _HEADER_BYTES])
        if kind == 0:
            break
        offset += _HEADER_BYTES
        content = (
            data[offset : offset + length] if kind in (_FULL, _FIRST) else content + data[offset : offset + length]
        )
        offset += length
        if kind in (_FULL, _LAST):
            record = Record()
            record.ParseFromString(content)
            yield record


def _items(items):
    """Return history, summary or config entries by key; a nested key is dotted."""
    return {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in items}


def wandb_runs(experiment_dir):
    """Return the contents of each run's offline file: project, group, tags, config, history, summary, exit code."""
    runs = {}
    for path in sorted((experiment_dir / "wandb").glob("offline-run-*/*.wandb")):
        run_facts = {"history": {}, "summary": {}}
        for record in wandb_records(path):
            kind = record.WhichOneof("record_type")
            if kind == "run" and "id" not in run_facts:
                run = record.run
                run_facts |= {
                    "id": run.run_id,
                    "project": run.project,
                    "group": run.run_group,
                    "tags": tuple(run.tags),
                    "name": run.display_name,
                    "config": _items(run.config.update),
                }
            elif kind == "history":
                step = record.history.step.num
                assert step not in run_facts["history"]
                run_facts["history"][step] = _without_own(_items(record.history.item))
            elif kind == "summary":
                run_facts["summary"] |= _without_own(_items(record.summary.update))
            elif kind == "exit":
                run_facts["exit"] = record.exit.exit_code
        assert run_facts["name"] not in runs
        runs[run_facts["name"]] = run_facts
    return runs


def _without_own(items):
    """Remove W&B's own entries, such as runtime and step."""
    return {name: value for name, value in items.items() if not name.startswith("_")}


def tensorboard_runs(experiment_dir):
    """Return (scalars: name -> {step: value}, texts: name -> text, hyperparameters) by run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TensorBoard's, about its own dependencies
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        from tensorboard.plugins.hparams import plugin_data_pb2

    runs = {}
    root = experiment_dir / "tensorboard"
    for path in sorted(root.rglob("events.out.tfevents.*")):
        events = EventAccumulator(str(path.parent), size_guidance={"scalars": 0, "tensors": 0}).Reload()
        scalars = {tag: {event.step: event.value for event in events.Scalars(tag)} for tag in events.Tags()["scalars"]}
        tensors = {tag: events.Tensors(tag)[0].tensor_proto for tag in events.Tags()["tensors"]}
        texts = {tag: proto.string_val[0].decode() for tag, proto in tensors.items() if proto.string_val}
        content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
        settings = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info.hparams
        name = path.parent.relative_to(root).as_posix()
        assert name not in runs
        runs[name] = scalars, texts, {key: _value(value) for key, value in settings.items()}
    return runs


def _value(value):
    return getattr(value, value.WhichOneof("kind"))


def files_below(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def tracker_contents(experiment_dir):
    """Return the contents of both trackers."""
    return wandb_runs(experiment_dir), files_below(experiment_dir / "tensorboard")
