"""Small fits of every default path, by name: what ``gaussfold compile`` runs in processes of its own.

``python -m gaussfold.cli.commands.warm_up NAME`` runs one and prints a line for each function that it compiles.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse

from gaussfold.engine.compilation import waiting
from gaussfold.types import Array

_FACES = ("StreamingClassifier", "StreamingRegressor", "StreamingPoissonRegressor")


def _rows() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 12))
    return X, (X[:, 0] + rng.standard_normal(60) > 0.0).astype(float)


def _stream(face: str, covariance: str) -> None:
    """An estimator on dense rows and on CSR: fitted, fed more, asked everything."""
    dense, y = _rows()
    for X in (dense, sparse.csr_matrix(dense)):
        _fit(face, covariance, X, y)


def _fit(face: str, covariance: str, X: Array | sparse.csr_matrix, y: Array) -> None:
    import gaussfold as gf

    model = getattr(gf, face)(covariance=covariance)  # the public name
    model.fit(X, y)
    model.partial_fit(X[:7], y[:7])
    model.predict(X)
    if face == "StreamingClassifier":
        model.predict_proba(X)
        if covariance == "diagonal":  # of one prior, not several
            gf.StreamingClassifier(covariance=covariance, prior_std=1.0).fit(X, y).predict_proba(X)
        if covariance == "full":
            gf.StreamingClassifier().fit(X, np.arange(60) % 3).predict_proba(X)
    else:
        model.predict(X, return_std=True)


def _process(face: str) -> None:
    """A Gaussian process with all three structures."""
    import gaussfold as gf

    X, y = _rows()
    for structure, columns in (("dense", 2), ("sparse", 2), ("markov", 1)):
        model = getattr(gf, face)(structure=structure, learning_steps=1)  # the public name
        model.fit(X[:, :columns], y).predict(X[:, :columns])
        if face == "GPClassifier":
            model.predict_proba(X[:, :columns])


def _commands(texts: dict[str, bytes]) -> None:
    """Train, test and predict on files, each of another format."""
    with tempfile.TemporaryDirectory() as folder:
        model, out = str(Path(folder) / "model"), str(Path(folder) / "out.csv")
        for suffix, text in texts.items():
            data = Path(folder) / f"rows{suffix}"
            data.write_bytes(text)
            for more in ([], ["--prior-std", "0.7"]):
                _run("train", str(data), "-f", model, "--quiet", *more)
            _run("predict", "-i", model, str(data), "-p", out)


def _run(*arguments: str) -> None:
    from gaussfold.cli.app import app

    try:
        with contextlib.redirect_stdout(io.StringIO()):
            app(list(arguments))
    except SystemExit as end:
        if end.code:
            raise


_VW = b"1 |a x:0.5 y z\n-1 2.0 |a y |b w:3\n0 |a x z\n" * 20
_SVMLIGHT = b"1 1:0.5 2:1 3:2\n-1 2:1 9:3\n" * 20
_CSV = b"label,a,b,c\n" + b"1,0.5,red,2\n0,1.5,green,3\n" * 20
_OTHERS = {".svmlight": _SVMLIGHT, ".csv": _CSV, ".tsv": _CSV.replace(b",", b"\t")}

JOBS: dict[str, Callable[[], None]] = {
    **{
        f"{covariance} {face}": partial(_stream, face, covariance)
        for covariance in ("full", "diagonal", "lowrank")
        for face in _FACES
    },
    "diagonal train vw": partial(_commands, {".vw": _VW}),
    "diagonal train, other formats": partial(_commands, _OTHERS),
    "diagonal demo": partial(_run, "demo", "-n", "1000", "--quiet"),
    "gp GPClassifier": partial(_process, "GPClassifier"),
    "gp GPRegressor": partial(_process, "GPRegressor"),
}
"""Kind of model and what is done with it; the first word is what ``--for`` asks for."""


def main() -> None:
    """Run the fit that the argument names."""
    out = sys.stdout  # what the commands themselves print goes nowhere
    with waiting.speak_through(lambda text: print("compiled", text, file=out, flush=True)):
        JOBS[sys.argv[1]]()


if __name__ == "__main__":
    main()
