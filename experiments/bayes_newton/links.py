"""Figure 1 of the paper, measured: which method becomes which, and at what pace.

The chart says that power ep becomes vi as the power goes to zero, that point estimates in place of expectations turn
vi into Newton's method and posterior linearisation into Taylor's, and that Newton's method with the Gauss-Newton
curvature is Taylor's. Each arrow is a distance between the sites that two rules make of the same marginals: over the
power, or over the share of the marginals' covariance that is left (none: a point estimate). Straight lines of slope one
are first order; the last link is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments import style
from experiments.registry import Context, Result
from gaussfold import likelihoods, rules
from gaussfold.types import Array, Sites

NOISE = 0.7
EXACT = 1e-12
"""Sites that are less apart are the same."""
NODES = {"newton": (0.0, 1.0), "vi": (0.0, 0.0), "pep": (-1.0, 0.0), "taylor": (1.0, 1.0), "pl": (1.0, 0.0)}
NAMES = {"newton": "Laplace\n(Newton)", "vi": "VI", "pep": "power EP", "taylor": "Taylor\n(EKS)", "pl": "PL"}
ARROWS = {
    ("pep", "vi"): (style.GREEN, "power → 0"),
    ("vi", "newton"): (style.BLUE, "point estimates of l"),
    ("newton", "taylor"): (style.ORANGE, "Gauss-Newton"),
    ("pl", "taylor"): (style.VERMILION, "point estimates of E y"),
}


def problem(rows: int = 60) -> tuple[Any, Array, rules.Gaussians]:
    """A carrier times an amplitude with noise of a known size, at marginals that correlate the two latents.

    Where the noise depends on the latents Taylor's gradient leaves that out, and is not Gauss-Newton's.
    """
    rng = np.random.default_rng(21)
    mean = rng.normal(size=(rows, 2))
    root = 0.5 * rng.normal(size=(rows, 2, 2))
    Y = mean[:, :1] * np.log1p(np.exp(mean[:, 1:])) + NOISE * rng.normal(size=(rows, 1))
    return likelihoods.ProductGaussian(NOISE), Y, rules.Gaussians(mean, root @ np.swapaxes(root, 1, 2))


def site(rule: Any, curvature: Any, share: float = 1.0) -> Sites:
    """What a rule makes of the marginals, with that share of their covariance: gradient and curvature at the mean."""
    likelihood, Y, now = problem()
    now = now._replace(cov=share * now.cov)
    blank = Sites(np.zeros(now.cov.shape), np.zeros(now.mean.shape))
    found = rules.update_sites(rules.SiteRecipe(rule, curvature, likelihood), Y, now, blank).sites
    return found._replace(shift=found.shift - np.einsum("nij,nj->ni", found.precision, now.mean))


def apart(one: Sites, other: Sites) -> float:
    """Largest difference of two methods' gradients and curvatures, relative to the largest entry."""
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(one, other, strict=True))


def distances(shares: Array) -> dict[str, Array]:
    """Along every arrow."""
    exact, square = rules.Exact(), rules.GaussNewton()
    vi = site(rules.VI(), exact)
    return {
        "pep-vi": np.array([apart(site(rules.EP(alpha=float(s)), exact), vi) for s in shares]),
        "vi-newton": np.array([apart(site(rules.VI(), exact, s), site(rules.Newton(), exact)) for s in shares]),
        "newton-taylor": np.array(
            [apart(site(rules.Newton(), square, s), site(rules.Taylor(), exact, s)) for s in shares]
        ),
        "pl-taylor": np.array([apart(site(rules.PL(), exact, s), site(rules.Taylor(), exact)) for s in shares]),
    }


def fig1(context: Context) -> Result:
    """The chart, and the distances along its arrows."""
    shares = np.geomspace(1.0, 3e-4, 3 if context.quick else 8)  # below, power ep's logarithms lose digits
    found = distances(shares)
    orders = {
        name: float(np.log(d[-2] / d[-1]) / np.log(shares[-2] / shares[-1]))
        for name, d in found.items()
        if d.min() > EXACT
    }
    figure = style.canvas(13.0, 5.5)
    chart, lines = figure.subplots(1, 2)
    for (start, end), (color, label) in ARROWS.items():
        name = f"{start}-{end}"
        arrow = {"arrowstyle": "->", "color": color, "lw": 2.0, "shrinkA": 32, "shrinkB": 32}
        chart.annotate("", NODES[end], NODES[start], arrowprops=arrow)
        middle = np.mean([NODES[start], NODES[end]], axis=0)
        chart.text(
            *middle, f" {label}", color=color, fontsize=9, ha="left" if start in ("vi", "pl") else "center", va="bottom"
        )
        if name in orders:
            lines.loglog(
                shares,
                found[name],
                "o-",
                color=color,
                label=f"{NAMES[start]} → {NAMES[end]}: order {orders[name]:.2f}".replace("\n", " "),
            )
        else:
            lines.plot([], [], color=color, label=f"{NAMES[start]} → {NAMES[end]}: the same".replace("\n", " "))
    for name, at in NODES.items():
        chart.text(
            *at, NAMES[name], ha="center", va="center", bbox={"boxstyle": "round", "fc": "white", "ec": style.GREY}
        )
    chart.set(xlim=(-1.4, 1.8), ylim=(-0.4, 1.4))
    chart.set_axis_off()
    lines.set(xlabel="power, or share of the marginals' covariance", ylabel="largest relative distance of the sites")
    lines.legend(fontsize=8)
    return Result(figure, {"shares": shares, "distances": found, "orders": orders})
