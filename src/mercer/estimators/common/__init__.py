"""What all estimators share: checks of what users pass in, scores, warnings, files."""
