"""A web process of the tree."""

from voelgoed.http.server import run
from voelgoed.wiring import run_child

run_child("web", run)
