"""Options of Vowpal Wabbit that mean nothing here, and what to do instead. Only Typer is imported: --help is quick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from typer import Option

_ELSEWHERE = {
    "-l": "nothing is stepped by a rate: how far a weight may go is --prior-std, how long rows count --forgetting",
    "--power_t": "steps shrink as the posterior narrows; --forgetting keeps it from narrowing for good",
    "--loss_function": "--likelihood says what labels are: logit, probit, gaussian or poisson",
    "-c": "rows are parsed as fast as they are learned, and nothing is cached",
    "-k": "there is no cache that could be stale",
}
"""Options of Vowpal Wabbit that mean nothing here, and what to do instead."""


@dataclass(frozen=True)
class Elsewhere:
    """What the fingers of a Vowpal Wabbit user type: refused, with what to do instead."""

    learning_rate: Annotated[str | None, Option("-l", "--learning_rate", hidden=True)] = None
    power_t: Annotated[str | None, Option("--power_t", hidden=True)] = None
    loss_function: Annotated[str | None, Option("--loss_function", hidden=True)] = None
    cache: Annotated[bool, Option("-c", "--cache", hidden=True)] = False
    kill_cache: Annotated[bool, Option("-k", "--kill_cache", hidden=True)] = False

    def refuse(self) -> None:
        """Say of the first that was given what to do instead."""
        given = (self.learning_rate, self.power_t, self.loss_function, self.cache, self.kill_cache)
        for value, (name, instead) in zip(given, _ELSEWHERE.items(), strict=True):
            if value:
                msg = f"{name} is Vowpal Wabbit's: {instead}; leave it out"
                raise ValueError(msg)
