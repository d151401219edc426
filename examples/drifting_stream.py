"""
A stream that changes
=====================

What was true last month may not be today. ``drift_std="auto"`` runs several speeds of change side by side, from
none to fast, and follows the one that predicts best: when the world stands still it costs next to nothing, when it
turns the model turns with it.
"""

import matplotlib.pyplot as plt
import numpy as np

import gaussfold as gf

# %%
# Five features. For the first 1500 rows nothing changes, then two weights swap signs at once, then all of them
# wander.
rng = np.random.default_rng(1)
n, d = 4500, 5
weights = np.tile(rng.normal(0.0, 1.5, d), (n, 1))
weights[1500:, :2] *= -1.0
weights[3000:] += np.cumsum(rng.normal(0.0, 0.05, (1500, d)), axis=0)
X = rng.normal(size=(n, d))
y = (rng.random(n) < 1.0 / (1.0 + np.exp(-np.sum(X * weights, axis=1)))).astype(int)

# %%
# The same rows through a model that believes in a fixed world, and through one that does not. Each row is predicted
# before it is learned.
models = {
    "no drift": gf.StreamingClassifier(),
    'drift_std="auto"': gf.StreamingClassifier(drift_std="auto"),
}
loss, path = {}, {}
for name, model in models.items():
    losses, first = [], []
    for start in range(0, n, 50):
        rows = slice(start, start + 50)
        before = model.progressive_log_loss_ * start if start else 0.0
        model.partial_fit(X[rows], y[rows], classes=[0, 1])
        losses.append((model.progressive_log_loss_ * (start + 50) - before) / 50)
        first.append((model.coef_[0, 0], model.coef_std_[0, 0]))
    loss[name], path[name] = np.array(losses), np.array(first)
    print(f"{name:>18}: log loss {model.progressive_log_loss_:.4f}")

# %%
figure, (above, below) = plt.subplots(2, 1, figsize=(8, 6), sharex=True, layout="constrained")
at = np.arange(50, n + 1, 50)
for name, values in loss.items():
    above.plot(at, np.convolve(values, np.ones(8) / 8, mode="same"), label=name)
above.set(ylabel="log loss, 400 rows")
above.legend()
below.plot(np.arange(n), weights[:, 0], color="k", lw=1, label="truth")
for name, values in path.items():
    below.fill_between(at, values[:, 0] - 2 * values[:, 1], values[:, 0] + 2 * values[:, 1], alpha=0.3, label=name)
below.set(xlabel="row", ylabel="first weight, ± 2 std")
below.legend()
plt.show()
