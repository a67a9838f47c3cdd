"""`esper-ab query`: run an SQL query over an experiment directory."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._experiment_directory import experiment_argument
from esper_ab.commands._parameters import json_flag, switch, valued
from esper_ab.contracts.visible import visible
from esper_ab.readers.query_result import query_csv, query_json, query_text
from esper_ab.readers.sql import LIMIT_S, query


@command_with(
    "esper-ab query experiments/EXPERIMENT 'SELECT run, avg(outcome) FROM evaluations GROUP BY run'",
    "esper-ab query experiments/EXPERIMENT 'SELECT * FROM seed_events' --csv",
)
@experiment_argument
@click.argument("sql")
@json_flag
@switch("--csv", "Print comma-separated values with a header line.")
@valued(
    "--timeout",
    "SECONDS",
    "Cancel the query after this time.",
    "limit_s",
    type=click.FloatRange(min=0, min_open=True),
    default=LIMIT_S,
)
def command(experiment_dir: Path, sql: str, json: bool, csv: bool, limit_s: float) -> None:
    """Run an SQL query over EXPERIMENT.

    The views are runs, episodes, env_episodes, evaluations, ppo_updates, seed_events and incidents.
    """
    if json and csv:
        raise click.UsageError("--json and --csv exclude each other")
    if json:
        render = query_json
    elif csv:
        render = query_csv
    else:
        render = query_text
    answer = render(query(experiment_dir, sql, limit_s))
    if sys.stdout.isatty():  # a file gets the CSV unescaped
        answer = visible(answer)
    click.echo(answer)
