"""
Writing your own algebra: a ring of eight sensors
=================================================

Eight microphones stand in a circle and a source of sound is somewhere around them. Turn the circle by one place and all
readings move by one place: nothing else changes. An algebra can know that. Its eight units are the places, and their
product adds the angles, like hands on a dial:

    (place i)(place j) = place i + j, modulo 8.

Over this algebra a network cannot help treating all directions alike, so it may learn from sources on one side and
still find those on the other.
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
# A source at some angle and distance; readings fall off with the square of the distance, with 3 % noise. The network is
# asked for the direction as weights of the eight places.
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
    """The angle of the mean of the places."""
    return np.angle(weights.reshape(-1, PLACES) @ np.exp(1j * places))


def degrees_off(found, angles):
    return np.degrees(np.abs(np.angle(np.exp(1j * (found - angles)))))


# %%
# Training sources are all in one quadrant, test sources all around. Biases are left out, since a bias would single out
# a place. The real network has as many parameters and gets the same columns. What a person would do without an algebra
# is to turn every training row to all eight places: the third model is the real network on these many more rows.
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
# The real network knows the quadrant that it has seen, and nothing else. The network over the ring is as good all
# around: what it learnt about one place holds for all, because the table says so. The real network that is shown all
# turned rows is nearly as good, from eight times the rows.
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
axis.set_title("Trained on one quadrant, asked all around")
axis.legend(loc="upper right", ncols=2)
plt.show()
