"""
Forecasting seasonal counts
===========================

Three years of daily counts with a week, a year and a trend in them; what comes next, with bands for the counts
themselves, and what each part of the model contributes.
"""

import matplotlib.pyplot as plt
import numpy as np

from gaussfold.gp import Constant, GaussianProcess, Matern52, Periodic

rng = np.random.default_rng(6)
day = np.arange(3 * 365.0)
log_rate = 2.0 + 0.0006 * day + 0.5 * np.sin(2 * np.pi * day / 365.25) + 0.3 * np.cos(2 * np.pi * day / 7.0)
counts = rng.poisson(np.exp(log_rate)).astype(float)
known = day < 900

# %%
# A level, a slow trend, and two seasons. The periods are known; how strong each part is comes from the data.
covariance = (
    Constant(4.0)
    + Matern52(variance=0.1, lengthscale=300.0)
    + Periodic(variance=0.1, lengthscale=1.0, period=365.25)
    + Periodic(variance=0.1, lengthscale=1.0, period=7.0)
)
model = GaussianProcess(covariance, "poisson", structure="markov").fit(day[known], counts[known])
periods = [name for name in model.parameters() if "period" in name]
model.learn_hyperparameters(fixed=[*periods, "covariance.0.variance"], max_iter=40)
print(model.summary())

# %%
# The forecast: an interval for the counts, not for their mean. Of the days that were held back, nine in ten should
# be inside.
low, high = model.interval(day[~known], level=0.9)
inside = (counts[~known] >= low.ravel()) & (counts[~known] <= high.ravel())
print(f"{inside.mean():.0%} of {inside.size} days ahead are inside the 90 % band")

figure, (above, below) = plt.subplots(2, 1, figsize=(9, 6), layout="constrained")
above.plot(day, counts, ".", ms=2, color="0.5")
above.plot(day[~known], model.predict(day[~known]), lw=1)
above.fill_between(day[~known], low.ravel(), high.ravel(), alpha=0.3)
above.set(xlabel="day", ylabel="count", title="180 days ahead")
names = ("level", "trend", "year", "week")
for name, part in zip(names[1:], model.components(day[700:900])[1:], strict=True):
    below.plot(day[700:900], part.mean, label=name)
below.set(xlabel="day", ylabel="part of the log rate")
below.legend()
plt.show()
