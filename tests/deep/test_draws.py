import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtr

from gaussfold.deep.draws import DRAWS


def draws(name, count=8, size=2000, seed=0, dtype=jnp.float32):
    every = jax.vmap(lambda number: DRAWS[name](jax.random.key(seed), number, count, size, dtype))
    return np.asarray(jax.jit(every)(jnp.arange(count)))


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_standard_normal(name):
    found = np.concatenate([draws(name, seed=seed) for seed in range(5)]).astype(float)
    n = found.size
    assert np.isfinite(found).all()
    assert abs(found.mean()) < 5 / np.sqrt(n)
    assert abs((found**2).mean() - 1) < 5 * np.sqrt(2 / n)
    assert abs((found**4).mean() - 3) < 5 * np.sqrt(96 / n)


def test_antithetic_pairs_cancel():
    found = draws("antithetic")
    np.testing.assert_array_equal(found[:4], -found[4:])


@pytest.mark.parametrize("count", [5, 8])
def test_lattice_points_are_stratified_and_means_are_better(count):
    found = draws("qmc", count)
    gaps = np.diff(np.sort(ndtr(found), axis=0), axis=0)
    np.testing.assert_allclose(gaps, 1 / count, atol=1e-4)
    independent = draws("independent", count)
    assert found.mean(axis=0).var() < 0.5 * independent.mean(axis=0).var()
