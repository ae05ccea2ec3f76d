"""Committed facts on their way to whoever watches."""
