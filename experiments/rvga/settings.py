"""The data and the prior of every figure, with the parameters the paper states.

What the captions leave open (s and c of figures 3 to 8, N of the 2-D figures) comes from the authors' script,
as the oracles record it. The scaling of the inputs is the one of the authors' program, with which the
published figures were drawn (`gaussfold.data.two_gaussians`, ``scaling="squares"``).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gaussfold as gf
from gaussfold.data import streams, two_gaussians
from gaussfold.types import Array


@dataclass(frozen=True)
class Setting:
    """One panel: N inputs in dimension d, separation s, conditioning c, prior ``N(μ0, σ0² I)``."""

    n: int
    dim: int
    separation: float
    exponent: float
    prior_std: float
    prior_norm: float = 0.0
    seed: int = 10
    scaling: str = "squares"
    oracle: str = ""  # the authors' run of this very setting
    twin: str = ""  # a run on the same data with another prior, for settings whose own file is absent

    def numbers(self) -> dict[str, Any]:
        """Return what belongs in the JSON."""
        return {key: value for key, value in asdict(self).items() if key not in ("oracle", "twin")}


@dataclass(frozen=True)
class Problem:
    """Data in stream order, the prior, and where they came from."""

    X: Array
    y: Array
    prior: gf.DenseGaussian
    source: str
    reference: dict[str, Array] | None = None


# Positions: N, d, s, c, σ0, ‖μ0‖.
FIG03 = Setting(100, 2, 2.0, 2.0, 1.0, 0.1, oracle="fig03_2d_mu0.1_sigma1")
FIG04 = Setting(100, 2, 2.0, 2.0, 10.0, 1.0, oracle="fig04_2d_mu1_sigma10", twin=FIG03.oracle)
FIG05 = Setting(100, 2, 2.0, 2.0, 100.0, 10.0, oracle="fig05_2d_mu10_sigma100", twin=FIG03.oracle)
FIG06 = Setting(100, 2, 5.0, 2.0, 10.0, oracle="fig06_2d_hard")
_SHARP, _FLAT = ({d: name.format(d) for d in (30, 70, 100)} for name in ("fig07_hd_d{}_sigma1", "fig08_hd_d{}_sigma30"))
FIG07 = {f"d = {d}": Setting(500, d, 2.0, 0.0, 1.0, oracle=_SHARP[d], twin=_FLAT[d]) for d in (30, 70, 100)}
FIG08 = {f"d = {d}": Setting(500, d, 2.0, 0.0, 30.0, oracle=_FLAT[d], twin=_SHARP[d]) for d in (30, 70, 100)}
# The caption says σ0 = 10; the authors' script ran σ0 = 1. Both are computed, the caption's is drawn.
_CAPTION, _SCRIPT = ({s: f"fig09_hd_s{s}_{name}" for s in (1, 3, 5)} for name in ("sigma10_paper", "sigma1_code"))
FIG09 = {f"s = {s}": Setting(200, 100, float(s), 0.0, 10.0, oracle=_CAPTION[s], twin=_SCRIPT[s]) for s in (1, 3, 5)}
FIG09_SCRIPT = {
    f"s = {s}": Setting(200, 100, float(s), 0.0, 1.0, oracle=_SCRIPT[s], twin=_CAPTION[s]) for s in (1, 3, 5)
}
FIG10 = {f"c = {c}": Setting(200, 100, 2.0, float(c), 10.0, oracle=f"fig10_hd_c{c}_sigma10") for c in (0, 1, 2)}
FIG11 = Setting(300, 2, 5.0, 2.0, 10.0, oracle="fig11_2d_N300")
FIG14, FIG15, FIG16 = (
    Setting(100, 2, float(s), 1.0, 10.0, seed=1, oracle=f"fig{figure}_2d_s{s}")
    for figure, s in ((14, 2), (15, 5), (16, 10))
)


def draw(setting: Setting, replicate: int = 0) -> Problem:
    """Draw our own data; another replicate is another data set from the same law."""
    rng = streams(setting.seed, replicate).data
    data = two_gaussians(
        setting.n,
        setting.dim,
        separation=setting.separation,
        exponent=setting.exponent,
        scaling=setting.scaling,
        rng=rng,
    )
    return Problem(data.X, data.y, _prior(setting), f"synthetic, seed {setting.seed}")


def load(setting: Setting, oracles: Path | None) -> Problem:
    """Return the authors' data where a file has them, our own otherwise (the source says which)."""
    for stem in (setting.oracle, setting.twin) if oracles is not None else ():
        path = (oracles or Path()) / "rvga" / f"{stem}.npz"
        if stem and path.is_file():
            with np.load(path, allow_pickle=False) as file:
                arrays = {key: file[key] for key in file.files}
            y = arrays["y"].astype(np.float64)
            reference = arrays if stem == setting.oracle else None
            return Problem(arrays["X"], y, _prior(setting), f"authors' data, {stem}", reference)
    return draw(setting)


def _prior(setting: Setting) -> gf.DenseGaussian:
    """Return ``N(μ0, σ0² I)`` with μ0 along the vector of ones."""
    mean = np.full(setting.dim, setting.prior_norm / math.sqrt(setting.dim))
    return gf.DenseGaussian(mean, setting.prior_std**2 * np.eye(setting.dim))
