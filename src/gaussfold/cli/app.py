"""The commands and their options. Only Typer is imported here: --help must answer at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

from gaussfold.cli.errors import HELP, no_traceback

app = typer.Typer(
    name="gaussfold",
    help="Learn from a stream of sparse examples in one pass: no learning rate, an error bar on everything.",
    epilog=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Files = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE]...", help="Paths, globs, or - for standard input (the default)."),
]
Data = Annotated[list[str] | None, typer.Option("-d", "--data", help="The same as FILE.")]
Format = Annotated[
    str | None,
    typer.Option("--format", help="vw, svmlight, csv, tsv, parquet or arrow; told by the name or the first line."),
]
Bits = Annotated[int | None, typer.Option("-b", "--bits", help="Hash features into 2^bits slots (18).")]
Interact = Annotated[
    list[str] | None,
    typer.Option(
        "-q",
        "--interact",
        help="Multiply namespaces: 'ab' by first letters, '::' all pairs, 'site,ad' by name.",
    ),
]
SkipBad = Annotated[
    int,
    typer.Option(
        "--skip-bad",
        min=0,
        metavar="N",
        help="Leave out up to N bad records instead of stopping at the first.",
    ),
]
Label = Annotated[str | None, typer.Option("--label", help="Tables: column of the label (name or number).")]
Weight = Annotated[str | None, typer.Option("--weight", help="Tables: column of the importance weight.")]
Tag = Annotated[str | None, typer.Option("--tag", help="Tables: column that names the row in predictions.")]
Ignore = Annotated[list[str] | None, typer.Option("--ignore", help="Tables: a column to leave out.")]
Numeric = Annotated[list[str] | None, typer.Option("--numeric", help="Tables: a column of numbers.")]
Categorical = Annotated[list[str] | None, typer.Option("--categorical", help="Tables: a column of categories.")]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Tables: whether the first line names the columns."),
]
Separator = Annotated[str | None, typer.Option("--separator", help="Tables: what stands between fields.")]
Positive = Annotated[str | None, typer.Option("--positive", help="Tables: the label that counts as 1; any other is 0.")]
Json = Annotated[bool, typer.Option("--json", help="End standard output with one line of JSON.")]
ModelFile = Annotated[str, typer.Option("-i", "--model", help="Model file of 'gaussfold train'.")]


F = TypeVar("F", bound=Callable[..., None])


def _guarded(command: F) -> F:
    """Keep tracebacks from users; inside, because Click would turn a broken pipe into its own exit code."""

    @functools.wraps(command)
    def call(*args: Any, **options: Any) -> None:
        with no_traceback():
            command(*args, **options)

    return call  # type: ignore[return-value]


def _inputs(files: list[str] | None, data: list[str] | None) -> list[str]:
    return [*(files or []), *(data or [])] or ["-"]


def _roles(label: Any, weight: Any, tag: Any, ignore: Any, numeric: Any, categorical: Any, header: Any) -> Any:
    from gaussfold.data.reading import Roles

    lists = [
        tuple(part for item in several or [] for part in item.split(",")) for several in (ignore, numeric, categorical)
    ]
    return Roles(label, weight, tag, lists[0], lists[1], lists[2], header)


def _reading(format: Any, bits: Any, interact: Any, separator: Any, positive: Any) -> Any:  # noqa: A002
    from gaussfold.data.interactions import compile_interactions
    from gaussfold.data.reading import Reading

    compile_interactions(interact or [])
    separator = {"tab": "\t", "\\t": "\t"}.get(separator, separator)
    return Reading(format, 18 if bits is None else bits, tuple(interact or ()), separator=separator, positive=positive)


@app.command(epilog=HELP)
@_guarded
def train(
    files: Files = None,
    data: Data = None,
    final: Annotated[str | None, typer.Option("-f", "--final", metavar="MODEL", help="Save the model here.")] = None,
    initial: Annotated[
        str | None, typer.Option("-i", "--initial", metavar="MODEL", help="Go on with this model.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with an interrupted run: skip the rows that -f (or -i) has seen; no file: start anew.",
        ),
    ] = False,
    test_only: Annotated[bool, typer.Option("-t", "--testonly", help="Predict and score, learn nothing.")] = False,
    predictions: Annotated[
        str | None,
        typer.Option(
            "-p",
            "--predictions",
            metavar="FILE",
            help="Write predictions made before learning each row (CSV, .jsonl, .parquet; - for standard output).",
        ),
    ] = None,
    bits: Bits = None,
    interact: Interact = None,
    passes: Annotated[
        int,
        typer.Option(
            "--passes",
            help="Read the input so often. Each pass counts the rows as new evidence; one is right.",
        ),
    ] = 1,
    prior_std: Annotated[
        str | None,
        typer.Option(
            "--prior-std",
            help="Standard deviation of a weight before any data (1); 'auto' mixes eight of them, at a price.",
        ),
    ] = None,
    link: Annotated[str | None, typer.Option("--link", help="logit or probit (logit).")] = None,
    coupling: Annotated[str | None, typer.Option("--coupling", help="marginal or joint (marginal).")] = None,
    rule: Annotated[str | None, typer.Option("--rule", help="newton, vi, ep, ... (newton).")] = None,
    forgetting: Annotated[
        float | None,
        typer.Option("--forgetting", help="In (0, 1]; 0.9999 remembers about 10000 rows per feature (1)."),
    ] = None,
    float32: Annotated[bool, typer.Option("--float32", help="Store weights in half the memory.")] = False,
    keep_names: Annotated[bool, typer.Option("--keep-names", help="Store the features' names for 'inspect'.")] = False,
    format: Format = None,  # noqa: A002
    label: Label = None,
    weight: Weight = None,
    tag: Tag = None,
    ignore: Ignore = None,
    numeric: Numeric = None,
    categorical: Categorical = None,
    header: Header = None,
    separator: Separator = None,
    positive: Positive = None,
    skip_bad: SkipBad = 0,
    checkpoint: Annotated[
        int, typer.Option("--checkpoint", min=0, metavar="N", help="Save every N examples, too.")
    ] = 0,
    checkpoint_seconds: Annotated[
        float, typer.Option("--checkpoint-seconds", min=0, metavar="S", help="Save every S seconds, too.")
    ] = 0.0,
    progress: Annotated[
        int,
        typer.Option(
            "-P",
            "--progress",
            min=0,
            metavar="N",
            help="A line every N examples instead of at 1, 2, 4, 8, ...",
        ),
    ] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")] = False,
    json: Json = False,
) -> None:
    """Learn from a file or a stream, one pass, and save the model.

    Prints the progressive log loss (every row is predicted before it is learned). SIGINT and SIGTERM finish
    the current chunk and save.
    """
    from gaussfold.cli.model import AUTO, Setting
    from gaussfold.cli.train import Job
    from gaussfold.cli.train import train as run_job

    given: dict[str, Any] = {
        "prior_std": _number("--prior-std", prior_std) if prior_std not in (None, AUTO) else prior_std,
        "link": link,
        "coupling": coupling,
        "rule": rule,
        "forgetting": forgetting,
        "dtype": "float32" if float32 else None,
    }
    given = {name: value for name, value in given.items() if value is not None}
    reading = _reading(format, bits, interact, separator, positive)
    chosen = {
        **given,
        **({"bits": bits} if bits is not None else {}),
        **({"interact": tuple(interact)} if interact else {}),
    }
    job = Job(
        _inputs(files, data), final, initial, resume, test_only, predictions, passes, skip_bad, keep_names,
        checkpoint, checkpoint_seconds, quiet, json, progress,
    )  # fmt: skip
    roles = _roles(label, weight, tag, ignore, numeric, categorical, header)
    raise typer.Exit(run_job(job, Setting(**given), reading, roles, chosen))


def _number(name: str, text: str | None) -> float:
    try:
        return float(text or "")
    except ValueError as error:
        msg = f"{name} {text!r}: 'auto' or a number > 0 is needed"
        raise ValueError(msg) from error


@app.command(epilog=HELP)
@_guarded
def predict(
    model: ModelFile,
    files: Files = None,
    data: Data = None,
    predictions: Annotated[
        str, typer.Option("-p", "--predictions", metavar="FILE", help="Where to write; - is standard output.")
    ] = "-",
    output_format: Annotated[
        str | None,
        typer.Option("--output-format", help="csv, jsonl or parquet; told by the file's name (csv)."),
    ] = None,
    thompson: Annotated[
        bool, typer.Option("--thompson", help="Also the probability under one draw of the weights.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of that draw.")] = 0,
    format: Format = None,  # noqa: A002
    tag: Tag = None,
    header: Header = None,
    separator: Separator = None,
    skip_bad: SkipBad = 0,
) -> None:
    """Write probability, latent mean and standard deviation of every row."""
    from gaussfold.cli.predict import predict as run_job

    reading = _reading(format, None, None, separator, None)
    roles = _roles(None, None, tag, None, None, None, header)
    raise typer.Exit(
        run_job(
            _inputs(files, data),
            model,
            predictions,
            output_format,
            reading,
            roles,
            thompson=thompson,
            seed=seed,
            skip_bad=skip_bad,
        )
    )


@app.command(epilog=HELP)
@_guarded
def inspect(
    model: Annotated[str, typer.Argument(help="Model file of 'gaussfold train'.")],
    top: Annotated[int, typer.Option("--top", min=1, help="How many features to show.")] = 10,
    json: Json = False,
) -> None:
    """Show the heaviest, most certain and most uncertain features (by name with 'train --keep-names')."""
    from gaussfold.cli.inspection import inspect as run_job

    raise typer.Exit(run_job(model, top, json))


@app.command(epilog=HELP)
@_guarded
def compare(
    files: Files = None,
    data: Data = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "-s",
            "--setting",
            help="name=value,...: prior-std, link, rule, coupling, forgetting, dtype, bits.",
        ),
    ] = None,
    bits: Bits = None,
    interact: Interact = None,
    format: Format = None,  # noqa: A002
    label: Label = None,
    weight: Weight = None,
    ignore: Ignore = None,
    numeric: Numeric = None,
    categorical: Categorical = None,
    header: Header = None,
    separator: Separator = None,
    positive: Positive = None,
    skip_bad: SkipBad = 0,
    json: Json = False,
) -> None:
    """Train several settings on one file and show their losses in one table."""
    from gaussfold.cli.comparison import compare as run_job

    reading = _reading(format, bits, interact, separator, positive)
    roles = _roles(label, weight, None, ignore, numeric, categorical, header)
    raise typer.Exit(run_job(_inputs(files, data), setting or (), reading, roles, skip_bad, json))


@app.command(epilog=HELP)
@_guarded
def convert(
    files: Files = None,
    data: Data = None,
    out: Annotated[
        str, typer.Option("-o", "--out", metavar="FILE", help="Where to write; - is standard output.")
    ] = "-",
    to: Annotated[str | None, typer.Option("--to", help="vw or svmlight; told by the output's name.")] = None,
    bits: Bits = None,
    interact: Interact = None,
    format: Format = None,  # noqa: A002
    label: Label = None,
    weight: Weight = None,
    tag: Tag = None,
    ignore: Ignore = None,
    numeric: Numeric = None,
    categorical: Categorical = None,
    header: Header = None,
    separator: Separator = None,
    positive: Positive = None,
    skip_bad: SkipBad = 0,
) -> None:
    """Write any readable format as Vowpal Wabbit text (features by name) or SVMlight (features by slot)."""
    import dataclasses

    from gaussfold.cli.conversion import convert as run_job

    reading = dataclasses.replace(_reading(format, bits, interact, separator, positive), constant=False)
    roles = _roles(label, weight, tag, ignore, numeric, categorical, header)
    raise typer.Exit(run_job(_inputs(files, data), out, to, reading, roles, skip_bad))


@app.command(epilog=HELP)
@_guarded
def demo(
    examples: Annotated[int, typer.Option("-n", "--examples", min=1000, help="Rows to generate.")] = 200_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the random numbers.")] = 0,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No tables.")] = False,
) -> None:
    """Generate clicks with a known truth, learn them live, and show loss, regret and calibration."""
    from gaussfold.cli.demo import demo as run_job

    raise typer.Exit(run_job(examples, seed, json, quiet))


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


def run() -> None:
    """Run the command that the arguments name; never returns."""
    with no_traceback():
        app()
