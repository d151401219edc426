"""
Outliers, and noise that changes
================================

Two ways in which real measurements are not a line plus normal noise: some are plainly wrong, and some regions are
noisier than others. Each is one word.
"""

import matplotlib.pyplot as plt
import numpy as np

import gaussfold as gf
from gaussfold.gp import GaussianProcess, Matern52

rng = np.random.default_rng(8)

# %%
# **Outliers.** One measurement in twelve is off by a lot. With normal noise they pull the line; with Student-t
# noise, which expects them, they do not.
x = np.sort(rng.uniform(0.0, 10.0, 120))
y = 1.0 + 0.8 * x + rng.normal(0.0, 0.4, 120)
wrong = rng.random(120) < 0.08
y[wrong] += rng.uniform(8.0, 20.0, wrong.sum())
normal = gf.StreamingRegressor().fit(x[:, None], y)
robust = gf.StreamingRegressor(df=3.0).fit(x[:, None], y)
for name, model in (("normal", normal), ("Student-t", robust)):
    print(f"{name:>9}: slope {model.coef_[0]:.3f} ± {model.coef_std_[0]:.3f}   (truth 0.8)")

# %%
# **Noise that changes.** Two latent functions, one for the mean and one for the noise.
t = np.sort(rng.uniform(0.0, 10.0, 250))
z = np.sin(t) + rng.normal(0.0, 0.05 + 0.08 * t)
varying = GaussianProcess(
    [Matern52(1.0, 2.0), Matern52(1.0, 3.0)], gf.likelihoods.HeteroscedasticGaussian(), structure="markov"
).fit(t, z)
grid = np.linspace(0.0, 10.0, 200)
low, high = varying.interval(grid, level=0.9)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(x, y, ".", color="0.5")
for name, model in (("normal", normal), ("Student-t", robust)):
    left.plot(x, model.predict(x[:, None]), label=name)
left.set(title="outliers", ylim=(-1, 28))
left.legend()
right.plot(t, z, ".", color="0.5")
right.plot(grid, np.sin(grid), "k", lw=1)
right.fill_between(grid, np.ravel(low), np.ravel(high), alpha=0.3)
right.set(title="a 90 % band that widens with the noise")
plt.show()
