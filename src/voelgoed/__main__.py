"""`python -m voelgoed` is the command `voelgoed`."""

from voelgoed.cli.main import main

main()
