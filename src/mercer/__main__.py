"""`python -m mercer` is the `mercer` command."""

import sys

from mercer.cli import main

if __name__ == "__main__":
    sys.exit(main())
