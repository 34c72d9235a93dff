"""
Learning from a stream
======================

A sensor of rotations wears: its readings are turned a little further every hour. Rows come hour by hour and are not
kept. A model of the first hour alone grows stale; one that goes on with ``partial_fit`` knows all hours; one whose
weights fade follows the wear.
"""

import matplotlib.pyplot as plt
import numpy as np

from hyperelm import ELMRegressor

HOURS, ROWS = 24, 300


def hour(n, seed=0):
    """What the sensor reads of three axes, and the true rotation."""
    rng = np.random.default_rng((n, seed))
    rotation = rng.standard_normal((ROWS, 3))
    a = 0.03 * n
    turn = np.array([[np.cos(a), np.sin(a), 0], [-np.sin(a), np.cos(a), 0], [0, 0, 1]])
    return np.tanh(0.5 * rotation @ turn) + 0.01 * rng.standard_normal((ROWS, 3)), rotation


# %%
# The first hour fixes the hidden layer. Every later one is folded into the summary that the model keeps, whose size
# does not change, and the model is ready after each.
settings = {"algebra": "quaternions", "n_hidden": 40, "packing": "imaginary", "ridge": 1e-2, "random_state": 0}
first = ELMRegressor(**settings).fit(*hour(0))
stream = ELMRegressor(**settings)
for n in range(HOURS):
    stream.partial_fit(*hour(n))

# %%
# ``fit`` takes the blocks themselves, here from a generator, which is read once. The result is the same.
blocks = ELMRegressor(**settings).fit(hour(n) for n in range(HOURS))
difference = np.abs(blocks.predict(hour(5)[0]) - stream.predict(hour(5)[0])).max()
print(f"{HOURS * ROWS:,} rows in {HOURS} blocks; fit and partial_fit differ by {difference:.0e}")

# %%
# A block may bring weights: here every hour counts for half of the next.
fading = ELMRegressor(**settings).fit((*hour(n), np.full(ROWS, 0.5 ** (HOURS - 1 - n))) for n in range(HOURS))


def error(model, n):
    reading, rotation = hour(n, seed=1)
    return float(np.sqrt(np.mean((model.predict(reading) - rotation) ** 2)))


figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
for name, model in [("first hour", first), ("all hours", stream), ("fading weights", fading)]:
    errors = [error(model, n) for n in range(HOURS)]
    print(f"{name:15} error in the first hour {errors[0]:.3f}, in the last {errors[-1]:.3f}")
    axis.plot(errors, label=name)
axis.set_xlabel("hour")
axis.set_ylabel("root mean square error")
axis.legend()
plt.show()
