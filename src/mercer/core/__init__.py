"""Errors, array conversion, memory and device choice, persistence: what every other layer stands on."""
