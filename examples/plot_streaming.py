"""
Learning from a stream
======================

A sensor of rotations wears out: its readings are turned a little further every hour. Rows arrive hour by hour and are
not kept. We compare four models. The first is trained on the first hour only. The second continues with
``partial_fit`` and weights all hours equally. The third has a ``half_life``: a row counts half after so many further
rows, so it follows the wear. The fourth is recursive least squares, which other libraries offer for such streams.
"""

import time

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
# The first hour fixes the hidden layer. Every hour is added to the accumulator of the model, whose size does not
# change. The model can predict after each hour.
settings = {"algebra": "quaternions", "n_hidden": 40, "packing": "imaginary", "ridge": 1e-2, "random_state": 0}
first = ELMRegressor(**settings).fit(*hour(0))
stream = ELMRegressor(**settings)
for n in range(HOURS):
    stream.partial_fit(*hour(n))

# %%
# ``fit`` takes all chunks from a generator, which is read once. The result is the same.
from_chunks = ELMRegressor(**settings).fit(hour(n) for n in range(HOURS))
difference = np.abs(from_chunks.predict(hour(5)[0]) - stream.predict(hour(5)[0])).max()
print(f"{HOURS * ROWS:,} rows in {HOURS} chunks; fit and partial_fit differ by {difference:.0e}")


# %%
# Recursive least squares updates the weights row by row. Its forgetting factor is that of the half life. It is given
# the hidden layer of the network, so both have the same least-squares problem, but for the start.
class RecursiveLeastSquares:
    def __init__(self, network, forgetting, ridge):
        size = network.neurons * network.algebra.dim + 1
        self.network, self.forgetting = network, forgetting
        self.weights, self.inverse = np.zeros((size, 3)), np.eye(size) / ridge

    def hidden(self, X):
        return np.column_stack([self.network.codes(X), np.ones(len(X))])

    def partial_fit(self, X, Y):
        for h, y in zip(self.hidden(X), Y):
            direction = self.inverse @ h
            gain = direction / (self.forgetting + h @ direction)
            self.weights += np.outer(gain, y - h @ self.weights)
            self.inverse = (self.inverse - np.outer(gain, direction)) / self.forgetting

    def predict(self, X):
        return self.hidden(X) @ self.weights


# %%
# Every hour is predicted before it is learned. The first hour has no prediction.
models = {
    "first hour": first,
    "all hours": ELMRegressor(**settings),
    "half life": ELMRegressor(half_life=ROWS, **settings),
    "half life, free readout": ELMRegressor(half_life=ROWS, readout="free", **settings),
    "recursive least squares": RecursiveLeastSquares(first.network_, 0.5 ** (1 / ROWS), settings["ridge"]),
}
errors, seconds = {name: [] for name in models}, dict.fromkeys(models, 0.0)
for n in range(HOURS):
    reading, rotation = hour(n)
    for name, model in models.items():
        if n > 0:
            errors[name].append(float(np.sqrt(np.mean((model.predict(reading) - rotation) ** 2))))
        if name != "first hour":
            start = time.process_time()
            model.partial_fit(reading, rotation)
            seconds[name] += time.process_time() - start

figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
for name, of_hours in errors.items():
    last = np.mean(of_hours[-6:])
    print(f"{name:24} error in the last six hours {last:.3f}, training {seconds[name]:.2f} s")
    axis.plot(range(1, HOURS), of_hours, label=name)
axis.set_title("Models of a stream that drifts, each hour predicted before it is learned")
axis.set_xlabel("hour")
axis.set_ylabel("root mean square error")
axis.legend()
plt.show()
