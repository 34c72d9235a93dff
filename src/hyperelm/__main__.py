"""The `hyperelm` command, with one clear line where its extra is missing."""

import sys


def main() -> None:
    try:
        from hyperelm.cli import app
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "hyperelm":
            raise
        sys.exit(f"The command line needs the package {error.name!r}: pip install 'hyperelm[cli]'")
    app()


if __name__ == "__main__":
    main()
