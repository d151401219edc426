"""
A map from yes and no
=====================

Where does a species live? A thousand places where somebody looked, and whether it was seen. A Gaussian process over
the plane with inducing points draws the map, and says where nobody has looked enough.
"""

import matplotlib.pyplot as plt
import numpy as np

from gaussfold.gp import GaussianProcess, Matern52

rng = np.random.default_rng(7)
places = np.vstack([rng.normal([-1.0, 0.5], 1.0, (700, 2)), rng.normal([1.5, -1.0], 0.5, (300, 2))])


def habitat(at: np.ndarray) -> np.ndarray:
    return 2.5 * np.sin(1.3 * at[:, 0]) * np.cos(0.9 * at[:, 1]) - 0.3


seen = (rng.random(1000) < 1.0 / (1.0 + np.exp(-habitat(places)))).astype(float)
model = GaussianProcess(Matern52(variance=2.0, lengthscale=1.0), "bernoulli", structure="sparse", inducing=60)
model.fit(places, seen).learn_hyperparameters(max_iter=15)
print(model.summary())

# %%
side = np.linspace(-4.0, 4.0, 60)
grid = np.column_stack([axis.ravel() for axis in np.meshgrid(side, side)])
mean, cov = model.predict_latent(grid)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
shown = left.contourf(side, side, model.predict(grid).reshape(60, 60), levels=np.linspace(0, 1, 11), cmap="RdYlBu_r")
left.scatter(*places.T, c=seen, s=4, cmap="gray", edgecolors="0.4", linewidths=0.2)
left.set_title("probability of a sighting")
figure.colorbar(shown, ax=left)
shown = right.contourf(side, side, np.sqrt(cov[:, 0, 0]).reshape(60, 60), cmap="viridis")
right.set_title("standard deviation of its log odds")
figure.colorbar(shown, ax=right)
plt.show()
