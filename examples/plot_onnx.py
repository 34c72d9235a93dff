"""
A model that runs without hyperelm
==================================

A classifier is trained in Python and has to run elsewhere: in a browser, on a telephone, or in a service written in
another language. An ONNX file holds the computation of a prediction, which is two real matrix products with the
activation in between, for every algebra. Any ONNX runtime can run it.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from hyperelm import ELMClassifier, to_onnx

images, labels = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(images / 8 - 1, labels, test_size=0.3, random_state=0)
model = ELMClassifier("quaternions", n_hidden=150, random_state=0).fit(X, y)
print(f"accuracy {model.score(X_test, y_test):.3f} with {model.n_parameters_:,} parameters over {model.algebra_.name}")

# %%
# One call makes the graph, which is written to one file. Its metadata name the algebra.
with TemporaryDirectory() as folder:
    path = Path(folder, "digits.onnx")
    path.write_bytes(to_onnx(model).SerializeToString())
    print(f"{path.name}: {path.stat().st_size / 1024:.0f} KB")
    session = onnxruntime.InferenceSession(path)
print("steps:", ", ".join(node.op_type for node in to_onnx(model).graph.node))
print("metadata:", session.get_modelmeta().custom_metadata_map)

# %%
# The runtime gives the same answers, up to single precision.
found, probabilities = session.run(["label", "probabilities"], {"X": X_test.astype(np.float32)})
ours = model.predict_proba(X_test)
print(f"labels that agree: {np.mean(found == model.predict(X_test)):.1%} of {len(found)}")
print(f"probabilities differ by at most {np.abs(probabilities - ours).max():.1e}")

# %%
# The figure shows the digits that the exported model is least sure of, with its two best guesses.
figure, axes = plt.subplots(2, 6, figsize=(10, 4.2), layout="constrained")
figure.suptitle("The digits that the exported model is least sure of")
unsure = np.argsort(probabilities.max(axis=1))[: axes.size]
for axis, n in zip(axes.flat, unsure):
    first, second = np.argsort(probabilities[n])[::-1][:2]
    axis.imshow(X_test[n].reshape(8, 8), cmap="gray_r")
    colour = "tab:green" if found[n] == y_test[n] else "tab:red"
    axis.set_title(
        f"{first} ({probabilities[n, first]:.0%}) or {second} ({probabilities[n, second]:.0%})",
        color=colour,
        fontsize=10,
    )
    axis.set_axis_off()
plt.show()
