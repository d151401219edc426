"""The options of the command line, each defined once. Only Typer is imported here: --help must answer at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from gaussfold.data import formats

if TYPE_CHECKING:
    from gaussfold.cli.inputs import Inputs
    from gaussfold.data.reading import Document

_input, _table, _learning, _saving, _output = (
    partial(Option, rich_help_panel=panel) for panel in ("Input", "Tables", "Learning", "Model files", "Output")
)
PREDICTION_FORMATS = ("csv", "jsonl", "parquet")


def _among(*choices: str) -> Callable[[str], list[str]]:
    """Complete these words in the shell."""
    return lambda incomplete: [choice for choice in choices if choice.startswith(incomplete)]


def _one_of(*choices: str) -> str:
    return f"{', '.join(choices[:-1])} or {choices[-1]}"


Json = Annotated[bool, _output("--json", help="End standard output with one line of JSON.")]
Quiet = Annotated[bool, _output("--quiet", help="Say nothing but errors.")]
Seed = Annotated[int, Option("--seed", min=0, help="Of the random numbers.")]
ModelFile = Annotated[str, Option("-i", "--model", metavar="MODEL", help="Model file of 'gaussfold train'.")]
ModelPath = Annotated[str, Argument(metavar="MODEL", help="Model file of 'gaussfold train'.")]
Top = Annotated[int, Option("--top", min=1, help="How many features to show.")]
Examples = Annotated[int, Option("-n", "--examples", min=1000, help="Rows to generate.")]
Kinds = Annotated[
    list[str] | None, Option("--for", metavar="KINDS", help="full, diagonal, lowrank, gp, with commas between (all).")
]
Processes = Annotated[
    int | None, Option("--processes", min=1, help="How many compile at the same time (as many as there are cores).")
]
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
PredictingWorkers = Annotated[
    int | None,
    Option("--workers", min=1, metavar="N", help="Predict with so many processes; what is written is the same."),
]
PredictionFile = Annotated[
    str, Option("-p", "--predictions", metavar="FILE", help="Where to write; - is standard output.")
]
PredictionFormat = Annotated[
    str | None,
    Option(
        "--output-format",
        help=f"{_one_of(*PREDICTION_FORMATS)}; told by the file's name (csv).",
        autocompletion=_among(*PREDICTION_FORMATS),
    ),
]
Target = Annotated[
    str | None,
    Option(
        "--to",
        help=f"{', '.join(formats.names())}; told by the output's name.",
        autocompletion=_among(*formats.names()),
    ),
]


@dataclass(frozen=True)
class Input:
    """What to read, and how."""

    files: Annotated[
        list[str] | None,
        Argument(metavar="FILE", help="Paths, globs, or - for standard input (the default)."),
    ] = None
    data: Annotated[list[str] | None, _input("-d", "--data", help="The same as FILE.")] = None
    format: Annotated[
        str | None,
        _input(
            "--format",
            help=f"{_one_of(*formats.names())}; told by the name or the first line.",
            autocompletion=_among(*formats.names()),
        ),
    ] = None
    skip_bad: Annotated[
        int,
        _input(
            "--skip-bad", min=0, metavar="N", help="Leave out up to N bad records instead of stopping at the first."
        ),
    ] = 0
    header: Annotated[
        bool | None,
        _table("--header/--no-header", help="Whether the first line names the columns (told)."),
    ] = None
    separator: Annotated[str | None, _table("--separator", help="What stands between fields.")] = None

    @property
    def paths(self) -> list[str]:
        """All inputs in order."""
        return [*(self.files or []), *(self.data or [])] or ["-"]


@dataclass(frozen=True)
class Hashing:
    """How names become slots."""

    bits: Annotated[int | None, _input("-b", "--bits", help="Hash features into 2^bits slots (18).")] = None
    interact: Annotated[
        list[str] | None,
        _input(
            "-q", "--interact", help="Multiply namespaces: 'ab' by first letters, '::' all pairs, 'site,ad' by name."
        ),
    ] = None
    noconstant: Annotated[bool, _input("--noconstant", help="No constant feature in every row.")] = False
    hash: Annotated[
        str | None,
        _input(
            "--hash",
            help="strings: a name of digits is a number, added to its namespace's hash; all: hash it too (strings).",
            autocompletion=_among("strings", "all"),
        ),
    ] = None


Tag = Annotated[str | None, _table("--tag", help="Column that names the row in predictions.")]


@dataclass(frozen=True)
class Table:
    """What the columns of a table mean."""

    label: Annotated[
        str | None,
        _table("--label", help="Column of the label, by name or number (label, target, y, ...)."),
    ] = None
    positive: Annotated[str | None, _table("--positive", help="The label that counts as 1; any other is 0.")] = None
    weight: Annotated[str | None, _table("--weight", help="Column of the importance weight.")] = None
    tag: Tag = None
    ignore: Annotated[
        list[str] | None,
        _input("--ignore", help="A column or namespace (by its first letter or its name) to leave out."),
    ] = None
    keep: Annotated[
        list[str] | None, _input("--keep", help="The only columns or namespaces to use; repeat it or use commas.")
    ] = None
    numeric: Annotated[list[str] | None, _table("--numeric", help="A column of numbers.")] = None
    categorical: Annotated[list[str] | None, _table("--categorical", help="A column of categories.")] = None


@dataclass(frozen=True)
class Learning:
    """What is learned; None leaves it to the model file or the default."""

    likelihood: Annotated[
        str | None,
        _learning(
            "--likelihood",
            "--link",
            help="Labels: logit or probit (-1, 0, 1), gaussian (numbers), poisson (counts); for classes see --classes "
            "(logit).",
            autocompletion=_among("logit", "probit", "gaussian", "poisson"),
        ),
    ] = None
    classes: Annotated[
        list[str] | None, _learning("--classes", metavar="A,B,C", help="Labels are these texts or numbers: a softmax.")
    ] = None
    oaa: Annotated[int | None, _learning("--oaa", min=2, max=1000, help="The same as --classes 1,2,..,K.")] = None
    prior_std: Annotated[
        list[str] | None,
        _learning(
            "--prior-std",
            help="Standard deviation of a weight before any data (auto: four of them and one that forgets, stacked, "
            "at two to three times the cost and memory of one); namespace=0.5 (or column=0.5, a*b=0.5 for a pair) for "
            "some of them; repeat it or use commas.",
        ),
    ] = None
    noise_std: Annotated[
        str | None,
        _learning(
            "--noise-std",
            help="Gaussian: standard deviation of the labels, or learn: then --prior-std is in units of it (learn).",
        ),
    ] = None
    label_range: Annotated[
        str | None,
        _learning(
            "--label-range",
            help="Gaussian: seen keeps predictions within the labels seen so far, none does not (seen).",
            autocompletion=_among("seen", "none"),
        ),
    ] = None
    coupling: Annotated[
        str | None,
        _learning("--coupling", help="marginal or joint (marginal).", autocompletion=_among("marginal", "joint")),
    ] = None
    rule: Annotated[
        str | None,
        _learning(
            "--rule",
            help="newton, vi, ep, ... (newton).",
            autocompletion=_among("newton", "taylor", "vi", "ep", "pl", "quadratic"),
        ),
    ] = None
    forgetting: Annotated[
        float | None,
        _learning("--forgetting", help="In (0, 1]; 0.9999 remembers about 10000 rows per feature (1)."),
    ] = None
    scale: Annotated[
        str | None,
        _learning(
            "--scale",
            help="auto: columns of numbers are centred and scaled, values of other features scaled, as they come; "
            "none (auto).",
            autocompletion=_among("auto", "none"),
        ),
    ] = None
    second_look: Annotated[
        int | None,
        _learning(
            "--second-look",
            min=0,
            metavar="N",
            help="Keep N rows after they were learned, then visit each once more with what is known by then (0).",
        ),
    ] = None
    float32: Annotated[bool, _learning("--float32", help="Store weights in half the memory.")] = False

    def chosen(self) -> Document:
        """Return what the user gave, as fields of `gaussfold.cli.setting.Setting`."""
        from gaussfold.cli.setting import announced, parse_noise, parse_prior

        names = ("likelihood", "coupling", "rule", "forgetting", "scale", "label_range", "second_look")
        given = {name: value for name, value in vars(self).items() if name in names and value is not None}
        given |= announced(_columns(self.classes), self.oaa)
        if self.noise_std is not None:
            given["noise_std"] = parse_noise(self.noise_std)
        return given | parse_prior(self.prior_std or ()) | ({"dtype": "float32"} if self.float32 else {})


@dataclass(frozen=True)
class Run:
    """What training does on the way."""

    final: Annotated[str | None, _saving("-f", "--final", metavar="MODEL", help="Save the model here.")] = None
    initial: Annotated[str | None, _saving("-i", "--initial", metavar="MODEL", help="Go on with this model.")] = None
    resume: Annotated[
        bool,
        _saving(
            "--resume",
            help="Go on with an interrupted run: skip the rows that -f (or -i) has seen; no file: start anew.",
        ),
    ] = False
    checkpoint: Annotated[
        int,
        _saving("--checkpoint", min=0, metavar="N", help="Save after every N examples, too."),
    ] = 0
    checkpoint_seconds: Annotated[
        float,
        _saving("--checkpoint-seconds", min=0, metavar="S", help="Save every S seconds, too."),
    ] = 0.0
    workers: Annotated[
        int | None,
        _learning(
            "--workers",
            min=1,
            metavar="N",
            help="Learn with so many processes, in rounds; the model is the same for any number of them.",
        ),
    ] = None
    scheduler: Annotated[
        str | None,
        _learning(
            "--scheduler", metavar="ADDRESS", help="Learn on the Dask cluster there; workers read the files themselves."
        ),
    ] = None
    keep_names: Annotated[bool, _saving("--keep-names", help="Store the features' names for 'inspect'.")] = False
    passes: Annotated[
        int,
        _learning("--passes", help="Read the input so often. Each pass counts the rows as new evidence; one is right."),
    ] = 1
    test_only: Annotated[bool, _learning("-t", "--testonly", help="Predict and score, learn nothing.")] = False
    predictions: Annotated[
        str | None,
        _output(
            "-p",
            "--predictions",
            metavar="FILE",
            help="Write predictions made before learning each row (CSV, .jsonl, .parquet; - for standard output).",
        ),
    ] = None
    every: Annotated[
        int,
        _output("-P", "--progress", min=0, metavar="N", help="A line every N examples instead of at 1, 2, 4, 8, ..."),
    ] = 0
    quiet: Quiet = False
    json: Json = False

    @property
    def shared(self) -> bool:
        """Whether several processes or machines learn."""
        return self.workers is not None or self.scheduler is not None


def _columns(given: list[str] | None) -> tuple[str, ...]:
    return tuple(part for item in given or [] for part in item.split(","))


def inputs_of(
    source: Input, hashing: Hashing | None = None, table: Table | None = None, labels: str = "binary"
) -> Inputs:
    """Return what is to be read, and how; lists of columns may be given with commas."""
    from gaussfold.cli.inputs import Inputs
    from gaussfold.data.interactions import compile_interactions
    from gaussfold.data.reading import Reading, Roles

    hashing, table = hashing or Hashing(), table or Table()
    compile_interactions(hashing.interact or [])
    separator = source.separator
    reading = Reading(
        source.format,
        18 if hashing.bits is None else hashing.bits,
        tuple(hashing.interact or ()),
        constant=not hashing.noconstant,
        separator="\t" if separator in ("tab", "\\t") else separator,
        labels=labels,
        positive=table.positive,
        hash=hashing.hash or "strings",
        keep=_columns(table.keep),
        ignore=_columns(table.ignore),
    )
    roles = Roles(
        table.label,
        table.weight,
        table.tag,
        _columns(table.ignore),
        _columns(table.numeric),
        _columns(table.categorical),
        source.header,
        _columns(table.keep),
    )
    return Inputs(source.paths, reading, roles, source.skip_bad)
