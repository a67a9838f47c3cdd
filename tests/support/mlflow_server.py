"""MLflow's REST interface over HTTP, as far as we use it, in front of a real store in a file.

MLflow's own server needs more packages than its client has.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag
from mlflow.protos import service_pb2
from mlflow.utils.proto_json_utils import message_to_json

PREFIX = "/api/2.0/mlflow/"


class Interface:
    """One method per endpoint: a request of `service_pb2` in, its response out."""

    def __init__(self, uri):
        self.client = MlflowClient(tracking_uri=uri)

    def experiments_get_by_name(self, asked, answer):
        found = self.client.get_experiment_by_name(asked["experiment_name"])
        if found is None:
            raise KeyError("RESOURCE_DOES_NOT_EXIST")
        answer.experiment.MergeFrom(found.to_proto())

    def experiments_create(self, asked, answer):
        answer.experiment_id = self.client.create_experiment(asked["name"])

    def runs_search(self, asked, answer):
        for run in self.client.search_runs(asked["experiment_ids"], asked.get("filter", "")):
            answer.runs.append(run.to_proto())

    def runs_create(self, asked, answer):
        tags = {tag["key"]: tag["value"] for tag in asked.get("tags", ())}
        started = int(asked["start_time"])
        made = self.client.create_run(asked["experiment_id"], started, tags, asked.get("run_name"))
        answer.run.MergeFrom(made.to_proto())

    def runs_get(self, asked, answer):
        answer.run.MergeFrom(self.client.get_run(asked["run_id"]).to_proto())

    def runs_update(self, asked, answer):
        if "end_time" in asked:
            self.client.set_terminated(asked["run_id"], asked["status"], int(asked["end_time"]))
        else:
            self.client.update_run(asked["run_id"], asked["status"])
        answer.run_info.MergeFrom(self.client.get_run(asked["run_id"]).info.to_proto())

    def runs_log_batch(self, asked, answer):
        metrics = [Metric(one["key"], one["value"], int(one["timestamp"]), int(one.get("step", 0)))
                   for one in asked.get("metrics", ())]  # fmt: skip
        params = [Param(one["key"], one["value"]) for one in asked.get("params", ())]
        tags = [RunTag(one["key"], one["value"]) for one in asked.get("tags", ())]
        self.client.log_batch(asked["run_id"], metrics, params, tags)

    def metrics_get_history(self, asked, answer):
        for one in self.client.get_metric_history(asked["run_id"], asked["metric_key"]):
            answer.metrics.append(one.to_proto())


ANSWERS = {
    "experiments_get_by_name": service_pb2.GetExperimentByName, "experiments_create": service_pb2.CreateExperiment,
    "runs_search": service_pb2.SearchRuns, "runs_create": service_pb2.CreateRun, "runs_get": service_pb2.GetRun,
    "runs_update": service_pb2.UpdateRun, "runs_log_batch": service_pb2.LogBatch,
    "metrics_get_history": service_pb2.GetMetricHistory,
}  # fmt: skip


@contextmanager
def serving(port, uri):
    """While entered, `uri` is served at 127.0.0.1:`port`; the list of what was asked for and is not there."""
    interface, unknown = Interface(uri), []
    lock = threading.Lock()  # the store in files is for one at a time

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def answer(self, asked):
            name = urlsplit(self.path).path.removeprefix(PREFIX).replace("/", "_").replace("-", "_")
            if name not in ANSWERS:
                unknown.append(self.path)
                self.send_error(404)
                return
            answer, status = ANSWERS[name].Response(), 200
            try:
                with lock:
                    getattr(interface, name)(asked, answer)
                body = message_to_json(answer)
            except KeyError as error:
                body, status = json.dumps({"error_code": error.args[0], "message": ""}), 404
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def do_GET(self):
            self.answer({name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()})

        def do_POST(self):
            self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield unknown
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
