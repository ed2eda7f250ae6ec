"""``python -m bench.gpu [--checks]``: what needs a GPU; see the package."""

import argparse


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__)
    parser.add_argument("--checks", action="store_true", help="whether results are right")
    if parser.parse_args().checks:
        from .checks import run_checks

        run_checks()
    else:
        from .speeds import run_speeds

        run_speeds()


if __name__ == "__main__":
    main()
