"""A Bayesian classifier on scikit-learn's breast cancer data: predict, learn, and show what is known afterwards."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer

import gaussfold as gf


def main() -> None:
    """Stream the rows through a :class:`StreamingClassifier` and print what it learns."""
    data = load_breast_cancer()
    order = np.random.default_rng(0).permutation(len(data.target))
    X, y = data.data[order], data.target[order]
    learn, hold = slice(0, 400), slice(400, None)
    # Scales come from the first rows only, as they would in a stream.
    centre, scale = X[:50].mean(axis=0), X[:50].std(axis=0)
    X = (X - centre) / scale

    print(
        f"gaussfold {gf.__version__}: {data.target_names[1]} or {data.target_names[0]}?  One pass, nothing to tune.\n"
    )
    print(f"{'rows':>6}  {'average loss':>12}  {'since last':>10}   (predict, then learn; a coin has 0.693)")
    clf = gf.StreamingClassifier(prior_std=2.0)
    seen, last = 0, 0.0
    for stop in (25, 50, 100, 200, 400):
        clf.partial_fit(X[seen:stop], y[seen:stop], classes=[0, 1])
        total = clf.progressive_log_loss_ * stop
        print(f"{stop:>6}  {clf.progressive_log_loss_:>12.4f}  {(total - last) / (stop - seen):>10.4f}")
        seen, last = stop, total

    probability = clf.predict_proba(X[hold])[:, 1]
    plug_in = 1.0 / (1.0 + np.exp(-clf.predict_latent(X[hold])[0]))
    print(f"\nOn {len(probability)} rows never seen:")
    print(f"  log loss {_log_loss(y[hold], probability):.4f} integrating over the posterior, "
          f"{_log_loss(y[hold], plug_in):.4f} with the mean weights alone")  # fmt: skip
    print("  calibration:")
    for low, high in ((0.0, 0.1), (0.1, 0.5), (0.5, 0.9), (0.9, 1.0)):
        chosen = (probability >= low) & ((probability < high) | (high == 1.0))
        if chosen.any():
            said, was = probability[chosen].mean(), y[hold][chosen].mean()
            print(f"    said {low:.1f} to {high:.1f}: {chosen.sum():>4} rows, mean {said:.3f}, came true {was:.3f}")

    strength = np.abs(clf.coef_.ravel()) / clf.coef_std_.ravel()
    print("\nWeights it is surest of (posterior mean ± standard deviation):")
    for i in np.argsort(-strength)[:5]:
        print(f"  {data.feature_names[i]:<24} {clf.coef_.ravel()[i]:+.3f} ± {clf.coef_std_.ravel()[i]:.3f}")
    print(f"\nIs the Gaussian any good?  {clf.diagnose(X[learn], y[learn])}")


def _log_loss(y: np.ndarray, p: np.ndarray) -> float:
    return float(-np.mean(np.log(np.where(y == 1, p, 1.0 - p))))


if __name__ == "__main__":
    main()
