"""
Clicks from a file that does not fit in memory
==============================================

A log of impressions in Vowpal Wabbit's text format, one line each: was it clicked, and which page, advertisement,
hour. The command line reads it in one pass, with a fixed amount of memory whatever its length, and every row is
predicted before it is learned, so the loss that it prints is honest.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from gaussfold.metrics import calibration_curve

ROWS = 60_000  # 5 MB; 12 million rows are the gigabyte of the title, and take as much memory as these

# %%
# A log whose truth we know: every advertisement has an appeal, every page a willingness to click, and some pairs of
# them go well together. Most advertisements are rare, as they are.
rng = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())
ads, pages, hours = rng.zipf(1.3, ROWS) % 3000, rng.integers(0, 200, ROWS), rng.integers(0, 24, ROWS)
appeal, willing = rng.normal(0.0, 1.0, 3000), rng.normal(0.0, 0.7, 200)
truth = 1.0 / (1.0 + np.exp(2.0 - appeal[ads] - willing[pages] - 0.5 * np.cos(hours / 24 * 2 * np.pi)))
clicked = np.where(rng.random(ROWS) < truth, "1", "-1")
lines = [f"{y} |ad a{a} |page p{p} |time h{h}\n" for y, a, p, h in zip(clicked, ads, pages, hours, strict=True)]
(folder / "old.vw").write_text("".join(lines[:50_000]))
(folder / "new.vw").write_text("".join(lines[50_000:]))


def gaussfold(*arguments: str) -> str:
    """The command as one types it: ``gaussfold train ...``."""
    command = [sys.executable, "-m", "gaussfold", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout


# %%
# Learn, and keep the names of the features so that the model can be looked into.
report = gaussfold("train", "old.vw", "-b", "18", "-f", "model.gf", "--keep-names", "--quiet", "--json")
summary = json.loads(report.splitlines()[-1])
print(f"{summary['examples']} rows, progressive log loss {summary['average_loss']:.4f}")
print(gaussfold("inspect", "model.gf", "--top", "5"))

# %%
# Predict rows that it has not seen. The file has a probability for each, and how sure the model is of it.
gaussfold("predict", "new.vw", "-i", "model.gf", "-p", "predictions.csv")
predictions = pd.read_csv(folder / "predictions.csv")
print(predictions.head())

# %%
# Are the probabilities true? Of the rows that were given 20 %, about 20 % should have been clicked.
said, happened = predictions["probability"].to_numpy(), (clicked[50_000:] == "1").astype(float)
curve = calibration_curve(happened, said, n_bins=12)
figure, axis = plt.subplots(figsize=(5, 4.5), layout="constrained")
axis.plot([0, 1], [0, 1], color="0.7")
often = curve.weight >= 30  # a bin of a few rows says nothing
axis.plot(curve.predicted[often], curve.observed[often], "o-")
axis.set(xlabel="predicted probability", ylabel="share that was clicked", title="10,000 new rows")
plt.show()
