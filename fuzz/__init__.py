"""Random fits and mutated model files: every outcome must be right, or an error or a warning of mercer's own."""
