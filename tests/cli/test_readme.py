"""What the README prints is what a reader can do."""

import re
import shlex
from pathlib import Path

from tests.make.processes import environment, voelgoed
from voelgoed import schema
from voelgoed.embedded import Embedded

DATABASE = "voelgoed_as_printed"
README = Path(__file__).parents[2] / "README.md"
PROGRAM = ".venv/bin/voelgoed"
OF_THE_MACHINE = {"doctor", "--help"}  # it would find fault with servers that are made for tests


def printed() -> list[list[str]]:
    """The commands of the section that runs an installation, as they stand there."""
    _, _, section = README.read_text().partition("\n## Run it\n")
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert block is not None
    lines = [shlex.split(line, comments=True) for line in block[1].splitlines()]
    return [args[1:] for args in lines if args[0] == PROGRAM]


async def test_the_commands_of_the_readme_make_an_event_with_its_hall(
    servers: Embedded, redis_url: str, data_dir: Path
) -> None:
    """One after the other, as printed: at the end an event is on sale, with the seats it was given."""
    await schema.create_database(servers.admin_url, DATABASE)
    await schema.migrate(servers.postgres_url(schema.OWNER, DATABASE))
    url = servers.postgres_url(schema.APP, DATABASE)
    env = environment(data_dir, VOELGOED_DATABASE_URL=url, VOELGOED_REDIS_URL=redis_url)
    said = {}
    for args in printed():
        if args[0] in OF_THE_MACHINE:
            continue
        done = voelgoed(*args, env=env)
        assert done.returncode == 0, (args, done.stderr)
        said[" ".join(args[:2])] = done.stdout
    assert "350 places: 350 reserved" in said["seating show"]
    assert "published" in said["event publish"]
