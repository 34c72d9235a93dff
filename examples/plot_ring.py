"""
Writing your own algebra: a ring of eight sensors
=================================================

Eight microphones stand in a circle, and a source of sound is somewhere around them. If the source moves round by one
place, all readings move by one place, and nothing else changes. An algebra can contain this symmetry. Its eight units
are the places, and the product of two units adds their places, like hours on a clock:

    (place i)(place j) = place i + j, modulo 8.

A network over this algebra treats all directions alike. So it can learn from sources on one side and find those on the
other.
"""

import matplotlib.pyplot as plt
import numpy as np

from hyperelm import Algebra, ELMRegressor

PLACES = 8
units = ["1", *(f"u{n}" for n in range(1, PLACES))]
ring = Algebra.from_table([[units[(i + j) % PLACES] for j in range(PLACES)] for i in range(PLACES)], units=units[1:])
print(ring)
print("structure:", ring.structure)

# %%
# A source is at some angle and distance. Readings fall off with the square of the distance and have 3 % noise. The
# network predicts the direction as eight weights, one for each place.
rng = np.random.default_rng(0)
places = 2 * np.pi * np.arange(PLACES) / PLACES


def record(angles):
    distance = rng.uniform(1.5, 3, len(angles))
    source = distance * np.exp(1j * angles)
    reading = 1 / np.abs(source[:, None] - np.exp(1j * places)) ** 2
    reading *= 1 + 0.03 * rng.standard_normal(reading.shape)
    wanted = np.exp(2 * (np.cos(angles[:, None] - places) - 1))
    return np.log(reading)[:, None], wanted[:, None]  # one number of eight components each


def direction(weights):
    """The angle of the weighted mean of the places."""
    return np.angle(weights.reshape(-1, PLACES) @ np.exp(1j * places))


def degrees_off(found, angles):
    return np.degrees(np.abs(np.angle(np.exp(1j * (found - angles)))))


# %%
# Training sources are all in one quadrant, test sources are all around. Networks have no bias, since a bias would
# single out a place. The real network has as many parameters and gets the same columns. Without an algebra, one would
# turn every training row to all eight places. The third model is the real network on these rows.
train_angles, test_angles = rng.uniform(0, np.pi / 2, 400), np.sort(rng.uniform(-np.pi, np.pi, 1500))
X, Y = record(train_angles)
X_test, _ = record(test_angles)

ours = ELMRegressor(ring, 40, bias=False, random_state=0).fit(X, Y)
real = ELMRegressor("real", 40, bias=False, random_state=0).fit(X.reshape(-1, PLACES), Y.reshape(-1, PLACES))
turned = [np.concatenate([np.roll(part.reshape(-1, PLACES), n, axis=1) for n in range(PLACES)]) for part in (X, Y)]
augmented = ELMRegressor("real", 40, bias=False, random_state=0).fit(*turned)
errors = {
    "over the ring": degrees_off(direction(ours.predict(X_test)), test_angles),
    "real": degrees_off(direction(real.predict(X_test.reshape(-1, PLACES))), test_angles),
    "real, rows turned": degrees_off(direction(augmented.predict(X_test.reshape(-1, PLACES))), test_angles),
}
seen = (test_angles > 0) & (test_angles < np.pi / 2)
for (name, error), model in zip(errors.items(), (ours, real, augmented)):
    print(
        f"{name:18} {model.n_parameters_:4} parameters   median error {np.median(error[seen]):5.1f}° in the quadrant "
        f"of training, {np.median(error[~seen]):5.1f}° elsewhere"
    )

# %%
# The real network is good only in the quadrant that it was trained on. The network over the ring is as good all around:
# by the multiplication table, what it learns about one place holds for all. The real network on turned rows is nearly
# as good, but needs eight times the rows.
figure, axis = plt.subplots(figsize=(9, 4), layout="constrained")
axis.axvspan(0, 90, color="tab:green", alpha=0.15, label="where the training sources were")
edges = np.linspace(-np.pi, np.pi, 61)
centres = np.degrees((edges[:-1] + edges[1:]) / 2)
for (name, error), colour in zip(errors.items(), ("tab:blue", "tab:orange", "tab:purple")):
    bins = np.digitize(test_angles, edges) - 1
    axis.semilogy(
        centres, [np.median(error[bins == n]) for n in range(60)], "o-", color=colour, label=name, markersize=4
    )
axis.plot(np.degrees(np.angle(np.exp(1j * places))), np.full(PLACES, 0.2), "k^", label="microphones")
axis.set_xticks(np.arange(-180, 181, 45))
axis.set(xlabel="direction of the source in degrees", ylabel="median error in degrees", ylim=(0.15, 250))
axis.set_title("Trained on one quadrant, tested all around")
axis.legend(loc="upper right", ncols=2)
plt.show()
