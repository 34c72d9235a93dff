"""
Classifying digits in several algebras
======================================

Four neighbouring pixels of an 8 x 8 digit make one number. Which multiplication joins them best? Every candidate costs
one least-squares problem, so one simply tries.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hyperelm import ELMClassifier

X, y = load_digits(return_X_y=True)

# %%
# Five-fold cross-validation of 200 neurons each; the ridge is chosen by generalised cross-validation inside ``fit``.
scores = {}
for name in ("real", "complex", "quaternions", "R[-1,+1]", "tessarines", "klein4", "paper-Cl(1,1)"):
    model = make_pipeline(StandardScaler(), ELMClassifier(name, n_hidden=200, random_state=0))
    scores[name] = cross_val_score(model, X, y)
    print(f"{name:14} {scores[name].mean():.4f} +- {scores[name].std():.4f}")

# %%
# The differences are smaller than those between folds, and a neuron in four dimensions has four times the parameters of
# a real one. So on these data nothing is won by the algebra; to know it took seven lines and a few seconds.
figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
axis.barh(list(scores), [s.mean() for s in scores.values()], xerr=[s.std() for s in scores.values()])
axis.set_xlim(0.9, 1)
axis.set(xlabel="accuracy", title="Five folds, mean and standard deviation")
axis.invert_yaxis()
plt.show()
