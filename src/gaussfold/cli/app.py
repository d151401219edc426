"""The commands. Only Typer is imported here, and their work when it is asked for: --help must answer at once."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gaussfold.cli import interrupts, options
from gaussfold.cli.elsewhere import Elsewhere
from gaussfold.cli.errors import HELP, no_traceback
from gaussfold.cli.grouping import grouped
from gaussfold.cli.quick import taken

app = typer.Typer(
    name="gaussfold",
    help="Learn from a stream of sparse examples in one pass: no learning rate, an error bar on everything.",
    epilog=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(epilog=HELP)
@grouped
def train(
    source: options.Input,
    hashing: options.Hashing,
    learning: options.Learning,
    run: options.Run,
    table: options.Table,
    elsewhere: Elsewhere,
) -> int:
    """Learn from a file or a stream, one pass, and save the model.

    Prints the progressive log loss (every row is predicted before it is learned). SIGINT and SIGTERM finish
    the current chunk and save.
    """
    from gaussfold.cli.commands.train import Job
    from gaussfold.cli.commands.train import train as work
    from gaussfold.cli.setting import Setting, usual

    elsewhere.refuse()
    chosen = learning.chosen()
    setting = Setting(**(usual(chosen, shared=run.shared) | chosen))
    given = {"bits": hashing.bits, "interact": tuple(hashing.interact or ()) or None, "hash": hashing.hash}
    given["noconstant"] = True if hashing.noconstant else None
    inputs = options.inputs_of(source, hashing, table)
    given |= {"keep": inputs.reading.keep or None, "ignore": inputs.reading.ignore or None}
    chosen |= {name: value for name, value in given.items() if value is not None}
    interrupts.started()
    return work(Job(inputs, run, chosen), setting)


@app.command(epilog=HELP)
@grouped
def predict(
    model: options.ModelFile,
    source: options.Input,
    predictions: options.PredictionFile = "-",
    output_format: options.PredictionFormat = None,
    thompson: options.Thompson = False,
    seed: options.Seed = 0,
    tag: options.Tag = None,
    workers: options.PredictingWorkers = None,
) -> int:
    """Write the prediction (a probability for clicks), latent mean and standard deviation of every row."""
    from gaussfold.cli.commands.predict import Wanted
    from gaussfold.cli.commands.predict import predict as work

    inputs = options.inputs_of(source, table=options.Table(tag=tag))
    interrupts.started()
    return work(inputs, Wanted(model, predictions, output_format, seed if thompson else None, workers))


@app.command(epilog=HELP)
@grouped
def inspect(model: options.ModelPath, top: options.Top = 10, json: options.Json = False) -> int:
    """Show the heaviest, most certain and most uncertain features (by name with 'train --keep-names')."""
    from gaussfold.cli.commands.inspect import inspect as work

    interrupts.started()
    return work(model, top, json)


@app.command(epilog=HELP)
@grouped
def compare(
    source: options.Input,
    hashing: options.Hashing,
    table: options.Table,
    setting: options.Settings = None,
    json: options.Json = False,
) -> int:
    """Train several settings on one file and show their losses in one table."""
    from gaussfold.cli.commands.compare import compare as work

    interrupts.started()
    return work(options.inputs_of(source, hashing, table), setting or (), json)


@app.command(epilog=HELP)
@grouped
def convert(
    source: options.Input,
    hashing: options.Hashing,
    table: options.Table,
    out: options.OutputFile = "-",
    to: options.Target = None,
    real_labels: options.RealLabels = False,
) -> int:
    """Write rows in another format: tables as any, sparse text as vw (by name) or svmlight (by slot)."""
    from gaussfold.cli.commands.convert import convert as work

    inputs = options.inputs_of(source, hashing, table, labels="real" if real_labels else "binary")
    interrupts.started()
    return work(inputs, out, to, hashing.bits is not None)


@app.command(epilog=HELP)
@grouped
def demo(
    examples: options.Examples = 200_000,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Generate clicks with a known truth, learn them live, and show loss, regret and calibration."""
    from gaussfold.cli.commands.demo import demo as work

    interrupts.started()
    return work(examples, seed, json, quiet)


@app.command(epilog=HELP)
@grouped
def compile(  # noqa: A001 - the command's name
    kinds: options.Kinds = None, processes: options.Processes = None, quiet: options.Quiet = False
) -> int:
    """Compile the inner loops beforehand, so that no first fit waits for them: for images and clusters.

    They are kept in NUMBA_CACHE_DIR, or in the package, or in the user's cache, whichever can be written first; they
    are also found in a package that has become read-only. Needed again after an update, and on another kind of
    processor.
    """
    from gaussfold.cli.commands.compile import compile_loops as work

    interrupts.started()
    return work(kinds or (), processes, quiet)


def _version(value: bool) -> None:
    if value:
        import gaussfold

        print(f"gaussfold {gaussfold.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


QUICK = {"train": train, "predict": predict}
"""Commands that are begun so often that it matters how quickly."""


def run() -> None:
    """Run the command that the arguments name; never returns."""
    with no_traceback():
        plain = taken(sys.argv[1:], QUICK)
        if plain is None:
            app()
        else:
            command, arguments = plain
            try:
                command(**arguments)
            except typer.Exit as end:
                sys.exit(end.exit_code)
