"""The options of the command line, each defined once. Only Typer is imported here: --help must answer at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

if TYPE_CHECKING:
    from gaussfold.data.reading import Reading, Roles

_INPUT, _TABLES, _LEARNING, _SAVING, _OUTPUT = "Input", "Tables", "Learning", "Model files", "Output"
FORMATS = ("vw", "svmlight", "csv", "tsv", "parquet", "arrow")


def _among(*choices: str) -> Callable[[str], list[str]]:
    """Complete these words in the shell."""
    return lambda incomplete: [choice for choice in choices if choice.startswith(incomplete)]


Json = Annotated[bool, Option("--json", help="End standard output with one line of JSON.", rich_help_panel=_OUTPUT)]
Quiet = Annotated[bool, Option("--quiet", help="Say nothing but errors.", rich_help_panel=_OUTPUT)]
Seed = Annotated[int, Option("--seed", min=0, help="Of the random numbers.")]
ModelFile = Annotated[str, Option("-i", "--model", metavar="MODEL", help="Model file of 'gaussfold train'.")]
ModelPath = Annotated[str, Argument(metavar="MODEL", help="Model file of 'gaussfold train'.")]
Top = Annotated[int, Option("--top", min=1, help="How many features to show.")]
Examples = Annotated[int, Option("-n", "--examples", min=1000, help="Rows to generate.")]
Settings = Annotated[
    list[str] | None,
    Option(
        "-s",
        "--setting",
        help="name=value,...: prior-std, likelihood, noise-std, rule, coupling, forgetting, dtype, bits; repeat it.",
    ),
]
RealLabels = Annotated[
    bool, Option("--real-labels", help="Labels are any numbers and stay as they are (else -1, 0 or 1).")
]
Thompson = Annotated[bool, Option("--thompson", help="Also the prediction under one draw of the weights.")]
OutputFile = Annotated[str, Option("-o", "--out", metavar="FILE", help="Where to write; - is standard output.")]
PredictionFile = Annotated[
    str, Option("-p", "--predictions", metavar="FILE", help="Where to write; - is standard output.")
]
PredictionFormat = Annotated[
    str | None,
    Option(
        "--output-format",
        help="csv, jsonl or parquet; told by the file's name (csv).",
        autocompletion=_among("csv", "jsonl", "parquet"),
    ),
]
Target = Annotated[
    str | None,
    Option("--to", help=f"{', '.join(FORMATS)}; told by the output's name.", autocompletion=_among(*FORMATS)),
]


@dataclass(frozen=True)
class Input:
    """What to read, and how."""

    files: Annotated[
        list[str] | None,
        Argument(metavar="FILE", help="Paths, globs, or - for standard input (the default)."),
    ] = None
    data: Annotated[list[str] | None, Option("-d", "--data", help="The same as FILE.", rich_help_panel=_INPUT)] = None
    format: Annotated[
        str | None,
        Option(
            "--format",
            help="vw, svmlight, csv, tsv, parquet or arrow; told by the name or the first line.",
            autocompletion=_among(*FORMATS),
            rich_help_panel=_INPUT,
        ),
    ] = None
    skip_bad: Annotated[
        int,
        Option(
            "--skip-bad",
            min=0,
            metavar="N",
            help="Leave out up to N bad records instead of stopping at the first.",
            rich_help_panel=_INPUT,
        ),
    ] = 0
    header: Annotated[
        bool | None,
        Option(
            "--header/--no-header", help="Whether the first line names the columns (told).", rich_help_panel=_TABLES
        ),
    ] = None
    separator: Annotated[
        str | None, Option("--separator", help="What stands between fields.", rich_help_panel=_TABLES)
    ] = None

    @property
    def paths(self) -> list[str]:
        """All inputs in order."""
        return [*(self.files or []), *(self.data or [])] or ["-"]


@dataclass(frozen=True)
class Hashing:
    """How names become slots."""

    bits: Annotated[
        int | None, Option("-b", "--bits", help="Hash features into 2^bits slots (18).", rich_help_panel=_INPUT)
    ] = None
    interact: Annotated[
        list[str] | None,
        Option(
            "-q",
            "--interact",
            help="Multiply namespaces: 'ab' by first letters, '::' all pairs, 'site,ad' by name.",
            rich_help_panel=_INPUT,
        ),
    ] = None
    hash: Annotated[
        str | None,
        Option(
            "--hash",
            help="strings: a name of digits is a number, added to its namespace's hash; all: hash it too (strings).",
            autocompletion=_among("strings", "all"),
            rich_help_panel=_INPUT,
        ),
    ] = None


Tag = Annotated[str | None, Option("--tag", help="Column that names the row in predictions.", rich_help_panel=_TABLES)]


@dataclass(frozen=True)
class Table:
    """What the columns of a table mean."""

    label: Annotated[
        str | None,
        Option(
            "--label", help="Column of the label, by name or number (label, target, y, ...).", rich_help_panel=_TABLES
        ),
    ] = None
    positive: Annotated[
        str | None, Option("--positive", help="The label that counts as 1; any other is 0.", rich_help_panel=_TABLES)
    ] = None
    weight: Annotated[
        str | None, Option("--weight", help="Column of the importance weight.", rich_help_panel=_TABLES)
    ] = None
    tag: Tag = None
    ignore: Annotated[list[str] | None, Option("--ignore", help="A column to leave out.", rich_help_panel=_TABLES)] = (
        None
    )
    numeric: Annotated[list[str] | None, Option("--numeric", help="A column of numbers.", rich_help_panel=_TABLES)] = (
        None
    )
    categorical: Annotated[
        list[str] | None, Option("--categorical", help="A column of categories.", rich_help_panel=_TABLES)
    ] = None


@dataclass(frozen=True)
class Learning:
    """What is learned; None leaves it to the model file or the default."""

    likelihood: Annotated[
        str | None,
        Option(
            "--likelihood",
            "--link",
            help="Labels: logit or probit (-1, 0, 1), gaussian (numbers), poisson (counts) (logit).",
            autocompletion=_among("logit", "probit", "gaussian", "poisson"),
            rich_help_panel=_LEARNING,
        ),
    ] = None
    prior_std: Annotated[
        list[str] | None,
        Option(
            "--prior-std",
            help="Standard deviation of a weight before any data (1); 'auto' mixes eight of them, at a price; "
            "namespace=0.5 (or column=0.5, a*b=0.5 for a pair) for some of them; repeat it or use commas.",
            rich_help_panel=_LEARNING,
        ),
    ] = None
    noise_std: Annotated[
        float | None,
        Option("--noise-std", help="Gaussian: standard deviation of the labels (1).", rich_help_panel=_LEARNING),
    ] = None
    coupling: Annotated[
        str | None,
        Option(
            "--coupling",
            help="marginal or joint (marginal).",
            autocompletion=_among("marginal", "joint"),
            rich_help_panel=_LEARNING,
        ),
    ] = None
    rule: Annotated[
        str | None,
        Option(
            "--rule",
            help="newton, vi, ep, ... (newton).",
            autocompletion=_among("newton", "taylor", "vi", "ep", "pl", "quadratic"),
            rich_help_panel=_LEARNING,
        ),
    ] = None
    forgetting: Annotated[
        float | None,
        Option(
            "--forgetting",
            help="In (0, 1]; 0.9999 remembers about 10000 rows per feature (1).",
            rich_help_panel=_LEARNING,
        ),
    ] = None
    float32: Annotated[
        bool, Option("--float32", help="Store weights in half the memory.", rich_help_panel=_LEARNING)
    ] = False

    def chosen(self) -> dict[str, Any]:
        """Return what the user gave, as fields of `gaussfold.cli.setting.Setting`."""
        from gaussfold.cli.setting import parse_prior

        given = {name: getattr(self, name) for name in ("likelihood", "noise_std", "coupling", "rule", "forgetting")}
        given = {name: value for name, value in given.items() if value is not None}
        return given | parse_prior(self.prior_std or ()) | ({"dtype": "float32"} if self.float32 else {})


@dataclass(frozen=True)
class Run:
    """What training does on the way."""

    final: Annotated[
        str | None, Option("-f", "--final", metavar="MODEL", help="Save the model here.", rich_help_panel=_SAVING)
    ] = None
    initial: Annotated[
        str | None, Option("-i", "--initial", metavar="MODEL", help="Go on with this model.", rich_help_panel=_SAVING)
    ] = None
    resume: Annotated[
        bool,
        Option(
            "--resume",
            help="Go on with an interrupted run: skip the rows that -f (or -i) has seen; no file: start anew.",
            rich_help_panel=_SAVING,
        ),
    ] = False
    checkpoint: Annotated[
        int,
        Option("--checkpoint", min=0, metavar="N", help="Save after every N examples, too.", rich_help_panel=_SAVING),
    ] = 0
    checkpoint_seconds: Annotated[
        float,
        Option("--checkpoint-seconds", min=0, metavar="S", help="Save every S seconds, too.", rich_help_panel=_SAVING),
    ] = 0.0
    keep_names: Annotated[
        bool, Option("--keep-names", help="Store the features' names for 'inspect'.", rich_help_panel=_SAVING)
    ] = False
    passes: Annotated[
        int,
        Option(
            "--passes",
            help="Read the input so often. Each pass counts the rows as new evidence; one is right.",
            rich_help_panel=_LEARNING,
        ),
    ] = 1
    test_only: Annotated[
        bool, Option("-t", "--testonly", help="Predict and score, learn nothing.", rich_help_panel=_LEARNING)
    ] = False
    predictions: Annotated[
        str | None,
        Option(
            "-p",
            "--predictions",
            metavar="FILE",
            help="Write predictions made before learning each row (CSV, .jsonl, .parquet; - for standard output).",
            rich_help_panel=_OUTPUT,
        ),
    ] = None
    every: Annotated[
        int,
        Option(
            "-P",
            "--progress",
            min=0,
            metavar="N",
            help="A line every N examples instead of at 1, 2, 4, 8, ...",
            rich_help_panel=_OUTPUT,
        ),
    ] = 0
    quiet: Quiet = False
    json: Json = False


def reading_of(
    source: Input, hashing: Hashing | None = None, table: Table | None = None, labels: str = "binary"
) -> Reading:
    """Return how the rows are to be read."""
    from gaussfold.data.interactions import compile_interactions
    from gaussfold.data.reading import Reading

    hashing, table = hashing or Hashing(), table or Table()
    compile_interactions(hashing.interact or [])
    separator = source.separator
    return Reading(
        source.format,
        18 if hashing.bits is None else hashing.bits,
        tuple(hashing.interact or ()),
        separator="\t" if separator in ("tab", "\\t") else separator,
        labels=labels,
        positive=table.positive,
        hash=hashing.hash or "strings",
    )


def roles_of(source: Input, table: Table) -> Roles:
    """Return what the user says about the columns; lists may be given with commas."""
    from gaussfold.data.reading import Roles

    ignore, numeric, categorical = (
        tuple(part for item in several or [] for part in item.split(","))
        for several in (table.ignore, table.numeric, table.categorical)
    )
    return Roles(table.label, table.weight, table.tag, ignore, numeric, categorical, source.header)
