"""Gaussian-process peers, each run by the Python of its own environment (old pins): no import of ours here.

``PYTHON peers_gp.py bayesnewton|gpytorch STRUCTURE DATA.npz '{"iterations": 20, ...}'`` prints one line of JSON.
The data file holds X, Y, X_test, Y_test and, for sparse models, Z. What is measured is the same everywhere:

- ``compile``: seconds of the first iteration and the first hyperparameter step, beyond a later one of each;
- ``iteration``: seconds of one update of all sites and of the posterior;
- ``step``: seconds of one iteration, the energy and its gradient for the hyperparameters (and Z where learned);
- ``nlpd``, ``energy``: after ``iterations`` iterations at the fixed hyperparameters;
- ``learned``: seconds, NLPD and energy after ``steps`` hyperparameter steps (0: left out).
"""

import json
import sys
import time

import numpy as np


def best(work, repeats):
    """Shortest of several runs after one that compiles, and how much longer that one took."""
    seconds = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds[1:]), max(0.0, seconds[0] - min(seconds[1:]))


def bayesnewton(structure, data, options):
    """Time bayesnewton 1.3.4; its ``inference`` updates the posterior both before and after the sites."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import bayesnewton as bn
    import objax

    scale = {"variance": options["variance"], "lengthscale": options["lengthscale"]}
    kernel = getattr(bn.kernels, options["kernel"])(**scale)
    likelihood = bn.likelihoods.Bernoulli(link=options["link"])
    args = {"kernel": kernel, "likelihood": likelihood, "X": data["X"], "Y": data["Y"]}
    if structure == "markov":
        model = bn.models.MarkovVariationalGP(**args)
    elif structure == "sparse":
        model = bn.models.SparseVariationalGP(**args, Z=data["Z"], opt_z=options["learn_inducing"])
    else:
        model = bn.models.VariationalGP(**args)
    lr = options["damping"]

    @objax.Function.with_vars(model.vars())
    def inference():
        model.inference(lr=lr)
        return model.posterior_mean.value

    adam = objax.optimizer.Adam(model.vars())
    slope = objax.GradValues(model.energy, model.vars())

    @objax.Function.with_vars(model.vars() + adam.vars())
    def hyperparameter_step(rate):
        model.inference(lr=lr)
        gradient, energy = slope()
        adam(rate, gradient)
        return energy[0]

    inference, step = objax.Jit(inference), objax.Jit(hyperparameter_step)
    energy = objax.Jit(objax.Function.with_vars(model.vars())(lambda: model.energy()))
    state = [np.array(tensor) for tensor in model.vars().tensors()]

    def reset():
        model.vars().assign([jax.numpy.array(tensor) for tensor in state])

    found = {}
    repeats = options["repeats"]
    found["iteration"], first = best(lambda: jax.block_until_ready(inference()), repeats)
    found["step"], second = best(lambda: jax.block_until_ready(step(0.0)), repeats)
    found["compile"] = first + second
    reset()
    for _ in range(options["iterations"]):
        inference()
    found["energy"] = float(energy())
    found["nlpd"] = float(model.negative_log_predictive_density(X=data["X_test"], Y=data["Y_test"]))
    if options["steps"]:
        reset()
        step(options["rate"]).block_until_ready()  # whatever is compiled again after a reset is not timed
        reset()
        began = time.perf_counter()
        for _ in range(options["steps"]):
            value = step(options["rate"])
        value.block_until_ready()
        seconds = time.perf_counter() - began
        inference()
        nlpd = float(model.negative_log_predictive_density(X=data["X_test"], Y=data["Y_test"]))
        found["learned"] = {"seconds": seconds, "steps": options["steps"], "nlpd": nlpd, "energy": float(energy())}
    return found


def gpytorch(structure, data, options):
    """Time GPyTorch's sparse variational classification: natural gradients for q(u), Adam for the rest, full batches.

    Its Bernoulli likelihood is probit. An ``iteration`` is a step of the natural gradient alone.
    """
    import torch

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    import gpytorch as gp

    if structure != "sparse" or options["link"] != "probit":
        raise SystemExit("gpytorch: sparse, probit only")
    X, Y, X_test, Y_test = (torch.as_tensor(data[key]) for key in ("X", "Y", "X_test", "Y_test"))
    Y, Y_test = Y[:, 0], Y_test[:, 0]
    rows = len(X)

    class Model(gp.models.ApproximateGP):
        def __init__(self):
            Z = torch.as_tensor(data["Z"])
            q = gp.variational.NaturalVariationalDistribution(len(Z))
            learn = options["learn_inducing"]
            super().__init__(gp.variational.VariationalStrategy(self, Z, q, learn_inducing_locations=learn))
            self.mean_module = gp.means.ZeroMean()
            smooth = {"Matern32": gp.kernels.MaternKernel(nu=1.5), "Matern52": gp.kernels.MaternKernel(nu=2.5)}
            base = smooth.get(options["kernel"], gp.kernels.RBFKernel())
            self.covar_module = gp.kernels.ScaleKernel(base)
            base.lengthscale, self.covar_module.outputscale = options["lengthscale"], options["variance"]

        def forward(self, x):
            return gp.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = gp.likelihoods.BernoulliLikelihood()

    def fresh():
        model = Model()
        natural = gp.optim.NGD(model.variational_parameters(), num_data=rows, lr=options["damping"])
        adam = torch.optim.Adam(model.hyperparameters(), lr=options["rate"])
        return model, natural, adam, gp.mlls.VariationalELBO(likelihood, model, num_data=rows)

    def one(model, natural, adam, objective, learn):
        for parameter in model.hyperparameters():
            parameter.requires_grad_(learn)
        natural.zero_grad()
        adam.zero_grad()
        loss = -objective(model(X), Y)
        loss.backward()
        natural.step()
        if learn:
            adam.step()
        return float(loss) * rows

    def score(model, objective):
        model.eval()
        with torch.no_grad():
            p = likelihood(model(X_test)).mean
        model.train()
        with torch.no_grad():
            energy = -float(objective(model(X), Y)) * rows
        return -float(torch.log(torch.where(Y_test == 1, p, 1 - p)).mean()), energy

    found = {}
    parts = fresh()
    found["iteration"], first = best(lambda: one(*parts, learn=False), options["repeats"])
    found["step"], second = best(lambda: one(*parts, learn=True), options["repeats"])
    found["compile"] = first + second
    parts = fresh()
    for _ in range(options["iterations"]):
        one(*parts, learn=False)
    found["nlpd"], found["energy"] = score(parts[0], parts[3])
    if options["steps"]:
        parts = fresh()
        began = time.perf_counter()
        for _ in range(options["steps"]):
            one(*parts, learn=True)
        seconds = time.perf_counter() - began
        nlpd, energy = score(parts[0], parts[3])
        found["learned"] = {"seconds": seconds, "steps": options["steps"], "nlpd": nlpd, "energy": energy}
    return found


if __name__ == "__main__":
    name, structure, path, options = sys.argv[1:]
    run = {"bayesnewton": bayesnewton, "gpytorch": gpytorch}[name]
    print(json.dumps(run(structure, dict(np.load(path)), json.loads(options))))
