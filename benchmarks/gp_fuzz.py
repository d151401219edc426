"""Random problems: every fit ends converged or warned, with finite numbers, where others end that look for the same.

A problem is a likelihood, a rule, a curvature, a structure, a kernel and data of any scale, all drawn from its number.
The judge is the best energy that any of our optimisers finds: steps of vi with exact curvature lower (16), those of
newton lower minus the log posterior, and there other curvatures, other starts and short steps look for the same. All
other pairs look for a fixed point; another start and shorter steps must not lead to one of lower energy.

``python -m benchmarks.gp_fuzz FIRST LAST`` runs some numbers and prints those that fail, ``python -m benchmarks
gp-fuzz`` a thousand (``--quick``: sixty).
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from benchmarks.report import Report
from gaussfold import likelihoods as lk
from gaussfold.gp import (
    Constant,
    Covariance,
    GaussianProcess,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    NotConvergedWarning,
    Periodic,
    SquaredExponential,
    White,
)
from gaussfold.gp.inference import problem_of
from gaussfold.gp.walk import measured
from gaussfold.rules import resolve_local

RULES = ("vi", "vi", "vi", "ep", "newton", "pl", "pl2", "taylor")
NEAR = 1e-3


class LaplaceNoise(lk.ScalarLikelihood):
    """Noise with a kink, of any scale."""

    log_concave = True

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def log_prob(self, y: Any, f: Any) -> Any:
        """``-|y - f|/scale - log 2 scale``."""
        return -np.abs(np.asarray(y) - f) / self.scale - np.log(2.0 * self.scale)

    def derivatives(self, y: Any, f: Any) -> Any:
        """No curvature but in the kink."""
        gap = np.asarray(y) - f
        return np.sign(gap) / self.scale, 0.0 * gap

    def conditional(self, f: Any) -> Any:
        """The mean is f."""
        from gaussfold.types import Moments

        f = np.asarray(f, dtype=float)
        return Moments(f, np.full(f.shape, 2.0 * self.scale**2))


class Trial(NamedTuple):
    """One problem."""

    number: int
    noise: Any
    rule: str
    curvature: str
    structure: str
    kernels: list[Covariance]
    X: np.ndarray
    Y: np.ndarray

    def __str__(self) -> str:
        noise = type(self.noise).__name__
        return f"{self.number}: {noise} {self.rule} {self.curvature} {self.structure} N={len(self.X)} {self.kernels[0]}"


def _kernel(variance: float, length: float, columns: int, rng: np.random.Generator) -> Covariance:
    stationary = [Matern12, Matern32, Matern52, SquaredExponential]
    first = stationary[rng.integers(4)](variance, length)
    choice = rng.integers(8) if columns == 1 else rng.integers(3)
    if choice == 3:
        return first + Periodic(0.5 * variance, 1.0, 0.7 * length)
    if choice == 4:
        return first + Linear(variance / (3.0 * length) ** 2)
    if choice == 5:
        return first * Periodic(1.0, 1.5, 0.4 * length)
    if choice == 2:
        return first + Constant(variance)
    if choice == 1:
        return first + White(0.1 * variance)
    return first


def _labels(rng: np.random.Generator, f: np.ndarray, scale: float) -> tuple[Any, np.ndarray, float]:
    """A likelihood, labels from (about) it, and the size of its latents."""
    n = len(f)
    kind = rng.integers(12)
    wild = rng.random(n) < 0.05
    if kind == 0:
        return lk.Gaussian(0.2 * scale), scale * (f + 0.2 * rng.normal(size=n)), scale
    if kind in (1, 2):
        link = "logit" if kind == 1 else "probit"
        return lk.Bernoulli(link), (rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * f))).astype(float), 1.0
    if kind == 3:
        level = rng.uniform(-2.0, 13.0)
        return lk.Poisson(), np.minimum(rng.poisson(np.exp(np.minimum(level + f, 13.8))), 10**6).astype(float), 1.0
    if kind == 4:
        level, r = rng.uniform(-2.0, 10.0), 10.0 ** rng.uniform(-0.5, 2.0)
        mean = np.exp(level + f)
        return lk.NegativeBinomial(r), np.minimum(rng.negative_binomial(r, r / (r + mean)), 10**6).astype(float), 1.0
    if kind == 5:
        shape = 10.0 ** rng.uniform(-0.5, 1.5)
        return lk.Gamma(shape), np.maximum(rng.gamma(shape, scale * np.exp(f) / shape), 1e-12 * scale), 1.0
    if kind == 6:
        phi = 10.0 ** rng.uniform(0.0, 2.0)
        g = 1.0 / (1.0 + np.exp(-f))
        return lk.Beta(phi), np.clip(rng.beta(phi * g, phi * (1.0 - g)), 1e-6, 1.0 - 1e-6), 1.0
    if kind == 7:
        y = f + 0.2 * rng.standard_t(3.0, n) + wild * rng.normal(0.0, 30.0, n)
        return lk.StudentT(rng.uniform(2.5, 8.0), 0.2 * scale), scale * y, scale
    if kind == 8:
        return lk.Ordinal([-1.0, 0.0, 1.5]), np.digitize(f + rng.logistic(size=n), [-1.0, 0.0, 1.5]).astype(float), 1.0
    if kind == 9:
        y = f + np.log1p(np.exp(np.roll(f, n // 2))) * rng.normal(size=n)
        return lk.HeteroscedasticGaussian(), y, 1.0
    if kind == 10:
        return lk.Softmax(3), np.digitize(f + 0.5 * rng.normal(size=n), [-0.5, 0.5]).astype(float), 1.0
    return LaplaceNoise(0.2 * scale), scale * (f + 0.2 * rng.laplace(size=n)), scale


def drawn(number: int) -> Trial:
    """The problem of that number."""
    rng = np.random.default_rng([17, number])
    structure = ("dense", "sparse", "markov")[rng.integers(3)]
    most = {"dense": 250, "sparse": 1500, "markov": 2000}[structure]
    n = int(np.exp(rng.uniform(0.0, np.log(most))))
    columns = 1 if structure == "markov" or rng.random() < 0.6 else 2
    wide, scale = 10.0 ** rng.uniform(-3.0, 6.0, 2)
    X = wide * rng.uniform(0.0, 1.0, (n, columns))
    waves = rng.normal(size=(3, columns)) * rng.uniform(3.0, 20.0)
    f = np.sin(X / wide @ waves.T + rng.uniform(0.0, 6.0, 3)) @ rng.normal(size=3)
    noise, y, size = _labels(rng, f, scale)
    off = 10.0 ** rng.uniform(-1.0, 1.0)
    length = wide * 10.0 ** rng.uniform(-1.5, 0.3)
    kernels = [_kernel(off * size**2, length, columns, rng)] * lk.as_vector(noise).latents
    y = np.where(rng.random(n) < 0.03, np.nan, y)
    rule = RULES[rng.integers(len(RULES))]
    curvatures = resolve_local(rule).curvatures
    curvature = curvatures[rng.integers(len(curvatures))] if rng.random() < 0.6 else "exact"
    return Trial(number, noise, rule, curvature, structure, kernels, X, y)


def _model(trial: Trial, **options: Any) -> GaussianProcess:
    given = {"rule": trial.rule, "curvature": trial.curvature, "max_iter": 300} | options
    return GaussianProcess(
        trial.kernels, trial.noise, structure=trial.structure, inducing=30 if trial.structure == "sparse" else None,
        random_state=0, verbose=False, **given,
    )  # fmt: skip


def _fitted(trial: Trial, **options: Any) -> tuple[GaussianProcess, bool]:
    """The fit, and whether it warned."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = _model(trial, **options).fit(trial.X, trial.Y)
    return model, any(issubclass(w.category, NotConvergedWarning) for w in said)


def value(model: GaussianProcess) -> float:
    """What the rule lowers, or its energy; of vi with another curvature the same energy, where that has ended."""
    return measured(problem_of(model), model.sites_, None, model.marginals_).merit


def _others(trial: Trial) -> list[dict[str, Any]]:
    """Options of optimisers that look for the same."""
    slow = {"damping": 0.3, "max_iter": 1000}
    plain = {"start_precision": 0.01}
    if (trial.rule, trial.curvature) == ("vi", "exact"):
        return [slow, plain, {"curvature": "riemannian"}, {"curvature": "gauss-newton"}, {"curvature": "heuristic"}]
    if trial.rule == "newton":
        return [slow, plain, {"curvature": "gauss-newton" if trial.curvature == "exact" else "exact"}]
    return [slow | plain, plain]


def judged(trial: Trial) -> str:
    """What is wrong with the fit, "converged", "warned", or "undefined" for a pair that is refused at the door."""
    try:
        model, warned = _fitted(trial)
    except ValueError as error:
        if "not defined" in str(error) or "does not say" in str(error):
            return "undefined"
        return f"raised {type(error).__name__}: {str(error)[:150]}"
    except np.linalg.LinAlgError as error:
        return f"raised {type(error).__name__}: {error}"
    now = model.marginals_
    if not all(np.isfinite(a).all() for a in (now.mean, now.cov, np.array(model.energy()))):
        return "not finite"
    if not (np.linalg.eigvalsh(now.cov) > 0.0).all():
        return f"not positive definite: {np.linalg.eigvalsh(now.cov).min():.3g}"
    mean, cov = model.predict_latent(trial.X[: min(20, len(trial.X))] * 1.01)
    if not (np.isfinite(mean).all() and (np.linalg.eigvalsh(cov) > -1e-9 * np.abs(cov).max()).all()):
        return "predictions not finite or not positive definite"
    if not model.result_.converged:
        return "warned" if warned else "neither converged nor warned"
    lowers = trial.rule == "newton" or (trial.rule, trial.curvature) == ("vi", "exact")
    mine = value(model)
    for options in _others(trial):
        try:
            other, _ = _fitted(trial, **options)
            if not (other.result_.converged or (trial.rule == "vi" and lowers)):
                continue
            theirs = value(other)
        except (ValueError, np.linalg.LinAlgError):
            continue
        gap = mine - theirs
        if gap > NEAR:
            return f"{gap:.3g} nats from {options} ({mine:.6g}, {theirs:.6g})"
    return "converged"


def run(quick: bool = False, first: int = 0, last: int | None = None) -> Report:
    """Try so many; rows are those that failed."""
    last = (60 if quick else 1000) if last is None else last
    report = Report("Random Gaussian-process problems", ("number", "what is wrong"))
    tally: Counter[str] = Counter()
    began = time.process_time()
    for number in range(first, last):
        trial = drawn(number)
        verdict = judged(trial)
        fine = verdict in ("converged", "warned", "undefined")
        tally[verdict if fine else "FAILED"] += 1
        if not fine:
            report.rows.append([str(trial), verdict])
            print(trial, "->", verdict, flush=True)
    seconds = time.process_time() - began
    report.notes.append(f"{dict(tally)}; {seconds:.0f} s of processor time")
    report.numbers |= {"tally": dict(tally)}
    return report


if __name__ == "__main__":
    print(run(first=int(sys.argv[1]), last=int(sys.argv[2])).notes[0])
