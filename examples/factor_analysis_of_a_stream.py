"""
The covariance of a stream
==========================

Two hundred sensors that share a few causes. The covariance of a stream as low rank plus diagonal, in one pass and
with a memory of that rank, and what it is good for: which row is unlike the others?
"""

import matplotlib.pyplot as plt
import numpy as np

import gaussfold as gf

rng = np.random.default_rng(11)
sensors, causes, n = 200, 4, 4000
loadings, noise = rng.normal(size=(sensors, causes)), rng.uniform(0.3, 1.5, sensors)


def readings(rows: int) -> np.ndarray:
    return rng.normal(size=(rows, causes)) @ loadings.T + noise * rng.normal(size=(rows, sensors))


model = gf.StreamingFactorAnalysis(n_components=causes)
for _ in range(n // 100):
    model.partial_fit(readings(100))  # as they come; nothing is kept but the factors

truth = loadings @ loadings.T + np.diag(noise**2)
error = np.linalg.norm(model.get_covariance() - truth) / np.linalg.norm(truth)
print(f"after {n} rows the covariance is {error:.1%} off")

# %%
# Somebody swaps the cables of ten sensors. Each of them still shows ordinary values, but they no longer go together.
fresh = readings(600)
fresh[300:, :10] = fresh[300:, 9::-1]
score = -model.score_samples(fresh)
figure, axis = plt.subplots(figsize=(8, 3.5), layout="constrained")
axis.plot(score, ".", ms=3)
axis.axvline(300, color="k", lw=1)
axis.set(xlabel="row (cables are swapped at the line)", ylabel="minus log density")
plt.show()
