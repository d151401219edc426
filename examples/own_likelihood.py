"""
A likelihood of your own
========================

One function is enough: the logarithm of the density of a label given the latent value. Derivatives come by automatic
differentiation and expectations by quadrature.
"""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import gaussfold as gf
from gaussfold.gp import GaussianProcess, Matern32

# %%
# Reaction times are positive and have a long tail to the right: log-logistic, say, with the latent as the log of
# the median.
SHAPE = 6.0


def log_prob(y: jnp.ndarray, f: jnp.ndarray) -> jnp.ndarray:
    """Log density of the log-logistic law."""
    z = SHAPE * (jnp.log(y[0]) - f[0])
    return jnp.log(SHAPE) - jnp.log(y[0]) + z - 2.0 * jnp.logaddexp(0.0, z)


likelihood = gf.likelihoods.CustomLikelihood(log_prob)
rng = np.random.default_rng(9)
age = np.sort(rng.uniform(18.0, 80.0, 300))
median = np.log(0.25 + 0.00006 * (age - 25.0) ** 2)
logistic = rng.logistic(size=300)
seconds = np.exp(median + logistic / SHAPE)

# %%
model = GaussianProcess(Matern32(1.0, 20.0), likelihood, structure="markov").fit(age, seconds)
print(model.summary())

# %%
mean, cov = model.predict_latent(age)
std = np.sqrt(cov[:, 0, 0])
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.plot(age, seconds, ".", color="0.6")
axis.plot(age, np.exp(median), "k", lw=1, label="true median")
axis.fill_between(age, np.exp(mean[:, 0] - 2 * std), np.exp(mean[:, 0] + 2 * std), alpha=0.4, label="learned, ± 2 std")
axis.set(xlabel="age", ylabel="seconds", ylim=(0, 1.2))
axis.legend()
plt.show()
