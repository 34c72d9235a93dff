"""
An IMU that sits askew: attitude over dual quaternions
======================================================

An inertial sensor measures its own attitude and position. It does not measure those of the drone, because it is mounted
askew and off centre. We want to find the mounting. A pose is a rotation r together with a position t. It is one dual
quaternion, r + ½ε tr, and poses are combined by multiplication. So with the true poses B from cameras in a laboratory
and the sensor's poses S,

    S = B m

for one unknown dual quaternion m. This is least squares over the algebra, with eight unknowns. We compare it with two
ways that need no algebra: the mean of all rotations and offsets, and least squares over the reals, where the same
product is an unknown 8 x 8 matrix.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.spatial.transform import Rotation

from hyperelm import algebras, linalg

poses = algebras.get("dual-quaternions")
quaternions = algebras.get("quaternions")


def pose(rotation, position):
    """Rotations and positions (n, 3) as dual quaternions (n, 8)."""
    r = rotation.as_quat(scalar_first=True)
    t = np.pad(position, ((0, 0), (1, 0)))
    return np.concatenate([r, quaternions.multiply(t, r) / 2], axis=1)


def parts(numbers):
    """The rotations and positions of dual quaternions, scaled to length one."""
    r = numbers[:, :4]
    t = 2 * quaternions.multiply(numbers[:, 4:], quaternions.conjugate(r)) / np.sum(r**2, axis=1, keepdims=True)
    return Rotation.from_quat(r, scalar_first=True), t[:, 1:]


# %%
# The flight lasts a minute, with 20 poses a second. The cameras are off by 0.5° and 5 mm, the sensor by 3° and 50 mm.
# The sensor is mounted 14° askew and 10 cm from the centre.
rng = np.random.default_rng(0)
steps = 1200
turning = gaussian_filter1d(rng.standard_normal((steps, 3)), 20, axis=0)
body = Rotation.from_rotvec(1.2 * turning / turning.std())
position = np.cumsum(gaussian_filter1d(rng.standard_normal((steps, 3)), 20, axis=0), axis=0)
position = (position - position.mean(axis=0)) / position.std()  # within some metres of the middle of the room
mount = pose(Rotation.from_rotvec(np.radians([[9, -8, 7]])), np.array([[0.06, -0.05, 0.07]]))


def measured(numbers, degrees, metres):
    noise = Rotation.from_rotvec(np.radians(degrees) * rng.standard_normal((len(numbers), 3)))
    rotation, place = parts(numbers)
    return pose(rotation * noise, place + metres * rng.standard_normal((len(numbers), 3)))


true = pose(body, position)
B = measured(true, 0.5, 0.005)
S = measured(poses.multiply(true, mount), 3, 0.05)
S *= np.sign(np.sum(S * poses.multiply(B, mount), axis=1, keepdims=True))  # q and -q are one rotation


# %%
# Three ways to find the mounting from n poses.
def over_dual_quaternions(n):
    return parts(linalg.lstsq(B[:n, None], S[:n, None], poses).x[0])


def by_means(n):
    (first, at), (second, then) = parts(B[:n]), parts(S[:n])
    return Rotation.concatenate([(first.inv() * second).mean()]), first.inv().apply(then - at).mean(axis=0)[None]


def over_reals(n):
    matrix = np.linalg.lstsq(B[:n], S[:n])[0]
    return parts(matrix[:1])  # the image of 1, which is m if the matrix is a multiplication


def errors(found):
    rotation, place = parts(mount)
    return np.degrees((found[0] * rotation.inv()).magnitude()[0]), 100 * np.linalg.norm(found[1] - place)


counts = [10, 20, 40, 80, 160, 320, 640, 1200]
ways = {"dual quaternions": over_dual_quaternions, "means": by_means, "real 8 x 8 matrix": over_reals}
results = {name: np.array([errors(way(n)) for n in counts]) for name, way in ways.items()}
for name, found in results.items():
    for n in (40, 1200):
        angle, centimetres = found[counts.index(n)]
        print(f"{name:18} {n:5} poses: mounting wrong by {angle:5.2f}° and {centimetres:5.1f} cm")

# %%
# The attitude of the drone from the sensor, before and after correction by the mounting.
rotation, _ = over_dual_quaternions(320)
sensor, _ = parts(S)
before = np.degrees((body.inv() * sensor).magnitude())
after = np.degrees((body.inv() * (sensor * rotation.inv())).magnitude())
print(f"attitude off by {np.median(before):.1f}° as read, {np.median(after):.1f}° when corrected (median)")

# %%
# Least squares over dual quaternions is one line of code that knows nothing of poses. It is nearly as good as the
# means, which are made for this purpose and use that rotations have length one. Over the reals there are eight times as
# many unknowns, and with few poses the answer is useless.
figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
for name, style in zip(results, ("o-", "s--", "^:")):
    axes[0].loglog(counts, results[name][:, 0], style, label=name)
    axes[1].loglog(counts, results[name][:, 1], style, label=name)
axes[0].set(xlabel="poses", ylabel="degrees", title="Error of the mounting's rotation")
axes[1].set(xlabel="poses", ylabel="cm", title="Error of the mounting's offset")
axes[0].legend()
seconds = np.arange(400) / 20
axes[2].plot(seconds, before[:400], color="0.6", label="as read")
axes[2].plot(seconds, after[:400], color="tab:blue", label="corrected")
axes[2].set(xlabel="seconds", ylabel="degrees", title="Error of the drone's attitude", ylim=(0, None))
axes[2].legend()
plt.show()
