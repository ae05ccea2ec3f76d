"""The worker process of the tree."""

from voelgoed.jobs.worker import run
from voelgoed.wiring import run_child

run_child("worker", run)
