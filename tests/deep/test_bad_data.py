"""What a method refuses of its data and its tree before the first step, in one sentence, and stays as it was."""

import numpy as np
import pytest

import gaussfold as gf
from tests.deep.problems import LINEAR, hidden, hidden_start, linear, start

CLASSES = gf.deep.log_likelihood(hidden, "softmax")
METHODS = [gf.deep.VIFA, gf.deep.SWAG, gf.deep.SLANG, gf.deep.MAP]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_row_that_is_no_number_is_named_before_the_first_step(method, value):
    X, y, _ = linear(40)
    X = X.copy()
    X[17, 1] = value
    model = method(LINEAR, start())
    with pytest.raises(ValueError, match=r"data: row 17 of the array \[0\] has NaN or infinity.* is nan; impute"):
        model.fit((X, y), steps=3)
    assert model.steps == 0


def test_nan_that_the_function_knows_about_is_let_through():
    X, y, exact = linear(300)
    X, y = np.vstack([X, X[:9]]), np.concatenate([y, np.full(9, np.nan, np.float32)])  # a label that is not known
    posterior = gf.deep.VIFA(LINEAR, start(), 3, prior_precision=2.0).fit(X, y, steps=2500)
    np.testing.assert_allclose(posterior.belief.mean, exact.mean, atol=0.02)


@pytest.mark.parametrize("method", METHODS)
def test_a_class_that_has_no_output_is_refused(method):
    X = np.ones((20, 2), np.float32)
    y = np.arange(20.0) % 3
    y[6] = 37.0
    model = method(CLASSES, hidden_start(outputs=3))
    with pytest.raises(ValueError, match=r"y\[6\] = 37.0: classes are 0 to 2, as apply has 3 outputs"):
        model.fit(X, y, steps=2)
    assert model.steps == 0


def test_running_statistics_are_no_parameters():
    variables = {"params": {"w": np.zeros(3, np.float32)}, "batch_stats": {"mean": np.zeros(3, np.float32)}}
    with pytest.raises(
        ValueError, match=r"leaf \['batch_stats'\]\['mean'\] is a running statistic.*variables\['params'\]"
    ):
        gf.deep.VIFA(LINEAR, variables)


@pytest.mark.parametrize("method", METHODS)
def test_x_and_y_apart_are_x_and_y_together(method):
    X, y, _ = linear()
    apart, joined = (method(LINEAR, start(), seed=3) for _ in range(2))
    one, other = apart.fit(X, y, steps=200), joined.fit((X, y), steps=200)
    np.testing.assert_array_equal(one.belief.mean, other.belief.mean)
