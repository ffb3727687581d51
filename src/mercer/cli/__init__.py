"""The command line: `mercer demo`, `mercer fit` and `mercer predict`."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the `mercer` command with the arguments of this process and give its exit code.

    0 is success, 1 a job that failed, 2 wrong usage, 130 an interrupt, 141 a reader that has gone.
    """
    try:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a column name may not fit the terminal's encoding
        try:
            import rich  # noqa: F401
            import typer  # noqa: F401
        except ImportError as error:
            print(f'The mercer command needs {error.name}: pip install "mercer[cli]"', file=sys.stderr)
            return 2
        from mercer.cli.app import app

        app(prog_name="mercer")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt:
        return 130
    return 0
