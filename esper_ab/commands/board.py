"""`esper-ab board`: a local, read-only page over experiment directories."""

from __future__ import annotations

from pathlib import Path

import click

from esper_ab.commands._exit_status import epilog
from esper_ab.contracts.below import write_below
from esper_ab.contracts.errors import UsageError


@click.command(epilog=epilog("esper-ab board", "esper-ab board experiments --out experiments/board.html"))
@click.argument("folder", metavar="[DIR]", default="experiments", type=click.Path(path_type=Path, file_okay=False))
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port on 127.0.0.1. [default: a "
              "free one]")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write one static page "
              "in place of a server; in DIR its links lead to the reports.")
def command(folder: Path, port: int, out: Path | None) -> None:
    """Show the experiments below DIR [default: experiments] in a local browser; it only reads."""
    from esper_ab.report.board import Board  # with jinja2: --help waits for nothing

    if not folder.is_dir():
        raise UsageError(f"no folder {folder}: name the one that holds the experiment directories")
    board = Board(folder)
    if out is not None:
        write_below(out.parent, out.name, board.page(served=False).encode())
        click.echo(f"board: {out}")
        return
    from esper_ab.live.reading_room import ReadingRoom

    try:
        room = ReadingRoom(board.answer, port)
    except OSError as error:
        raise UsageError(f"--port {port}: {error.strerror}") from None
    click.echo(f"board: {room.address}\nOpen it in a browser of this machine; Ctrl-C ends it.")
    with room:
        room.serve_forever()
