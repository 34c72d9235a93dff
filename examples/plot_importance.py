"""
Which part of an image matters
==============================

The importance of an input is what the score loses when this input is shuffled among the rows. For numbers it is a whole
number that is shuffled, not one of its components: the channels of a sensor, the hours of a day or the pixels of a
patch belong together. Here the numbers are patches of two by two pixels of handwritten digits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from hyperelm import ELMClassifier

# %%
# An image of 8 x 8 pixels has 16 patches, each of which is one number with four components.
images, labels = load_digits(return_X_y=True)
patches = images.reshape(-1, 4, 2, 4, 2).swapaxes(2, 3).reshape(-1, 16, 4) / 16
X, X_new, y, y_new = train_test_split(patches, labels, random_state=0)
model = ELMClassifier("klein4", 100, random_state=0).fit(X, y)
score = model.score(X_new, y_new)
print(f"accuracy on {len(y_new)} new images: {score:.3f}")


# %%
# Rows that were not trained on show what the model needs. ``sklearn.inspection.permutation_importance`` does the same
# for the columns of a matrix.
def importances(model, X, y, repeats=5):
    """What the score loses when number n of all rows is shuffled, for every n."""
    rng, loss = np.random.default_rng(0), np.zeros((X.shape[1], repeats))
    for n in range(X.shape[1]):
        for k in range(repeats):
            shuffled = X.copy()
            shuffled[:, n] = X[rng.permutation(len(X)), n]
            loss[n, k] = model.score(X, y) - model.score(shuffled, y)
    return loss.mean(axis=1), loss.std(axis=1)


mean, spread = importances(model, X_new, y_new)
for n in mean.argsort()[::-1][:4]:
    print(f"patch in row {n // 4}, column {n % 4}: {mean[n]:.3f} +- {spread[n]:.3f}")
print(f"the corners together: {mean[[0, 3, 12, 15]].sum():.3f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.5), layout="constrained")
left.imshow(images.mean(axis=0).reshape(8, 8), cmap="gray_r")
left.set_title("Mean of all digits")
picture = right.imshow(mean.reshape(4, 4), cmap="viridis")
right.set_title("Accuracy lost without a patch")
figure.colorbar(picture)
plt.show()
