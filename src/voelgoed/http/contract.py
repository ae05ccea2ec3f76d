"""The HTTP contract as a document; `python -m voelgoed.http.contract` prints it."""

import json

from voelgoed.http.app import declare


def document() -> str:
    """OpenAPI 3.1, in an order that does not change between runs."""
    return json.dumps(declare().openapi(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(document(), end="")
