"""laplace-torch in a venv of its own: ``python benchmarks/peers_laplace.py FILE EPOCHS`` prints one line of JSON.

FILE is an npz with X, y, X_test, y_test, ``units`` and, for regression, ``noise``; classes are whole numbers. A network
with one hidden layer is trained with Adam, then its posterior is the last-layer (full) and the Kronecker Laplace.
"""

from __future__ import annotations

import json
import math
import sys
import time

import numpy as np
import torch
from laplace import Laplace
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main(path: str, epochs: int) -> dict[str, object]:
    """Seconds of training and of the two Laplace fits, and the test NMLL of each."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = dict(np.load(path))
    X, X_test = (torch.tensor(data[key], dtype=torch.float32) for key in ("X", "X_test"))
    classes = np.issubdtype(data["y"].dtype, np.integer)
    kind = torch.long if classes else torch.float32
    y, y_test = (torch.tensor(data[key], dtype=kind) for key in ("y", "y_test"))
    if not classes:
        y, y_test = y[:, None], y_test[:, None]
    net = nn.Sequential(
        nn.Linear(X.shape[1], int(data["units"])), nn.ReLU(), nn.Linear(int(data["units"]), 10 if classes else 1)
    )
    loader = DataLoader(TensorDataset(X, y), batch_size=int(data["batch"]), shuffle=True)
    noise = 1.0 if classes else float(data["noise"])
    loss = nn.CrossEntropyLoss() if classes else nn.MSELoss()
    scale = 1.0 if classes else 0.5 / noise**2
    decay = float(data["precision"]) / len(X)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    started = time.perf_counter()
    for _ in range(epochs):
        for inputs, targets in loader:
            optimizer.zero_grad()
            penalty = sum((p**2).sum() for p in net.parameters())
            (scale * loss(net(inputs), targets) + 0.5 * decay * penalty).backward()
            optimizer.step()
    seconds = time.perf_counter() - started
    answer: dict[str, object] = {"train_seconds": seconds, "seconds_per_epoch": seconds / epochs}
    for subset, structure in (("last_layer", "full"), ("all", "kron")):
        began = time.perf_counter()
        task = "classification" if classes else "regression"
        found = Laplace(
            net,
            task,
            subset_of_weights=subset,
            hessian_structure=structure,
            prior_precision=float(data["precision"]),
            sigma_noise=noise,
        )
        found.fit(loader)
        spent = time.perf_counter() - began
        if classes:
            p = found(X_test, link_approx="mc", n_samples=100)
            nmll = float(-torch.log(p[torch.arange(len(y_test)), y_test]).mean())
        else:
            mean, variance = found(X_test)
            total = variance.squeeze() + noise**2
            nmll = float((0.5 * torch.log(2 * math.pi * total) + 0.5 * (y_test - mean).squeeze() ** 2 / total).mean())
        answer[f"{subset} {structure}"] = {"laplace_seconds": spent, "nmll": nmll}
    return answer


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
