"""What is learned, as the user chose it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self, cast

from gaussfold import likelihoods
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.diagonal.kept_rows import MOST, REMEDY
from gaussfold.beliefs.diagonal.mixture import PRIOR_GRID, DiagonalMixture
from gaussfold.beliefs.diagonal.stack import DiagonalStack
from gaussfold.checks import between, one_of, positive, refuse, whole
from gaussfold.cli.label_range import RANGES, SEEN
from gaussfold.cli.noise import LEARN
from gaussfold.data.classes import pack
from gaussfold.data.reading import Document

AUTO = "auto"
SCALES = (AUTO, "none")
"""What ``--scale`` takes."""
DEFAULT_PRIOR: Document = {"prior_std": AUTO}
"""What `train` starts from when nothing is said: five lanes cost less than three times one (RESULTS.md)."""
LABELS = {"logit": "binary", "probit": "binary", "gaussian": "real", "poisson": "count", "softmax": "class"}
"""Likelihoods, and the labels that go with them (see `gaussfold.data.reading.LABELS`)."""


@dataclass(frozen=True)
class Setting:
    """A likelihood, a rule and a prior; ``prior_stds`` are exceptions by namespace or column (of a pair: ``a*b``)."""

    prior_std: float | str = 1.0
    prior_stds: tuple[tuple[str, float], ...] = ()
    likelihood: str = "logit"
    noise_std: float | str = 1.0
    rule: str = "newton"
    coupling: str = "marginal"
    forgetting: float = 1.0
    dtype: str = "float64"
    scale: str = "auto"
    """Whether features are scaled by what is seen of them; "none" in files from before that."""
    lanes: str = "stacked"
    """Of `AUTO`: "stacked", or "mixed" in files from before there were stacks."""
    classes: tuple[str, ...] = ()
    """Of softmax: all labels there are."""
    second_look: int = 0
    """How many rows are kept for a second visit."""
    label_range: str = "none"
    """Of gaussian: whether predictions are kept within the labels so far; "none" in files from before that."""

    def __post_init__(self) -> None:
        """Refuse numbers and names that make no sense."""
        if self.prior_std != AUTO:
            between("prior-std", self.prior_std, 0, 1e6, "(]", remedy="give 'auto' or a number > 0")
        for name, std in self.prior_stds:
            if not isinstance(name, str):
                refuse("prior-std", name, "the name of a namespace or column", "give it as name=number")
            between(f"prior-std={name}", std, 0, 1e6, "(]")
        if self.prior_stds and self.prior_std == AUTO:
            msg = "prior-std: 'auto' and namespaces of their own are alternatives; give the rest a number too"
            raise ValueError(msg)
        one_of("likelihood", self.likelihood, LABELS)
        self._check_numbers()
        between("forgetting", self.forgetting, 0, 1, "(]", remedy="1 remembers everything")
        one_of("scale", self.scale, SCALES)
        one_of("lanes", self.lanes, ("stacked", "mixed"))
        self._check_classes()
        self._check_second_look()

    def _check_second_look(self) -> None:
        """Refuse a second look at rows that have faded, or of which nobody writes down what they said."""
        rows = whole("second-look", self.second_look, least=0, most=MOST, remedy=REMEDY)
        if rows and self.forgetting != 1.0:
            msg = f"second-look={rows}: with --forgetting {self.forgetting} a row has faded by then; leave one out"
            raise ValueError(msg)
        if rows and self.likelihood == "softmax":
            msg = f"second-look={rows}: with --classes every row is visited once; leave it out"
            raise ValueError(msg)

    def _check_numbers(self) -> None:
        """Refuse what does not go with labels that are no numbers."""
        one_of("label-range", self.label_range, RANGES)
        if not self.learns_noise:
            positive("noise-std", self.noise_std, remedy="give 'learn' or a number > 0")
        for name, value, usual, have in (
            ("noise-std", self.noise_std, 1.0, "none"),
            ("label-range", self.label_range, "none", "a range of their own"),
        ):
            if value != usual and self.likelihood != "gaussian":
                msg = f"{name}={value!r}: {self.likelihood} labels have {have}; it goes with gaussian"
                raise ValueError(msg)

    def _check_classes(self) -> None:
        """Refuse what does not go with several classes."""
        if self.likelihood != "softmax":
            if self.classes:
                msg = f"classes={self.classes!r}: {self.likelihood} labels have none; leave out --likelihood"
                raise ValueError(msg)
            return
        if not self.classes:
            msg = "likelihood='softmax': all classes must be announced; give --classes a,b,c (or --oaa K for 1 to K)"
            raise ValueError(msg)
        pack(self.classes)
        said = (
            ("prior-std", self.prior_stds, "some namespaces"), ("coupling", self.coupling != "marginal", self.coupling),
            ("rule", self.rule != "vi", self.rule),
        )  # fmt: skip
        for name, wrong, value in said:
            if wrong:
                msg = f"{name}={value!r}: with --classes there is one kind (vi over joint rows); leave it out"
                raise ValueError(msg)

    @property
    def stacked(self) -> bool:
        """Whether lanes of several priors and memories are stacked; who says how to forget has them mixed."""
        return isinstance(self.prior_std, str) and self.lanes == "stacked" and self.forgetting == 1.0

    @property
    def learns_noise(self) -> bool:
        """Whether labels and priors are in units of a noise that is learned."""
        return self.noise_std == LEARN

    @property
    def keeps_range(self) -> bool:
        """Whether predictions are kept within the labels so far."""
        return RANGES[self.label_range]

    @property
    def labels(self) -> str:
        """Which labels the likelihood explains."""
        return LABELS[self.likelihood]

    def make_likelihood(self) -> likelihoods.Bernoulli | likelihoods.Gaussian | likelihoods.Poisson:
        """Return p(y | f)."""
        if self.likelihood == "gaussian":
            return likelihoods.Gaussian(1.0 if isinstance(self.noise_std, str) else self.noise_std)
        if self.likelihood == "poisson":
            return likelihoods.Poisson()
        return likelihoods.Bernoulli(cast("Literal['logit', 'probit']", self.likelihood))

    def prior(self, dim: int) -> DiagonalGaussian | DiagonalMixture | DiagonalStack:
        """Return the belief before any data."""
        return self._prior(dim).look_again(self.second_look)

    def _prior(self, dim: int) -> DiagonalGaussian | DiagonalMixture | DiagonalStack:
        if self.stacked:
            return DiagonalStack.isotropic(dim, coupling=self.coupling, dtype="float32")
        if self.prior_std == AUTO:
            return DiagonalMixture.isotropic(dim, PRIOR_GRID, coupling=self.coupling, dtype=self.dtype)
        return DiagonalGaussian.isotropic(dim, float(self.prior_std), coupling=self.coupling, dtype=self.dtype)

    @classmethod
    def from_json(cls, document: Document) -> Self:
        """Undo ``vars``; files written before there were other likelihoods have a link."""
        values = {"lanes": "mixed", "scale": "none"} | dict(document)
        if "link" in values:
            values["likelihood"] = values.pop("link")
        values["classes"] = tuple(values.get("classes", ()))
        values["prior_stds"] = tuple((name, std) for name, std in values.get("prior_stds", ()))
        return cls(**values)


def announced(classes: tuple[str, ...], oaa: int | None) -> Document:
    """Which classes there are: as named, or so many numbers; returns a field of `Setting`."""
    if oaa is not None and classes:
        msg = f"--oaa {oaa} and --classes: both say which classes there are; give one of them"
        raise ValueError(msg)
    named = tuple(map(str, range(1, oaa + 1))) if oaa is not None else classes
    return {"classes": named} if named else {}


def parse_noise(text: str) -> float | str:
    """Read ``learn`` or a number."""
    try:
        return {LEARN: LEARN}.get(text) or float(text)
    except ValueError as error:
        msg = f"--noise-std {text!r}: 'learn' or a number > 0 is needed"
        raise ValueError(msg) from error


def usual(chosen: Document, *, shared: bool) -> Document:
    """What a new model is when nothing is said, given what is said."""
    prior = {} if "prior_stds" in chosen else DEFAULT_PRIOR
    if "classes" in chosen:
        return {"rule": "vi", "likelihood": "softmax", **DEFAULT_PRIOR}
    if chosen.get("likelihood") != "gaussian":
        return prior
    return {**prior, "label_range": SEEN, **({} if shared else {"noise_std": LEARN})}


def parse_prior(texts: Sequence[str]) -> Document:
    """Read ``0.5``, ``auto``, ``user=0.1`` or several of these with commas; returns fields of `Setting`."""
    chosen: dict[str | None, float | str] = {}  # by namespace (of a pair: sorted); None is the rest
    for part in (part.strip() for text in texts for part in text.split(",")):
        name, equals, number = part.rpartition("=")
        key = "*".join(sorted(name.split("*"))) if equals else None
        try:
            value = AUTO if part == AUTO else float(number)
        except ValueError as error:
            msg = f"--prior-std {part!r}: 'auto' or a number > 0, or namespace=number, is needed"
            raise ValueError(msg) from error
        if key in chosen:
            msg = f"--prior-std {part!r}: {name or 'the prior of the rest'} was given before; give it once"
            raise ValueError(msg)
        chosen[key] = value
    given = {"prior_std": chosen.pop(None, None), "prior_stds": tuple(chosen.items())}
    return {name: value for name, value in given.items() if value not in (None, ())}
