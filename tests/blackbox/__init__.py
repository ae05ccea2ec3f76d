"""A black-box fault checker: drives the product over HTTP, breaks it, and checks every answer it gave.

Nothing in this folder imports the product. It starts `voelgoed serve`, keeps its own history of calls, and compares
that history with what the API, the seat map and PostgreSQL say.
"""
