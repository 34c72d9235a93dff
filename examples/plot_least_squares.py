"""
Recovering a rotation from noisy points
=======================================

A rotation of space is x -> q x q⁻¹ with a quaternion q. Written as y q = q x, it is linear in q, and a least-squares
problem over quaternions recovers a *linear* map between two clouds of points: here Y ≈ X A with one unknown
quaternion for each pair of input and output.
"""

import numpy as np

from hyperelm import algebras, linalg

quaternions = algebras.get("quaternions")
rng = np.random.default_rng(0)

# %%
# 200 samples of 3 points each (a point is a quaternion with zero real part), mapped to 2 numbers by unknown
# quaternions, with a little noise.
X = rng.standard_normal((200, 3, 4))
X[..., 0] = 0
A = rng.standard_normal((3, 2, 4))
Y = linalg.matmul(X, A, quaternions) + 0.01 * rng.standard_normal((200, 2, 4))

# %%
# The solution of least squares, how it was found, and how well it fits.
result = linalg.lstsq(X, Y, quaternions)
print(f"least squares over {quaternions.name}: 200 x 3 numbers, 2 right-hand sides")
print(f"  method {result.method}, rank {result.rank}, condition {result.condition:.2f}")
print(f"  residual {result.residual:.4f} (noise {0.01 * np.sqrt(Y.size):.4f})")
print(f"  largest error of a component {np.abs(result.x - A).max():.4f}")
