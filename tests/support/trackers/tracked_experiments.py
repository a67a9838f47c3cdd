"""`esper-ab track` with the real libraries, and what they hold: W&B's offline files, TensorBoard's by its reader."""

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
    done = python("-m", "esper_ab.commands.cli", "track", experiment_dir, "--json", *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def wandb_records(path):
    """The records of one .wandb file: a header, then chunks as in LevelDB's log, 32 KiB a block."""
    from wandb.proto.wandb_internal_pb2 import Record

    data = path.read_bytes()
    at = _HEADER_BYTES
    whole = b""
    assert data[:4] == b":W&B"
    while at + _HEADER_BYTES <= len(data):
        left = _BLOCK_BYTES - at % _BLOCK_BYTES
        if left < _HEADER_BYTES:
            at += left
            continue
        _, length, kind = struct.unpack("<IHB", data[at : at + _HEADER_BYTES])
        if kind == 0:
            break
        at += _HEADER_BYTES
        whole = data[at : at + length] if kind in (_FULL, _FIRST) else whole + data[at : at + length]
        at += length
        if kind in (_FULL, _LAST):
            record = Record()
            record.ParseFromString(whole)
            yield record


def _items(items):
    """Key and value of history, summary or config entries; a nested key is dotted."""
    return {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in items}


def wandb_runs(experiment_dir):
    """Run -> what its offline file says: project, group, tags, config, history by step, summary, exit code."""
    found = {}
    for path in sorted((experiment_dir / "wandb").glob("offline-run-*/*.wandb")):
        said = {"history": {}, "summary": {}}
        for record in wandb_records(path):
            kind = record.WhichOneof("record_type")
            if kind == "run" and "id" not in said:
                run = record.run
                said |= {
                    "id": run.run_id,
                    "project": run.project,
                    "group": run.run_group,
                    "tags": tuple(run.tags),
                    "name": run.display_name,
                    "config": _items(run.config.update),
                }
            elif kind == "history":
                step = record.history.step.num
                assert step not in said["history"]
                said["history"][step] = _without_own(_items(record.history.item))
            elif kind == "summary":
                said["summary"] |= _without_own(_items(record.summary.update))
            elif kind == "exit":
                said["exit"] = record.exit.exit_code
        assert said["name"] not in found
        found[said["name"]] = said
    return found


def _without_own(items):
    """W&B adds runtime and step."""
    return {name: value for name, value in items.items() if not name.startswith("_")}


def tensorboard_runs(experiment_dir):
    """Run -> (scalars: name -> {step: value}, texts: name -> text, hyperparameters)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TensorBoard's, about its own dependencies
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        from tensorboard.plugins.hparams import plugin_data_pb2

    found = {}
    root = experiment_dir / "tensorboard"
    for path in sorted(root.rglob("events.out.tfevents.*")):
        events = EventAccumulator(str(path.parent), size_guidance={"scalars": 0, "tensors": 0}).Reload()
        scalars = {tag: {one.step: one.value for one in events.Scalars(tag)} for tag in events.Tags()["scalars"]}
        tensors = {tag: events.Tensors(tag)[0].tensor_proto for tag in events.Tags()["tensors"]}
        texts = {tag: proto.string_val[0].decode() for tag, proto in tensors.items() if proto.string_val}
        content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
        settings = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info.hparams
        name = path.parent.relative_to(root).as_posix()
        assert name not in found
        found[name] = scalars, texts, {key: _value(value) for key, value in settings.items()}
    return found


def _value(value):
    return getattr(value, value.WhichOneof("kind"))


def files_below(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def tracker_contents(experiment_dir):
    """All that the trackers hold."""
    return wandb_runs(experiment_dir), files_below(experiment_dir / "tensorboard")
