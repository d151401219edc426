"""The page of errors: mistakes are made, and what the package says to each is written down before every build."""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from docs.ext.made_pages import made

INTRODUCTION = """# Errors and warnings

Every error names the argument, its value, what is allowed and what to do, and is raised before anything is changed: a
failed `partial_fit` leaves the model as it was. This page makes the mistakes and shows what is said.

All errors of arguments and data are `ValueError` (or `TypeError` for a missing argument); model files raise
`StoreError`, a `ValueError` too; files that cannot be opened or written raise `OSError`. Exit codes are on the
command's [page](command_line.md#exit-codes); `GAUSSFOLD_DEBUG=1` shows a traceback there.
"""

WARNINGS = """## Warnings

`ConvergenceWarning: fit has not settled`
: Visits of all rows still move the posterior. It is usable; `refine=0` asks for one pass, `prior_std=1.0` decides
  the width.

`NotConvergedWarning`
: A Gaussian process moved until the end; it says by how much. More `max_iter`, or the curvature that it names.

`RuntimeWarning: gaussfold found no folder to keep its compiled loops in`
: They are compiled again in every process. Set `NUMBA_CACHE_DIR`, or run `gaussfold compile` beforehand.
"""

BEFORE = """
from pathlib import Path
import numpy as np, pandas as pd, gaussfold as gf
from gaussfold.gp import GaussianProcess, Matern32
rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3)); y = (X[:, 0] > 0).astype(int)
"""


class Mistake(NamedTuple):
    """What somebody does."""

    title: str
    code: str


SECTIONS = {
    "Rows and labels": [
        Mistake("A feature is missing", "X[3, 1] = np.nan\ngf.StreamingClassifier().fit(X, y)"),
        Mistake("No label at all", "gf.StreamingRegressor().fit(X, np.full(30, np.nan))"),
        Mistake("A class that was not announced", "gf.StreamingClassifier().partial_fit(X, y + 1, classes=[0, 1])"),
        Mistake("One class only", "gf.StreamingClassifier().fit(X, np.ones(30))"),
        Mistake("Labels of another length", "gf.StreamingRegressor().fit(X, y[:20])"),
        Mistake("Negative counts", "gf.StreamingPoissonRegressor().fit(X, y - 1)"),
        Mistake("Negative weights", "gf.StreamingRegressor().fit(X, y, sample_weight=np.full(30, -1.0))"),
        Mistake(
            "Dates as features",
            'gf.StreamingRegressor().fit(pd.DataFrame({"day": pd.date_range("2026", periods=30)}), y)',
        ),
        Mistake("Numbers whose squares overflow", "gf.StreamingRegressor(scale=False).fit(X * 1e200, y)"),
    ],
    "Parameters": [
        Mistake("A covariance that there is not", 'gf.StreamingClassifier(covariance="banded").fit(X, y)'),
        Mistake("A prior without width", "gf.StreamingClassifier(prior_std=0.0).fit(X, y)"),
        Mistake("prior_std=None", "gf.StreamingClassifier(prior_std=None).fit(X, y)"),
        Mistake("Forgetting beyond one", "gf.StreamingClassifier(forgetting=1.5).fit(X, y)"),
        Mistake(
            "A parameter that changes between calls",
            "clf = gf.StreamingClassifier().fit(X, y)\nclf.prior_std = 2.0\nclf.partial_fit(X, y)",
        ),
        Mistake(
            "A rule that is not defined there",
            'gf.fold(gf.DenseGaussian.isotropic(3), "poisson", X, y.astype(float), rule="quadratic")',
        ),
        Mistake("Arguments of fold in each other's place", 'gf.fold("bernoulli", gf.DenseGaussian.isotropic(3), X, y)'),
    ],
    "Model files": [
        Mistake("There is none", 'gf.load("no-such-file.gf")'),
        Mistake(
            "Damaged",
            'gf.save(gf.DenseGaussian.isotropic(2), "m.gf")\n'
            'content = bytearray(Path("m.gf").read_bytes())\n'
            'content[-3] ^= 1\nPath("m.gf").write_bytes(content)\ngf.load("m.gf")',
        ),
        Mistake("Path and model swapped", 'gf.save("m.gf", gf.DenseGaussian.isotropic(2))'),
    ],
    "Gaussian processes": [
        Mistake(
            "A label that the likelihood cannot explain", 'GaussianProcess(Matern32(), "poisson").fit(X[:, 0], y + 0.5)'
        ),
        Mistake(
            "Two columns on the Markov prior", 'GaussianProcess(Matern32(), "bernoulli", structure="markov").fit(X, y)'
        ),
    ],
}


def page() -> str:
    """All mistakes, by section, with what was said."""
    here, parts = Path.cwd(), [INTRODUCTION]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for section, mistakes in SECTIONS.items():
                parts.append(f"## {section}\n")
                for title, code in mistakes:
                    parts.append(f"**{title}**\n\n```pycon\n{_typed(code)}\n{_said(code)}\n```\n")
        finally:
            os.chdir(here)
    return "\n".join([*parts, WARNINGS])


def _typed(code: str) -> str:
    return "\n".join(f">>> {line}" for line in code.split("\n"))


def _said(code: str) -> str:
    """The error or warning that a mistake meets; none is a mistake of this page."""
    world: dict[str, object] = {}
    exec(BEFORE, world)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            exec(code, world)
        except Exception as error:  # whatever it is, readers will meet it
            text = re.sub(r"0x[0-9a-f]+", "0x...", str(error))
            return f"{type(error).__name__}: {text}"
    msg = f"nothing is said to: {code}"
    raise RuntimeError(msg)


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx calls."""
    return made(app, "errors", page)
