"""The peers' side of `gp_race`, each run by the Python of its own environment: no import of ours here.

``PYTHON peers_gp_race.py LIBRARY TASK DATA.npz BUDGET`` prints one line of JSON, a trace of [processor seconds, NLPD].
Models are what the libraries' own tutorials use for such data: variational with inducing inputs for classes and long
sets, exact where that is possible, celerite's quasi-separable kernels on log(1 + counts) where there are no counts.
"""

import json
import sys
import time
import warnings

import numpy as np

warnings.simplefilter("ignore")


class Trace:
    """Processor seconds that do not run while a model is scored."""

    def __init__(self, budget):
        self.points, self.budget, self.spent, self.began = [], budget, 0.0, time.process_time()

    def restart(self):
        """Count from zero."""
        self.spent, self.began = 0.0, time.process_time()

    def mark(self, score, *given):
        """Add a point: the seconds so far, and the score."""
        self.spent += time.process_time() - self.began
        value = float(score(*given))
        if np.isfinite(value):
            self.points.append([self.spent, value])
        self.began = time.process_time()

    @property
    def is_over(self):
        """Whether the budget is used up."""
        return self.spent + time.process_time() - self.began > self.budget


SCORED = 300
"""Held-out rows of a long series on which the quasi-separable solvers are scored: their variances are (N, rows)."""


def spread(X, count):
    """Inducing inputs: rows at random, as the tutorials do."""
    return X[np.random.default_rng(0).choice(len(X), min(count, len(X)), replace=False)]


def gaussian(y, mean, variance):
    """Minus the mean log density."""
    return 0.5 * np.mean(np.log(2.0 * np.pi * variance) + (y - mean) ** 2 / variance)


def on_logs(y, mean, variance):
    """Of counts y, from a normal density of log(1 + y)."""
    return gaussian(np.log1p(y), mean, variance) + np.mean(np.log1p(y))


# GPyTorch


def gpytorch(task, data, budget, natural):
    """Variational with inducing inputs and batches; exact for the motorcycle data."""
    import gpytorch as gp
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    X, Y, X_test, Y_test = (torch.as_tensor(data[k]) for k in ("X", "Y", "X_test", "Y_test"))
    if task == "motorcycle":
        return _exact_gpytorch(gp, torch, (X, Y, X_test, Y_test), budget)
    counts = 50 if task == "banana" else 200
    scale = float(X.std()) if task == "counts" else 1.0
    X, X_test = X / scale, X_test / scale

    class Model(gp.models.ApproximateGP):
        def __init__(self):
            Z = torch.as_tensor(spread(X.numpy(), counts))
            name = "NaturalVariationalDistribution" if natural else "CholeskyVariationalDistribution"
            kind = getattr(gp.variational, name)
            strategy = gp.variational.VariationalStrategy(self, Z, kind(len(Z)), learn_inducing_locations=True)
            super().__init__(strategy)
            self.mean_module = gp.means.ConstantMean()
            base = (
                gp.kernels.RBFKernel() if task == "banana" else gp.kernels.MaternKernel(nu=2.5, ard_num_dims=X.shape[1])
            )
            self.covar_module = gp.kernels.ScaleKernel(base)

        def forward(self, x):
            return gp.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = {"banana": gp.likelihoods.BernoulliLikelihood, "5-D": gp.likelihoods.GaussianLikelihood}.get(task)
    likelihood = _poisson(gp, torch) if likelihood is None else likelihood()
    model = Model()
    rate = 0.01 if task == "5-D" else 0.05
    both = [{"params": model.hyperparameters()}, {"params": likelihood.parameters()}]
    optimisers = [torch.optim.Adam(both if natural else [*both, {"params": model.variational_parameters()}], lr=rate)]
    if natural:
        optimisers.append(gp.optim.NGD(model.variational_parameters(), num_data=len(X), lr=0.1))
    objective = gp.mlls.VariationalELBO(likelihood, model, num_data=len(X))
    size = min(1024, len(X))

    def score():
        model.eval(), likelihood.eval()
        with torch.no_grad():
            parts = [
                -likelihood.log_marginal(y, model(x)).mean() * len(x)
                for x, y in zip(X_test.split(2000), Y_test.split(2000), strict=True)
            ]
        model.train(), likelihood.train()
        return sum(parts) / len(X_test)

    trace, step = Trace(budget), 0
    order = torch.Generator().manual_seed(1)
    while not trace.is_over:
        for rows in torch.randperm(len(X), generator=order).split(size):
            for each in optimisers:
                each.zero_grad()
            loss = -objective(model(X[rows]), Y[rows])
            loss.backward()
            for each in optimisers:
                each.step()
            step += 1
            if step in (5, 10) or step % 20 == 0:
                trace.mark(score)
            if trace.is_over:
                break
    return trace.points, f"M = {counts}, batches of {size}, {'NGD' if natural else 'Adam'} {rate}"


def _poisson(gp, torch):
    class Poisson(gp.likelihoods.Likelihood):
        has_analytic_marginal = False

        def forward(self, f):
            return torch.distributions.Poisson(f.clamp(max=20.0).exp())

    return Poisson()


def _exact_gpytorch(gp, torch, data, budget):
    X, Y, X_test, Y_test = data

    class Model(gp.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(X, Y, likelihood)
            self.mean_module = gp.means.ConstantMean()
            self.covar_module = gp.kernels.ScaleKernel(gp.kernels.MaternKernel(nu=1.5))

        def forward(self, x):
            return gp.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = gp.likelihoods.GaussianLikelihood()
    model = Model(likelihood)
    adam = torch.optim.Adam(model.parameters(), lr=0.1)
    objective = gp.mlls.ExactMarginalLogLikelihood(likelihood, model)

    def score():
        model.eval(), likelihood.eval()
        with torch.no_grad():
            found = likelihood(model(X_test))
            value = gaussian(Y_test.numpy(), found.mean.numpy(), found.variance.numpy())
        model.train(), likelihood.train()
        return value

    trace = Trace(min(budget, 10.0))
    while not trace.is_over:
        adam.zero_grad()
        loss = -objective(model(X), Y)
        loss.backward()
        adam.step()
        trace.mark(score)
    return trace.points, "exact, one noise, Adam 0.1"


# GPflow


def gpflow(task, data, budget):
    """VGP, SVGP or SGPR with SciPy's L-BFGS, ever more iterations; two latents for the motorcycle data."""
    import gpflow as gf
    import tensorflow as tf
    import tensorflow_probability as tfp

    X, Y, X_test, Y_test = data["X"], data["Y"][:, None], data["X_test"], data["Y_test"][:, None]

    def made():
        if task == "motorcycle":
            noise = gf.likelihoods.HeteroskedasticTFPConditional(
                distribution_class=tfp.distributions.Normal, scale_transform=tfp.bijectors.Softplus()
            )
            kernel = gf.kernels.SeparateIndependent([gf.kernels.Matern32(), gf.kernels.Matern32()])
            points = gf.inducing_variables.SharedIndependentInducingVariables(
                gf.inducing_variables.InducingPoints(spread(X, 30))
            )
            return gf.models.SVGP(kernel, noise, inducing_variable=points, num_latent_gps=2)
        if task == "5-D":
            return gf.models.SGPR(
                (X, Y), gf.kernels.Matern52(lengthscales=np.ones(5)), spread(X, 200), noise_variance=0.25
            )
        if len(X) <= 500:
            return gf.models.VGP((X, Y), gf.kernels.SquaredExponential(), gf.likelihoods.Bernoulli())
        noise = gf.likelihoods.Bernoulli()
        return gf.models.SVGP(gf.kernels.SquaredExponential(), noise, spread(X, 50), num_data=len(X))

    def fit(model, steps):
        loss = model.training_loss_closure((X, Y)) if isinstance(model, gf.models.SVGP) else model.training_loss
        gf.optimizers.Scipy().minimize(loss, model.trainable_variables, options={"maxiter": steps})

    def score(model):
        return -tf.reduce_mean(model.predict_log_density((X_test, Y_test))).numpy()

    fit(made(), 1)  # traces the graphs
    trace = Trace(budget)
    for steps in (1, 2, 3, 5, 8, 12, 20, 35, 60, 100, 200):
        trace.restart()
        model = made()
        fit(model, steps)
        trace.mark(score, model)
        if sum(seconds for seconds, _ in trace.points) > 2.0 * budget:
            break
    return trace.points, type(model).__name__ + ", L-BFGS"


# scikit-learn


def sklearn(task, data, budget):
    """Exact regression (a subset of a large one), Laplace's method for classes."""
    from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

    X, Y, X_test, Y_test = (data[k] for k in ("X", "Y", "X_test", "Y_test"))

    def score(model):
        mean, std = model.predict(X_test, return_std=True)
        return gaussian(Y_test, mean, std**2)

    trace = Trace(budget)
    if task == "banana":
        model = GaussianProcessClassifier(ConstantKernel() * RBF()).fit(X, Y)
        trace.mark(lambda: -np.log(model.predict_proba(X_test)[np.arange(len(X_test)), Y_test.astype(int)]).mean())
        return trace.points, "Laplace"
    kernel = ConstantKernel() * Matern(np.ones(X.shape[1]), nu=1.5 if task == "motorcycle" else 2.5)
    for rows in (500, 1000, 2000) if task == "5-D" else (len(X),):
        trace.restart()
        model = GaussianProcessRegressor(kernel + WhiteKernel(0.1)).fit(X[:rows], Y[:rows])
        trace.mark(score, model)
        if trace.spent > 0.3 * budget:
            break
    return trace.points, "exact" if task == "motorcycle" else "exact, on 500, 1000, 2000 rows"


# tinygp, celerite2, statsmodels


def _line(task, data):
    """Times and targets that quasi-separable solvers want: sorted, distinct, on a scale of one."""
    x, y, x_test = data["X"][:, 0], data["Y"], data["X_test"][:, 0]
    if task == "counts":
        return x, np.log1p(y), x_test[:SCORED]
    x, first = np.unique(x, return_index=True)
    return x, y[first], x_test


def _search(value_and_slope, start, score, budget, value=None):
    """L-BFGS with ever more iterations."""
    from scipy.optimize import minimize

    if value_and_slope is not None:
        value_and_slope(start)  # compiles
    trace = Trace(budget)
    for steps in (1, 2, 5, 10, 20, 50):
        trace.restart()
        fn, jac = (value, None) if value_and_slope is None else (value_and_slope, True)
        found = minimize(fn, start, jac=jac, method="L-BFGS-B", options={"maxiter": steps})
        trace.mark(score, found.x)
        if found.success or sum(seconds for seconds, _ in trace.points) > 2.0 * budget:
            break
    return trace.points


def tinygp(task, data, budget):
    """A quasi-separable kernel, its parameters by L-BFGS with JAX's gradients."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    import tinygp as tg

    x, y, x_test = _line(task, data)
    level = float(y.mean())

    def process(p):
        kernel = tg.kernels.quasisep.Matern32(scale=jnp.exp(p[1]), sigma=jnp.exp(p[0]))
        if task == "counts":
            kernel += tg.kernels.quasisep.SHO(omega=2.0 * jnp.pi / 24.0, quality=jnp.exp(p[3]), sigma=jnp.exp(p[4]))
        return tg.GaussianProcess(kernel, jnp.asarray(x), diag=jnp.exp(2.0 * p[2]), mean=level)

    fast = jax.jit(jax.value_and_grad(lambda p: -process(p).log_probability(jnp.asarray(y))))
    start = np.log([0.5, 100.0, 0.5, 100.0, 0.5]) if task == "counts" else np.log([1.0, 1.0, 0.5])

    def score(p):
        found = process(jnp.asarray(p)).condition(jnp.asarray(y), jnp.asarray(x_test)).gp
        mean, variance = np.asarray(found.loc), np.asarray(found.variance) + np.exp(2.0 * p[2])
        return (on_logs if task == "counts" else gaussian)(data["Y_test"][: len(mean)], mean, variance)

    def value_and_slope(p):
        value, slope = fast(jnp.asarray(p))
        return float(value), np.asarray(slope)

    what = "quasi-separable, on log(1 + counts)" if task == "counts" else "quasi-separable Matern-3/2, one noise"
    return _search(value_and_slope, start, score, budget), what


def celerite2(task, data, budget):
    """SHO terms, their parameters by L-BFGS with differences."""
    import celerite2 as c2
    from celerite2 import terms

    x, y, x_test = _line(task, data)

    def process(p):
        kernel = terms.Matern32Term(sigma=np.exp(p[0]), rho=np.exp(p[1]))
        if task == "counts":
            kernel += terms.SHOTerm(sigma=np.exp(p[4]), rho=24.0, Q=np.exp(p[3]))
        made = c2.GaussianProcess(kernel, mean=float(y.mean()))
        made.compute(x, diag=np.full(len(x), np.exp(2.0 * p[2])), quiet=True)
        return made

    start = np.log([0.5, 100.0, 0.5, 100.0, 0.5]) if task == "counts" else np.log([1.0, 1.0, 0.5])

    def score(p):
        mean, variance = process(p).predict(y, x_test, return_var=True)
        variance = np.maximum(variance, 0.0) + np.exp(2.0 * p[2])
        return (on_logs if task == "counts" else gaussian)(data["Y_test"][: len(mean)], mean, variance)

    def value(p):
        found = -process(p).log_likelihood(y)
        return found if np.isfinite(found) else 1e20

    what = "celerite, on log(1 + counts)" if task == "counts" else "celerite Matern-3/2, one noise"
    return _search(None, start, score, budget, value), what


def statsmodels(_, data, budget):
    """A Poisson regression on waves of the day and a spline of so many pieces."""
    from scipy.interpolate import BSpline
    from scipy.stats import poisson
    from statsmodels.genmod.families import Poisson
    from statsmodels.genmod.generalized_linear_model import GLM

    def design(t, pieces, last):
        day = 2.0 * np.pi * t / 24.0
        waves = [fn(k * day) for k in (1, 2, 3) for fn in (np.sin, np.cos)]
        knots = np.concatenate([[0.0] * 3, np.linspace(0.0, last, pieces), [last] * 3])
        return np.hstack([np.stack(waves, axis=1), BSpline.design_matrix(t, knots, 3).toarray()])

    def score(rate):
        return -poisson.logpmf(data["Y_test"], np.maximum(rate, 1e-12)).mean()

    trace = Trace(budget)
    last = max(data["X"].max(), data["X_test"].max()) + 1.0
    for pieces in (20, 100, 300):
        trace.restart()
        fitted = GLM(data["Y"], design(data["X"][:, 0], pieces, last), family=Poisson()).fit()
        trace.mark(score, fitted.predict(design(data["X_test"][:, 0], pieces, last)))
        if trace.spent > 0.3 * budget:
            break
    return trace.points, "Poisson GLM, waves and a spline of 20, 100, 300 pieces"


RUN = {
    "gpytorch-adam": lambda *a: gpytorch(*a, natural=False),
    "gpytorch-ngd": lambda *a: gpytorch(*a, natural=True),
    "gpflow": gpflow,
    "scikit-learn": sklearn,
    "tinygp": tinygp,
    "celerite2": celerite2,
    "statsmodels": statsmodels,
}

if __name__ == "__main__":
    library, task, path, budget = sys.argv[1:]
    points, what = RUN[library](task, dict(np.load(path)), float(budget))
    print(json.dumps({"trace": points, "what": what}))
