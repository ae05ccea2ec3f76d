"""The crowd's process in the tree of a demonstration."""

from voelgoed.demo.crowd import run
from voelgoed.wiring import run_child

run_child("crowd", run)
