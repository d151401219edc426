"""A model in words: one line, and a table of what it is, how the fit went, and its hyperparameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gaussfold.gp.model import GaussianProcess


def one_line(model: GaussianProcess) -> str:
    """As `repr` shows it."""
    kernels = model.covariances
    kernel = repr(kernels[0]) if len(set(map(repr, kernels))) == 1 else f"[{', '.join(map(repr, kernels))}]"
    seen = f", fitted on {len(model.X_)} rows" if model.is_fitted else ""
    how = f"rule={model.rule.name!r}, structure={model.structure!r}"
    return f"<GaussianProcess {kernel}, {model.likelihood!r}, {how}{seen}>"


def table(model: GaussianProcess) -> str:
    """Several lines for the eye."""
    lines = [("likelihood", repr(model.likelihood)), ("rule", f"{model.rule.name}, {model.curvature.name} curvature")]
    lines += [("structure", model.structure), *(_of_fit(model) if model.is_fitted else [])]
    lines += [(name, f"{value:.6g}") for name, value in model.parameters().items()]
    lines += _of_means(model)
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in lines)


def _of_fit(model: GaussianProcess) -> list[tuple[str, str]]:
    rows, columns = model.X_.shape
    lines = [("data", f"{rows} rows, {columns} column{'s' if columns > 1 else ''}")]
    if model.prior_.Z is not None:
        lines.append(("inducing inputs", str(len(model.prior_.Z))))
    if model.clock_ is not None:
        lines.append(("unit of time", model.clock_.unit))
    lines.append(("energy", f"{model.energy():.6g} (minus the log marginal likelihood)"))
    if "result_" in vars(model):
        result = model.result_
        lines.append(("converged", f"{'yes' if result.converged else 'NO'}, {result.iterations} iterations"))
    return lines


def _of_means(model: GaussianProcess) -> list[tuple[str, str]]:
    lines = []
    for d, mean in enumerate(model.means or ()):
        where = "mean" if model.latents == 1 else f"mean[{d}]"
        lines += [] if mean is None else [(f"{where}.{name}", f"{value:.6g}") for name, value in mean.named().items()]
    return lines
