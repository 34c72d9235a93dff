"""
Denoising a colour image
========================

A pixel's red, green and blue belong together, so they become the imaginary parts of one number. A network learns on one
half of a photograph to remove noise from patches of 6 x 6 pixels, and is tested on the other half. We compare two
algebras with a real network of as many parameters, with ridge regression, and with what photographers use: non-local
means, which needs no training and looks for similar patches all over the image.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.restoration import denoise_nl_means
from sklearn.datasets import load_sample_image
from sklearn.linear_model import RidgeCV

from hyperelm import ELMRegressor

SIDE = 6
rng = np.random.default_rng(0)
clean = load_sample_image("china.jpg")[:426, :636] / 127.5 - 1
noisy = clean + 0.4 * rng.standard_normal(clean.shape)


# %%
# Turn an image into rows of 36 pixels with 3 channels each, and back.
def patches(image):
    rows, columns = image.shape[0] // SIDE, image.shape[1] // SIDE
    tiles = image.reshape(rows, SIDE, columns, SIDE, 3).swapaxes(1, 2)
    return tiles.reshape(rows * columns, SIDE * SIDE * 3)


def mosaic(rows, shape):
    tiles = rows.reshape(shape[0] // SIDE, shape[1] // SIDE, SIDE, SIDE, 3)
    return tiles.swapaxes(1, 2).reshape(shape)


def psnr(image, reference):
    return 10 * np.log10(4 / np.mean((np.clip(image, -1, 1) - reference) ** 2))


middle = 318
train, test = (slice(None), slice(0, middle)), (slice(None), slice(middle, None))

# %%
# ``packing="imaginary"`` puts three columns into the imaginary parts of a number. With 200 neurons in four dimensions
# the network has as many parameters as a real one with 267.
models = {
    "klein4": ELMRegressor("klein4", 200, packing="imaginary", random_state=0),
    "quaternions": ELMRegressor("quaternions", 200, packing="imaginary", random_state=0),
    "real": ELMRegressor("real", 267, random_state=0),
    "ridge regression": RidgeCV(np.logspace(-4, 4, 17)),
}
pictures = {"clean": clean[test], f"noisy, {psnr(noisy[test], clean[test]):.1f} dB": noisy[test]}
for name, model in models.items():
    model.fit(patches(noisy[train]), patches(clean[train]))
    restored = mosaic(model.predict(patches(noisy[test])), clean[test].shape)
    quality = psnr(restored, clean[test])
    parameters = getattr(model, "n_parameters_", None) or model.coef_.size + model.intercept_.size
    print(f"{name:16} {parameters:7,} parameters   {quality:.2f} dB")
    pictures[f"{name}, {quality:.1f} dB"] = restored

# %%
# Non-local means knows the noise. Its strength is the best one of four on the half that the networks are trained on.
noise = {"patch_size": 5, "patch_distance": 5, "sigma": 0.4, "channel_axis": -1}
strength = max((0.2, 0.25, 0.3, 0.35), key=lambda h: psnr(denoise_nl_means(noisy[train], h=h, **noise), clean[train]))
restored = denoise_nl_means(noisy[test], h=strength, **noise)
quality = psnr(restored, clean[test])
print(f"{'non-local means':16} {'no':>7} parameters   {quality:.2f} dB")
pictures[f"non-local means, {quality:.1f} dB"] = restored

# %%
figure, axes = plt.subplots(1, len(pictures), figsize=(15, 4.2), layout="constrained")
figure.suptitle("The half of the photograph that was not trained on")
for axis, (title, picture) in zip(axes, pictures.items()):
    axis.imshow(np.clip((picture + 1) / 2, 0, 1))
    axis.set_title(title)
    axis.axis("off")
plt.show()

# %%
# What was learned:
#
# - **Non-local means is the best**, without any training. A photograph has many similar places, and networks on patches
#   of 6 x 6 pixels do not see them.
# - **Ridge regression is better than all networks**, with a fifth of the parameters. To take noise out of small patches
#   is a nearly linear task.
# - The real network is as good as klein4, and quaternions are behind. That three channels are one number does not help
#   here.
