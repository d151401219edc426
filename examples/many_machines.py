"""
Learning in parts
=================

A belief is a Gaussian, and what rows add to it are natural parameters that add up. So four workers can learn a
quarter each, starting from the same prior, and their beliefs can be put together: for a linear model with normal
noise exactly, for others approximately.
"""

import matplotlib.pyplot as plt
import numpy as np

import gaussfold as gf

rng = np.random.default_rng(12)
n, d = 8000, 12
theta = rng.normal(size=d)
X = rng.normal(size=(n, d))
prior = gf.DenseGaussian.isotropic(d, std=2.0)


def learned(likelihood: gf.likelihoods.ScalarLikelihood, y: np.ndarray, parts: int) -> gf.DenseGaussian:
    """What ``parts`` workers know together."""
    shards = []
    for rows in np.array_split(np.arange(n), parts):
        shard = prior.copy()
        gf.fold(shard, likelihood, X[rows], y[rows])
        shards.append(shard)
    return gf.DenseGaussian.combine(prior, shards)


# %%
# Normal noise: the parts are the whole, to rounding.
y = X @ theta + 0.5 * rng.normal(size=n)
noise = gf.likelihoods.Gaussian(0.5)
one, four = learned(noise, y, 1), learned(noise, y, 4)
print(f"linear, one against four workers: means differ by {np.abs(one.mean - four.mean).max():.1e}")

# %%
# Yes or no: every part starts from the prior again, where sites are less well placed. The more parts, the further
# off.
clicks = (rng.random(n) < 1.0 / (1.0 + np.exp(-X @ theta))).astype(float)
logit = gf.likelihoods.Bernoulli("logit")
whole = learned(logit, clicks, 1)
parts = [2, 4, 8, 16, 32, 64]
off = [np.abs(learned(logit, clicks, k).mean - whole.mean).max() / np.sqrt(whole.variance()).min() for k in parts]
figure, axis = plt.subplots(figsize=(6, 3.5), layout="constrained")
axis.plot(parts, off, "o-")
axis.set(xscale="log", xlabel="workers", ylabel="largest shift of a weight\nin posterior standard deviations")
axis.set_xticks(parts, [str(k) for k in parts])
axis.minorticks_off()
plt.show()

# %%
# So rows are handed out in rounds instead: the first are learned in order, then every round is a multiple of all before
# it, its shards start from one belief, and what they add is put together. The sites are well placed then, and 64 shards
# know what one pass knows. The sums are of whole numbers: any ``executor=`` gives the same bits.
rounds = prior.copy()
gf.distributed.fold(rounds, logit, X, clicks, executor=None)
shift = np.abs(rounds.mean - whole.mean).max() / np.sqrt(whole.variance()).min()
print(f"in rounds: largest shift of a weight {shift:.3f} standard deviations")
