"""
Choosing an algebra
===================

A network predicts the colour of a pixel from the eight pixels around it. Which algebra combines the three channels
best, and at which size and weight scale? ``ELMRegressorCV`` scores every candidate by its leave-one-out errors, without
a refit. ``compare`` then tests whether the choice is better than ridge regression by more than chance.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeCV

from hyperelm import ELMRegressor, ELMRegressorCV, compare
from hyperelm.datasets import sample_patches

# %%
# Patches of 3 x 3 pixels of two photographs, values in [-1, 1].
pixels = (sample_patches(800, size=3) / 127.5 - 1).reshape(-1, 9, 3)
X, Y = np.delete(pixels, 4, axis=1).reshape(len(pixels), -1), pixels[:, 4]

# %%
# The three channels of a pixel are the imaginary parts of one number. All algebras are compared at the same three
# numbers of parameters. We print the best candidate of each. Candidates that could not win any more left the race
# before they were scored on all rows; they have no error.
names = ["real", "quaternions", "R[-1,+1]", "tessarines", "klein4"]
search = ELMRegressorCV(
    names, n_parameters=[320, 640, 1280], weight_scale=["0.1 auto", "auto"], packing="imaginary", random_state=0
)
search.fit(X, Y)
results = search.cv_results_
errors = np.sqrt(-results["mean_test_score"])
best = {name: errors[results["param_algebra"] == name].min() for name in names}
for name in sorted(best, key=best.get):
    print(f"{name:12} " + (f"{best[name]:.4f}" if np.isfinite(best[name]) else "left the race"))
print(f"chosen: {search.best_algebra_.name}, {search.best_n_hidden_} neurons, scale {search.best_weight_scale_}")

# %%
# Compare the best network of every algebra that stayed in the race with a linear model, by repeated cross-validation.
models = {"ridge regression": RidgeCV(np.logspace(-4, 4, 17))}
for name in [name for name in names if np.isfinite(best[name])]:
    candidates = np.flatnonzero(results["param_algebra"] == name)
    params = results["params"][min(candidates, key=lambda n: errors[n])]
    models[name] = ELMRegressor(**params, packing="imaginary", random_state=0)
result = compare(models, X, Y, n_repeats=3)
for name in models:
    print(f"{name:18} R² {result.scores[name].mean():.4f}  p {result.test(name)['p']:.2g}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 3.5), layout="constrained")
for name in names:
    of_algebra = results["param_algebra"] == name
    scored = of_algebra & np.isfinite(errors)
    axes[0].scatter(results["n_parameters"][scored], errors[scored], label=name, alpha=0.7)
axes[0].set_title("Every candidate that was scored")
axes[0].legend()
axes[0].set(xlabel="parameters", ylabel="error of rows left out", xscale="log")
result.plot(axes[1])
axes[1].set_title("Is the best of them really better?")
plt.show()

# %%
# What was learned:
#
# - **No algebra is better than ridge regression by more than chance** (p above 0.1). The middle of a patch is nearly a
#   linear function of the pixels around it.
# - The search alone would not have told: it names a winner among networks, whatever they are worth. ``compare`` with a
#   simple rival does.
# - The search chose few neurons and small weights, with which neurons are nearly linear. That is another hint.
