"""Work by the clock: the worker process and its loops."""
