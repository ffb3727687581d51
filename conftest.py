"""What pytest leaves out on machines that cannot import it."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("triton") else ["src/mercer/operators/backends/fused/*"]
