"""Cubature rules: what they integrate exactly, the authors' nodes, and what they refuse."""

import itertools
from math import prod

import numpy as np
import pytest
from scipy.special import erf

from gaussfold.expectations.cubature import EvenlySpaced, GaussHermite, Unscented, resolve_cubature
from tests.shared import ORACLES, needs_oracles


def normal_moment(powers):
    """E Π xᵢ^pᵢ for independent standard normals: products of double factorials."""
    return prod(0 if p % 2 else prod(range(p - 1, 0, -2)) for p in powers)


def monomials(dim, degree):
    return [p for p in itertools.product(range(degree + 1), repeat=dim) if sum(p) <= degree]


@pytest.mark.parametrize(("rule", "degree"), [(Unscented(3), 3), (Unscented(5), 5), (GaussHermite(3), 5)])
@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_polynomials_are_exact(rule, degree, dim):
    x, w = rule.nodes(dim)
    assert x.shape == (rule.size(dim), dim)
    for powers in monomials(dim, degree):
        assert w @ np.prod(x ** np.array(powers), axis=1) == pytest.approx(normal_moment(powers), abs=1e-12), powers


@pytest.mark.parametrize("rule", [Unscented(3), Unscented(5)])
def test_and_the_next_even_degree_is_not(rule):
    x, w = rule.nodes(2)
    power = rule.order + 1
    assert abs(w @ x[:, 0] ** power - normal_moment([power])) > 0.1


@needs_oracles
@pytest.mark.parametrize("dim", range(1, 9))
@pytest.mark.parametrize(("key", "rule"), [("gh20", GaussHermite(20)), ("ut3", Unscented(3)), ("ut5", Unscented(5))])
def test_nodes_are_the_authors(key, rule, dim):
    if key == "gh20" and dim > 3:
        return  # the files stop there: 20⁴ points
    found = np.load(ORACLES / "bayesnewton" / "cubature.npz")
    x, w = found[f"{key}_d{dim}_x"].T, found[f"{key}_d{dim}_w"].ravel()
    keep = (w != 0.0) | (key != "ut3")  # their ut3 carries a centre of weight 0
    for got, want in zip(_ordered(*rule.nodes(dim)), _ordered(x[keep], w[keep]), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-13)


def _ordered(x, w):
    order = np.lexsort(np.round(x.T, 6))
    return x[order], w[order]


def test_unscented_5_has_negative_weights_from_five_dimensions():
    assert [bool((Unscented(5).nodes(d)[1] < 0.0).any()) for d in range(1, 9)] == [False] * 4 + [True] * 4


def test_nodes_are_shared_and_read_only():
    x, w = GaussHermite(7).nodes(2)
    assert GaussHermite(7).nodes(2)[0] is x
    for array in (x, w):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_too_many_points():
    with pytest.raises(ValueError, match=r"order 20 in 8 dimensions has 2.56e\+10 points.*order <= 5 or cubature='"):
        GaussHermite(20).nodes(8)


@pytest.mark.parametrize("order", [0, 257, 2.5, True, "3"])
def test_refused_orders(order):
    with pytest.raises(ValueError, match="order="):
        GaussHermite(order)
    with pytest.raises(ValueError, match="order 3 and 5"):
        Unscented(4)


def test_evenly_spaced_nodes_are_exact_where_log_p_is_smooth_and_fine_where_it_is_not():
    """Moments, exp(3x) and a logistic to rounding; the mean of |x - a| to h²/8 times the density at its kink."""
    x, w = EvenlySpaced().nodes(1)
    x = x[:, 0]
    assert [w @ x**k for k in (0, 1, 2, 3, 4, 6)] == pytest.approx([1.0, 0.0, 1.0, 0.0, 3.0, 15.0], abs=1e-12)
    assert w @ np.exp(3.0 * x) == pytest.approx(np.exp(4.5), rel=1e-13)
    fine, weights = GaussHermite(256).nodes(1)
    want = weights @ np.log1p(np.exp(0.3 - fine[:, 0]))
    assert w @ np.log1p(np.exp(0.3 - x)) == pytest.approx(want, rel=1e-13)
    for a in np.linspace(0.0, 1.0, 13):
        exact = np.sqrt(2.0 / np.pi) * np.exp(-0.5 * a * a) + a * erf(a / np.sqrt(2.0))
        assert abs(w @ np.abs(x - a) - exact) < np.exp(-0.5 * a * a) / np.sqrt(2.0 * np.pi) * (x[1] - x[0]) ** 2 / 4.0
    with pytest.raises(ValueError, match="EvenlySpaced in 2 dimensions: it is for one latent"):
        EvenlySpaced().nodes(2)


def test_resolve():
    assert [resolve_cubature(None, d) for d in (1, 2, 5)] == [EvenlySpaced(), GaussHermite(20), Unscented(5)]
    assert resolve_cubature("unscented-3", 4) == Unscented(3)
    assert resolve_cubature(GaussHermite(5), 2) == GaussHermite(5)
    with pytest.raises(ValueError, match=r"cubature='gh': allowed are 'gauss-hermite'.*GaussHermite\(order\)"):
        resolve_cubature("gh", 2)
