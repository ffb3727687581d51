"""Rows from anywhere, samples made of them, and the engines that work on them."""
