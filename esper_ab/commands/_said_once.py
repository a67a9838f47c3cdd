"""The base of all commands: a flag with one value may be given only once, because the first value would be lost."""

from __future__ import annotations

import copy

import click


class Command(click.Command):
    """A command that refuses a flag which is given twice with different values, as in `--paired --unpaired`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, after checking for flags with two values."""
        if not ctx.resilient_parsing:  # which is completion in a shell
            self._refuse_second_values(ctx, args)
        return super().parse_args(ctx, args)

    def _refuse_second_values(self, ctx: click.Context, args: list[str]) -> None:
        single = [
            option for option in self.get_params(ctx) if isinstance(option, click.Option) and not option.multiple
        ]
        every = click.Command(self.name, params=[_repeatable(option) for option in self.get_params(ctx)],
                              add_help_option=False)  # fmt: skip
        said, _, _ = every.make_parser(ctx).parse_args(args=list(args))
        for option in single:
            values = dict.fromkeys(said.get(option.name or "") or ())
            if len(values) > 1:
                raise click.UsageError(f"{_shown(option)} is given twice; remove one", ctx)


def _repeatable(option: click.Parameter) -> click.Parameter:
    """Return a copy whose values the parser collects, instead of keeping the last."""
    found = copy.copy(option)
    if isinstance(found, click.Option):
        found.multiple = True
    return found


def _shown(option: click.Option) -> str:
    flags = [flag for flag in option.opts if flag.startswith("--")] or option.opts
    return " or ".join((*flags, *option.secondary_opts))
