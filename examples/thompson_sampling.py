"""
Thompson sampling by hand
=========================

Which of ten articles to show to a visitor? Draw a model from the posterior, show what that model likes best, learn
from the answer. Articles that nobody knows well are drawn high now and then and so get their chance; nothing has to
be tuned.
"""

import matplotlib.pyplot as plt
import numpy as np

import gaussfold as gf

ARTICLES, FEATURES, VISITS = 10, 4, 3000
rng = np.random.default_rng(3)
taste = rng.normal(0.0, 1.0, (ARTICLES, FEATURES))


def context(visitor: np.ndarray) -> np.ndarray:
    """One row per article: the visitor's features in the article's place, zeros elsewhere."""
    rows = np.zeros((ARTICLES, ARTICLES * FEATURES))
    for article in range(ARTICLES):
        rows[article, article * FEATURES : (article + 1) * FEATURES] = visitor
    return rows


def click(article: int, visitor: np.ndarray) -> tuple[int, float]:
    probability = 1.0 / (1.0 + np.exp(1.0 - taste[article] @ visitor))
    return int(rng.random() < probability), probability


# %%
# A prior of 1 on every weight: the contexts are zeros for nine articles of ten, so features are left as they are.
models = {
    "thompson": gf.StreamingClassifier(prior_std=1.0, scale=False, fit_intercept=False, random_state=0),
    "greedy": gf.StreamingClassifier(prior_std=1.0, scale=False, fit_intercept=False, random_state=0),
}
regret = {name: np.zeros(VISITS) for name in models}
for name, model in models.items():
    rng = np.random.default_rng(4)
    for visit in range(VISITS):
        visitor = np.append(rng.normal(size=FEATURES - 1), 1.0)
        rows = context(visitor)
        if visit == 0:
            shown = int(rng.integers(ARTICLES))
        elif name == "thompson":
            shown = int(np.argmax(model.sample_proba(rows, 1)[0, :, 1]))
        else:
            shown = int(np.argmax(model.predict_proba(rows)[:, 1]))
        clicked, probability = click(shown, visitor)
        model.partial_fit(rows[shown : shown + 1], [clicked], classes=[0, 1])
        regret[name][visit] = (1.0 / (1.0 + np.exp(1.0 - taste @ visitor))).max() - probability

for name, values in regret.items():
    print(f"{name:>9}: {values.sum():.0f} clicks lost against somebody who knows the truth")

# %%
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for name, values in regret.items():
    axis.plot(np.cumsum(values), label=name)
axis.set(xlabel="visit", ylabel="clicks lost so far (regret)")
axis.legend()
plt.show()
