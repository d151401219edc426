"""Our side of the Gaussian-process benchmark, in a process of its own like the peers (`peers_gp`; same arguments).

``python -m benchmarks.gp_ours markov|dense|sparse DATA.npz OPTIONS`` prints one line of JSON: what the peers print, and

- ``energy_seconds``: the energy at new hyperparameters and fixed sites, that is the posterior and then the energy;
- ``gradient``, ``gradient_settled``: the energy's gradient at fixed sites with the chain through the marginals, and
  without it, which is what bayesnewton's is and, for vi, what `learn_hyperparameters` uses;
- ``step``, ``step_full``: with the second of them, and with the first;
- ``first_use``: seconds of the first fit, energy, gradient and prediction, imports included.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

from benchmarks.report import best_seconds


def _model(structure: str, data: dict[str, np.ndarray], options: dict[str, Any]) -> Any:
    import gaussfold as gf
    from gaussfold import gp

    covariance = getattr(gp, options["kernel"])(options["variance"], options["lengthscale"])
    inducing = {"inducing": data["Z"]} if structure == "sparse" else {}
    return gp.GaussianProcess(
        covariance,
        gf.likelihoods.Bernoulli(options["link"]),
        structure=structure,
        damping=options["damping"],
        verbose=False,
        **inducing,
    )


def _compile(structure: str, data: dict[str, np.ndarray], options: dict[str, Any]) -> float:
    """Seconds of the first use of everything, on a few rows."""
    few = {key: value[:50] for key, value in data.items()}
    began = time.perf_counter()
    model = _model(structure, few, options).fit(few["X"], few["Y"], iterations=2)
    model.energy_gradient()
    model.energy_gradient(settled=True)
    model.predict_density(few["X_test"], few["Y_test"])
    return time.perf_counter() - began


def _nlpd(model: Any, data: dict[str, np.ndarray]) -> float:
    return -float(model.predict_density(data["X_test"], data["Y_test"]).mean())


def _fixed_sites(model: Any) -> None:
    """The energy at (as if) new hyperparameters: everything that depends on them is made again."""
    model.prior_ = model.prior_.with_covariances(model.covariances)
    model.marginals_ = model.prior_.update(model.sites_)
    model.energy()


def _step(model: Any, *, settled: bool) -> None:
    """What learning by gradient steps costs: posterior at the new hyperparameters, iteration, energy, gradient."""
    model.prior_ = model.prior_.with_covariances(model.covariances)
    model.marginals_ = model.prior_.update(model.sites_)
    model.step()
    model.energy()
    model.energy_gradient(settled=settled)


def measure(structure: str, data: dict[str, np.ndarray], options: dict[str, Any]) -> dict[str, Any]:
    """Times, then NLPD and energy after so many iterations, then with learned hyperparameters."""
    found: dict[str, Any] = {"first_use": _compile(structure, data, options)}
    if options.get("only_first_use"):
        return found
    repeats, few = options["repeats"], options.get("only_iteration", False)
    model = _model(structure, data, options).fit(data["X"], data["Y"], iterations=0 if few else 1)
    found["iteration"] = best_seconds(model.step, repeats)
    if not few:
        found["step"] = best_seconds(lambda: _step(model, settled=True), repeats)
        found["step_full"] = best_seconds(lambda: _step(model, settled=False), repeats)
        found["energy_seconds"] = best_seconds(lambda: _fixed_sites(model), repeats)
        found["gradient"] = best_seconds(model.energy_gradient, repeats)
        found["gradient_settled"] = best_seconds(lambda: model.energy_gradient(settled=True), repeats)
        model.fit(data["X"], data["Y"], iterations=options["iterations"])
    found["energy"], found["nlpd"] = model.energy(), _nlpd(model, data)
    if options["steps"]:
        began = time.perf_counter()
        model = _model(structure, data, options).fit(data["X"], data["Y"], iterations=2)
        learned = model.learn_hyperparameters(max_iter=options["steps"], learn_inducing=options["learn_inducing"])
        found["learned"] = {
            "seconds": time.perf_counter() - began,
            "steps": learned.evaluations,
            "nlpd": _nlpd(model, data),
            "energy": learned.energy,
        }
    return found


if __name__ == "__main__":
    structure, path, options = sys.argv[1:]
    print(json.dumps(measure(structure, dict(np.load(path)), json.loads(options))))
