"""How one row is learned: a belief, its marginal, the site, the belief after."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gaussfold as gf
from docs.figures.style import BELIEF, INK, LABEL, SITE, ellipse

MEAN, COV = np.array([0.3, -0.2]), np.array([[1.6, 0.7], [0.7, 0.9]])
ROW = np.array([1.0, 1.4])


def marginal_site_absorb(path: Path) -> None:
    """Four panels from left to right."""
    before, after = gf.DenseGaussian(MEAN, COV), gf.DenseGaussian(MEAN, COV)
    gf.fold(after, "bernoulli", ROW[None], np.array([1.0]))
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.4), layout="constrained")
    for axis, belief, title in ((axes[0], before, "1  belief"), (axes[3], after, "4  belief after")):
        ellipse(axis, belief.mean, belief.cov, BELIEF)
        axis.annotate("", ROW / np.linalg.norm(ROW) * 2.3, (0, 0), arrowprops={"arrowstyle": "->", "color": LABEL})
        axis.text(1.45, 2.0, "x", color=LABEL)
        axis.set(title=title, xlim=(-3.5, 3.5), ylim=(-3, 3), xlabel="θ₁", ylabel="θ₂", aspect="equal")
    ellipse(axes[3], before.mean, before.cov, BELIEF, dashed=True)
    f = np.linspace(-6, 9, 500)
    m0, v0 = ROW @ MEAN, ROW @ COV @ ROW
    m1, v1 = ROW @ after.mean, ROW @ after.cov @ ROW
    normal = lambda mean, variance: np.exp(-0.5 * (f - mean) ** 2 / variance) / np.sqrt(2 * np.pi * variance)  # noqa: E731
    label = 1.0 / (1.0 + np.exp(-f))
    axes[1].plot(f, normal(m0, v0), color=BELIEF, label="marginal of f = x'θ")
    axes[1].plot(f, 0.25 * label, color=LABEL, label="likelihood p(y = 1 | f)")
    axes[1].set(title="2  its marginal, and the row", xlabel="f", yticks=[])
    precision = 1.0 / v1 - 1.0 / v0
    centre = (m1 / v1 - m0 / v0) / precision
    exact = label * normal(m0, v0)
    exact /= np.trapezoid(exact, f)
    axes[2].plot(f, 0.28 * np.exp(-0.5 * precision * (f - centre) ** 2), color=SITE, label="site: a Gaussian factor")
    axes[2].plot(f, exact, color=INK, lw=1, label="marginal × likelihood")
    axes[2].plot(f, normal(m1, v1), "--", color=BELIEF, label="marginal × site")
    axes[2].set(title="3  the site that stands in", xlabel="f", yticks=[])
    for axis in axes[1:3]:
        axis.set_ylim(0, 0.42)
        axis.legend(loc="upper left", fontsize=8, frameon=False)
    figure.savefig(path)
    plt.close(figure)


def implicit(path: Path) -> None:
    """The same row looked at from the belief before and from the belief after it."""
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained", sharey=True)
    f = np.linspace(-15, 40, 4000)
    for axis, v0 in zip(axes, (1.0, 9.0, 100.0), strict=True):
        exact = np.exp(-0.5 * f**2 / v0) / (1.0 + np.exp(-f))
        exact /= np.trapezoid(exact, f)
        axis.fill_between(f, exact / exact.max(), color="0.85", label="exact")
        for rule, at, name in (
            ("taylor", "prior", "EKF (taylor, prior)"),
            ("vi", "prior", "explicit (vi, prior)"),
            ("vi", "posterior", "implicit (vi, posterior)"),
        ):
            belief = gf.DenseGaussian.isotropic(1, std=v0**0.5)
            gf.fold(belief, "bernoulli", np.ones((1, 1)), np.array([1.0]), rule=rule, at=at)
            density = np.exp(-0.5 * (f - belief.mean[0]) ** 2 / belief.cov[0, 0])
            axis.plot(f, density, label=name)
        reach = 3.5 * v0**0.5
        axis.set(title=f"prior variance {v0:g}", xlabel="f", yticks=[], xlim=(-0.6 * reach, 1.2 * reach))
    axes[0].legend(fontsize=8, frameon=False)
    figure.savefig(path)
    plt.close(figure)


def one_pass(path: Path) -> None:
    """How far one pass ends from the batch optimum, in posterior standard deviations, as rows come in."""
    rng = np.random.default_rng(0)
    sizes, d = [20, 50, 100, 200, 500, 1000, 2000], 10
    figure, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
    for spread, name in ((0.5, "weights of 0.5"), (2.0, "weights of 2"), (6.0, "weights of 6: nearly separable")):
        moved = []
        for n in sizes:
            shifts = []
            for _ in range(8):
                X = rng.normal(size=(n, d))
                y = (rng.random(n) < 1.0 / (1.0 + np.exp(-X @ rng.normal(0.0, spread, d)))).astype(float)
                once = gf.DenseGaussian.isotropic(d, std=spread)
                sites = gf.fold(once, "bernoulli", X, y)
                batch = once.copy()
                gf.sweep(batch, "bernoulli", X, y, sites, n_sweeps=50)
                shifts.append(np.sqrt(np.mean((once.mean - batch.mean) ** 2 / batch.variance())))
            moved.append(np.mean(shifts))
        axis.plot(sizes, moved, "o-", label=name)
    axis.set(xscale="log", xlabel="rows (10 features)", ylabel="shift, in posterior std", ylim=(0, None))
    axis.legend(frameon=False)
    figure.savefig(path)
    plt.close(figure)
