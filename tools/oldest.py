"""Print constraints that pin every declared dependency to the lowest version that pyproject.toml allows."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = project["optional-dependencies"]
for requirement in sum((extras[name] for name in ("cli", "data", "dask", "onnx", "test")), project["dependencies"]):
    match = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)", requirement)
    if match:
        print(f"{match[1]}=={match[2]}" if match[2].count(".") > 1 else f"{match[1]}~={match[2]}.0")
