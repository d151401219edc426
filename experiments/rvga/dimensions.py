"""Figures 7-10: KL over the stream in higher dimension."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.registry import Context, Result
from experiments.rvga import panels, settings
from experiments.rvga.methods import (
    METHODS,
    against_reference,
    batch_kls,
    final_kls,
    history,
    replicates,
    unnormalised_kl,
)
from experiments.rvga.settings import Setting
from experiments.style import canvas


def fig07(context: Context) -> Result:
    """Draw the case of a sharp prior, where differences are moderate."""
    return _figure(settings.FIG07, context, "σ₀ = 1, s = 2, c = 0, N = 500")


def fig08(context: Context) -> Result:
    """Draw the case of a flat prior, where differences are stark."""
    return _figure(settings.FIG08, context, "σ₀ = 30, s = 2, c = 0, N = 500")


def fig09(context: Context) -> Result:
    """Draw separability with the caption's prior; compute it with the script's too."""
    result = _figure(settings.FIG09, context, "σ₀ = 10, d = 100, c = 0, N = 200")
    script = {
        name: final_kls(settings.load(setting, context.oracles))
        for name, setting in context.track(settings.FIG09_SCRIPT.items(), "σ₀ = 1, as in the script")
    }
    return Result(result.figure, result.numbers | {"final_kl_with_prior_std_1": script})


def fig10(context: Context) -> Result:
    """Draw conditioning with the program's scaling of the inputs; compute it with the text's too."""
    result = _figure(settings.FIG10, context, "σ₀ = 10, d = 100, s = 2, N = 200")
    text = {
        name: final_kls(settings.draw(replace(setting, scaling="trace")))
        for name, setting in context.track(settings.FIG10.items(), "scaling of the text")
    }
    return Result(result.figure, result.numbers | {"final_kl_with_scaling_trace": text})


def _figure(rows: Mapping[str, Setting], context: Context, title: str) -> Result:
    figure = canvas(13.0, 4.6)
    axes = figure.subplots(1, len(rows), squeeze=False)[0]
    numbers: dict[str, Any] = {"panels": {}}
    for ax, (name, setting) in zip(axes, rows.items(), strict=True):
        problem = settings.load(setting, context.oracles)
        n = len(problem.y)
        steps = np.unique(np.linspace(0, n, 11 if context.quick else 101).round().astype(int))
        curves: dict[str, list[float]] = {}
        for key in context.track(METHODS, f"{name}: KL along the stream"):
            beliefs = history(METHODS[key], problem, steps)
            curves[key] = [unnormalised_kl(belief, problem) for belief in beliefs]
        curves |= batch_kls(problem)
        panels.kl_curves(ax, steps, curves, name, "KL, with Z = 1" if ax is axes[0] else "")
        final = {key: values[-1] for key, values in curves.items()}
        numbers["panels"][name] = {
            "data": problem.source,
            "setting": setting.numbers(),
            "final_kl_unnormalised": final,
            "order": sorted(final, key=final.__getitem__),
            "steps": steps,
            "kl_unnormalised": curves,
            "oracle_difference": against_reference(problem, steps, curves),
            "replicates": replicates(setting, context, f"{name}: other data sets"),
        }
    figure.suptitle(title, fontsize=11)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7)
    return Result(figure, numbers)
