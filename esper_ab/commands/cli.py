"""`esper-ab`: the table of commands; the module of a command is imported when the command is called."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from esper_ab.commands._exit_status import STATUSES, epilog, invoke, leaving
from esper_ab.commands._parameters import CommandGroup

# Heading -> command name (and module name, with _ for -) -> its help in one line, so that `--help` imports no module.
SECTIONS = {
    "Train and compare": {
        "launch": "Train one policy per group and seed on paired randomness, and compare the groups.",
        "gate": "Judge a change to your code by the question in FILE (gate.toml), within its minutes.",
        "resume": "Continue EXPERIMENT after it was stopped or interrupted, or add seeds to it.",
        "stream": "Try candidates one after the other, with an error rate over all of them.",
        "stop": "Stop EXPERIMENT cleanly, as Ctrl-C does, and wait until it has ended.",
        "slurm-script": "Print an sbatch script that launches an experiment, and resumes it after interruptions.",
    },
    "Follow and read": {
        "status": "Show the progress of EXPERIMENT, and the state of its trackers.",
        "list": "List the experiments below DIR [default: experiments], newest first, with progress and verdicts.",
        "logs": "Print the logs of EXPERIMENT: those of one run, of one worker or of the console, or all of them.",
        "report": "Rebuild summary.txt, verdict.json and report.html of EXPERIMENT from its journal.",
        "figure": "Write one figure of the report of EXPERIMENT as PDF, SVG or PNG.",
        "cite": "Print BibTeX for esper_ab, and the results of EXPERIMENT as rows of a LaTeX table.",
        "query": "Run an SQL query over EXPERIMENT.",
        "export": "Write the tables of EXPERIMENT as CSV or Parquet files.",
        "compare": "Compare the groups of several experiment directories, or join experiments of one question.",
        "judge": "Judge outcomes of finished runs by PLAN or, without PLAN, explore them.",
        "track": "Send the records of EXPERIMENT to Weights & Biases or TensorBoard.",
    },
    "Before an experiment": {
        "doctor": "Check devices, driver, cores, memory, disk, limits and packages; suggest a remedy for each problem.",
        "init": "Write an experiment file, ready to run, with every setting and its default as a comment.",
        "power": "Show the smallest difference that R seeds can detect, and the seeds that a margin needs.",
        "design": "Write a plan for runs made elsewhere, before the first run: comparisons, looks and bounds.",
        "calibrate": "Train one group repeatedly, and show how much its runs differ by chance.",
        "growth": "Audit rewards for growth, run its heuristic controller alone, or download a task's data.",
    },
    "Afterwards": {
        "evaluate": "Evaluate saved policies, with frozen normalisers, in fresh episodes.",
        "tidy": "Remove checkpoints, temporary files and console output of EXPERIMENT…, or check it for damage.",
    },
}
TABLE = {name: line for commands in SECTIONS.values() for name, line in commands.items()}


def load_command(name: str) -> click.Command:
    """Import the module of the command `name` and return the command."""
    command: click.Command = import_module(f"esper_ab.commands.{name.replace('-', '_')}").command
    return command


class _LazyGroup(CommandGroup):
    """A group that lists commands without importing them; a command is imported only when it is called or completed."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in TABLE:
            from esper_ab.commands._old_words import command_today  # imported only for this error

            if today := command_today(args[0]):
                raise click.UsageError(f"no command {args[0]!r}; write {today}", ctx)
        name, command, other_words = super().resolve_command(ctx, args)
        if not name or command is None:
            return name, None, other_words
        return name, load_command(name), other_words

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings."""
        for heading, commands in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl(list(commands.items()), col_max=12)


@click.group(
    cls=_LazyGroup,
    commands={name: click.Command(name, short_help=line) for name, line in TABLE.items()},
    epilog=epilog(
        "esper-ab doctor",
        "esper-ab launch --groups shaped,simplified --seeds 10",
        "esper-ab report experiments/EXPERIMENT",
        statuses=STATUSES,
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option(package_name="esper-ab")
def group() -> None:
    """Which of these training setups trains a better policy?"""


def main() -> int:
    """Run `esper-ab` and return its exit status."""
    return leaving(invoke(group, sys.argv[1:], "esper-ab"))


if __name__ == "__main__":
    sys.exit(main())
