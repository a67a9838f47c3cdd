"""`esper-ab`: a table of the commands, each in the module of its name, which is imported when the command is called."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from esper_ab.commands._exit_status import STATUSES, epilog, invoke, leaving

# Heading -> name of a command and, with _ for -, of its module -> its help in one line: `--help` imports none of them.
SECTIONS = {
    "Train and compare": {
        "launch": "Train one policy per group and seed on paired randomness, and compare the groups.",
        "resume": "Go on with EXPERIMENT, however it was stopped; or add seeds to it.",
        "stop": "End EXPERIMENT in order, as Ctrl-C does, and wait until it has ended.",
        "slurm-script": "Print a script for sbatch that launches an experiment, and resumes it wherever it was "
                        "interrupted.",
    },
    "Follow and read": {
        "status": "Show how far EXPERIMENT is, from its journal, and what became of its trackers.",
        "list": "List the experiments below DIR [default: experiments], newest first, with progress and verdicts.",
        "logs": "Print the logs of EXPERIMENT: of one run, of a worker between runs, of the console, or all.",
        "report": "Rebuild summary.txt, verdict.json and report.html of EXPERIMENT from its journal.",
        "figure": "Write one figure of the report of EXPERIMENT as PDF, SVG or PNG.",
        "cite": "Print how to cite esper_ab, and the results of EXPERIMENT as rows of a LaTeX table.",
        "query": "Answer a question about EXPERIMENT in SQL.",
        "export": "Write the tables of EXPERIMENT as CSV or Parquet files.",
        "compare": "Compare the groups of several experiment directories; exploratory.",
        "judge": "Judge outcomes of runs made elsewhere: by PLAN, saying what was not followed, or exploratory.",
        "track": "Fill trackers with what EXPERIMENT has recorded: Weights & Biases or TensorBoard.",
    },
    "Before an experiment": {
        "doctor": "Look at devices, driver, cores, memory, disk, limits and packages; each diagnosis has its remedy.",
        "init": "Write an experiment file that runs as it is, with every setting and its default as a comment.",
        "power": "Show the smallest difference that R seeds resolve, and the seeds that a margin needs.",
        "design": "Write a plan for runs that are made elsewhere: comparisons, looks and bounds, before the first run.",
        "calibrate": "Train one group again and again, and show how often each rule would find a difference in it.",
        "growth": "Audit rewards of growth, run its heuristic controller alone, or download data of a task.",
    },
    "Afterwards": {
        "evaluate": "Evaluate saved policies, frozen with their normalisers, in fresh episodes.",
        "tidy": "Remove checkpoints, temporary files and console output of EXPERIMENT…, or check what they keep.",
    },
}
TABLE = {name: line for commands in SECTIONS.values() for name, line in commands.items()}


def load_command(name: str) -> click.Command:
    """The command `name` of the table, with its module imported."""
    command: click.Command = import_module(f"esper_ab.commands.{name.replace('-', '_')}").command
    return command


class _LazyGroup(click.Group):
    """A group that knows its commands by name and one line; the one that is called or completed is imported then."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, found, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name and found else None, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings."""
        for heading, commands in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl(list(commands.items()), col_max=12)


@click.group(
    cls=_LazyGroup, commands={name: click.Command(name, short_help=line) for name, line in TABLE.items()},
    epilog=epilog(
        "esper-ab doctor", "esper-ab launch --groups shaped,simplified --seeds 10",
        "esper-ab report experiments/EXPERIMENT", statuses=STATUSES,
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option(package_name="esper-ab")
def group() -> None:
    """Which of these training setups trains a better policy?"""


def main() -> int:
    """Entry of `esper-ab`."""
    return leaving(invoke(group, sys.argv[1:], "esper-ab"))


if __name__ == "__main__":
    sys.exit(main())
