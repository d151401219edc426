"""
A time series of a million points
=================================

A Gaussian process in one dimension whose cost grows with the number of points, not with its cube: the Markov form
of a Matérn kernel is a Kalman filter. Here: was a sensor's signal above its threshold? A million yes-or-no answers.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from gaussfold.gp import GaussianProcess, Matern32

rng = np.random.default_rng(5)
n = 1_000_000
hours = np.sort(rng.uniform(0.0, 20_000.0, n))
signal = 1.2 * np.sin(hours / 40.0) + 0.8 * np.sin(hours / 311.0)
above = (rng.random(n) < 1.0 / (1.0 + np.exp(-signal))).astype(float)

# %%
model = GaussianProcess(Matern32(variance=1.0, lengthscale=30.0), "bernoulli", structure="markov")
began = time.perf_counter()
model.fit(hours, above)
print(model.summary())
print(f"{n} points in {time.perf_counter() - began:.1f} s")

# %%
# The signal that nobody measured, in a window of it, with its band.
window = np.linspace(9000.0, 9600.0, 400)
mean, cov = model.predict_latent(window)
std = np.sqrt(cov[:, 0, 0])
figure, axis = plt.subplots(figsize=(8, 3.5), layout="constrained")
axis.plot(window, 1.2 * np.sin(window / 40.0) + 0.8 * np.sin(window / 311.0), "k", lw=1, label="truth")
axis.fill_between(window, mean[:, 0] - 2 * std, mean[:, 0] + 2 * std, alpha=0.4, label="posterior, ± 2 std")
axis.set(xlabel="hour", ylabel="log odds of being above")
axis.legend()
plt.show()
