"""A rate that changes over time, from counts alone: a Gaussian process on 20,000 days, learned in seconds."""

from __future__ import annotations

import time

import numpy as np

from gaussfold import gp


def main() -> None:
    """Simulate counts, learn how fast and how far their rate moves, predict days that were left out."""
    rng = np.random.default_rng(0)
    days = np.arange(20_000.0)
    log_rate = -0.5 + 0.8 * np.sin(days / 700.0) + 0.6 * np.sin(days / 2900.0 + 1.0)
    counts = rng.poisson(np.exp(log_rate)).astype(float)
    hidden = rng.random(days.size) < 0.1

    covariance = gp.Matern52(variance=1.0, lengthscale=300.0) + gp.Constant(4.0)
    process = gp.GaussianProcess(covariance, "poisson", rule="vi", structure="markov")
    began = time.perf_counter()
    process.fit(days[~hidden], counts[~hidden])
    print(
        f"{process.result_.iterations} iterations, energy {process.energy():.1f}, {time.perf_counter() - began:.1f} s"
    )

    began = time.perf_counter()
    learned = process.learn_hyperparameters(fixed=["covariance.1.variance"])
    values = learned.parameters
    print(f"learned: std {values['covariance.0.variance'] ** 0.5:.2f}, length scale "
          f"{values['covariance.0.lengthscale']:.0f} days, energy {learned.energy:.1f}, "
          f"{time.perf_counter() - began:.1f} s")  # fmt: skip

    nlpd = -process.predict_density(days[hidden], counts[hidden]).mean()
    mean, cov = process.predict_latent(days[hidden])
    covered = np.abs(log_rate[hidden] - mean[:, 0]) < 1.96 * np.sqrt(cov[:, 0, 0])
    print(f"\n{hidden.sum()} days left out: NLPD {nlpd:.4f}; the truth is in the 95 % band on {covered.mean():.1%}")

    print("\nThe next hundred days (mean and standard deviation of the count):")
    ahead = np.array([20_000.0, 20_030.0, 20_100.0])
    for day, m, s in zip(ahead, *process.predict(ahead, return_std=True), strict=True):
        print(f"  day {day:.0f}: {m:.2f} ± {s:.2f}")


if __name__ == "__main__":
    main()
