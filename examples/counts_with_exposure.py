"""
Counts with exposure
====================

Accidents per site, where some sites were watched for a week and others for a year. Give the rate as the label and the
exposure as the weight: the posterior is that of Poisson counts with an offset log(exposure).
"""

import matplotlib.pyplot as plt
import numpy as np

import gaussfold as gf

# %%
# 400 sites: traffic, speed limit, whether there is a light; and for how many weeks somebody counted.
rng = np.random.default_rng(2)
n = 400
X = np.column_stack([rng.gamma(2.0, 1.0, n), rng.choice([30.0, 50.0, 70.0], n), rng.integers(0, 2, n)])
weeks = rng.choice([1.0, 4.0, 52.0], n)
rate = np.exp(-3.0 + 0.4 * X[:, 0] + 0.02 * X[:, 1] - 0.7 * X[:, 2])
counts = rng.poisson(rate * weeks)

model = gf.StreamingPoissonRegressor(target="rate").fit(X, counts / weeks, sample_weight=weeks)
for name, value, std, true in zip(
    ("traffic", "speed", "light"), model.coef_, model.coef_std_, (0.4, 0.02, -0.7), strict=True
):
    print(f"{name:>8}: {value:+.4f} ± {std:.4f}   (truth {true:+.2f})")

# %%
# What one asks afterwards: the rate at a site of this kind, with and without a light, and how sure that is.
traffic = np.linspace(0.0, 8.0, 60)
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for light, label in ((0, "no light"), (1, "light")):
    sites = np.column_stack([traffic, np.full(60, 50.0), np.full(60, light)])
    mean, std = model.predict_latent(sites)
    line = axis.plot(traffic, np.exp(mean), label=label)[0]
    axis.fill_between(traffic, np.exp(mean - 2 * std), np.exp(mean + 2 * std), color=line.get_color(), alpha=0.25)
    axis.plot(traffic, np.exp(-3.0 + 0.4 * traffic + 0.02 * 50.0 - 0.7 * light), "k:", lw=1)
axis.set(xlabel="traffic", ylabel="accidents a week (dotted: truth)", yscale="log")
axis.legend()
plt.show()
