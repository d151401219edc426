"""
The uncertainty of a JAX network
================================

Any function of parameters and inputs, with parameters in any tree: Flax, Equinox or by hand as here. The posterior
over the parameters knows where there were no data.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import gaussfold as gf

rng = np.random.default_rng(10)
x = np.concatenate([rng.uniform(-4.0, -1.0, 60), rng.uniform(1.0, 4.0, 60)])[:, None]
y = np.sin(2.0 * x[:, 0]) + 0.3 * x[:, 0] + rng.normal(0.0, 0.1, 120)


def apply(params: dict[str, jnp.ndarray], inputs: jnp.ndarray) -> jnp.ndarray:
    """A network with one hidden layer."""
    hidden = jnp.tanh(inputs @ params["W"] + params["b"])
    return hidden @ params["V"] + params["c"]


keys = jax.random.split(jax.random.key(0), 2)
params = {
    "W": jax.random.normal(keys[0], (1, 30)),
    "b": jnp.linspace(-3.0, 3.0, 30),
    "V": 0.2 * jax.random.normal(keys[1], (30,)),
    "c": jnp.zeros(()),
}

# %%
likelihood = gf.deep.log_likelihood(apply, gf.likelihoods.Gaussian(0.1))
posterior = gf.deep.VIFA(likelihood, params, rank=2, prior_precision=1.0).fit((x, y), epochs=1500)

# %%
grid = np.linspace(-6.0, 6.0, 200)[:, None]
prediction = posterior.predict(apply, grid, n_samples=200)
mean, std = np.ravel(prediction.mean), np.ravel(prediction.std)
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.plot(x[:, 0], y, ".", color="0.5")
axis.plot(grid[:, 0], mean)
axis.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, alpha=0.3)
axis.set(xlabel="x", ylabel="y", ylim=(-5, 5), title="mean and two standard deviations")
plt.show()
