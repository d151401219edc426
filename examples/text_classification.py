"""
Classify text
=============

Hashed words, one weight each, one pass. The texts are sentences of the documentation of two libraries that are
installed here anyway; the question is which of the two a sentence comes from.
"""

import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
import scipy.optimize
import scipy.stats
from sklearn.feature_extraction.text import HashingVectorizer

import gaussfold as gf


def sentences(module: object) -> list[str]:
    """Sentences of the documentation of a module's functions and classes."""
    found = set()
    for _, thing in inspect.getmembers(module, callable):
        text = re.sub(r"\s+", " ", inspect.getdoc(thing) or "")
        found |= {part for part in re.split(r"(?<=[.!?]) ", text) if 40 < len(part) < 300}
    return sorted(found)


texts = [(s, "statistics") for s in sentences(scipy.stats)] + [(s, "optimisation") for s in sentences(scipy.optimize)]
order = np.random.default_rng(0).permutation(len(texts))
texts = [texts[i] for i in order]
print(len(texts), "sentences, for example:", texts[0])

# %%
# Words and pairs of neighbouring words, hashed into a quarter of a million columns. Nothing has to be known of the
# vocabulary beforehand, and a word that was never met has a weight of zero and the prior's uncertainty.
hasher = HashingVectorizer(n_features=2**18, ngram_range=(1, 2), alternate_sign=False)
X = hasher.transform([text for text, _ in texts])
y = np.array([label for _, label in texts])
split = int(0.7 * len(y))

# %%
# ``covariance="diagonal"`` is for rows like these: one variance a weight, work in proportion to the words of a row.
clf = gf.StreamingClassifier(covariance="diagonal")
clf.partial_fit(X[:split], y[:split], classes=["optimisation", "statistics"])
probability = clf.predict_proba(X[split:])[:, 1]
right = np.where(probability > 0.5, "statistics", "optimisation") == y[split:]
print(f"accuracy {right.mean():.3f}, log loss {gf.metrics.log_loss(y[split:] == 'statistics', probability):.3f}")

# %%
# Where it is unsure it is more often wrong, and says so: leave the sentences it is least sure of to a human.
confidence = np.maximum(probability, 1.0 - probability)
ranked = right[np.argsort(-confidence)]
share = np.arange(1, len(ranked) + 1) / len(ranked)
figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
axis.plot(share, np.cumsum(ranked) / np.arange(1, len(ranked) + 1))
axis.set(xlabel="share of sentences that the model answers", ylabel="accuracy on those", ylim=(0.7, 1.01))
plt.show()
