"""Theory that runs."""
