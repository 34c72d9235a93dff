"""Print constraints that pin every declared dependency to the lowest version that pyproject.toml allows.

Where an extra asks for a later version than the library, it is that one.
"""

import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = project["optional-dependencies"]
lowest = {}
for requirement in sum((extras[name] for name in ("cli", "data", "dask", "onnx", "test")), project["dependencies"]):
    match = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)", requirement)
    if match:
        lowest[match[1]] = f"=={match[2]}" if match[2].count(".") > 1 else f"~={match[2]}.0"
for name, version in lowest.items():
    print(f"{name}{version}")
