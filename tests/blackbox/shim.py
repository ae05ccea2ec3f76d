"""The library that moves PostgreSQL's clock and fills its disk: compiled here, controlled through a mapped file."""

import mmap
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

SOURCE = Path(__file__).with_name("shim.c")
CONTROL_FORMAT = "qq"
CONTROL_ENV = "BLACKBOX_CONTROL"


@dataclass(slots=True)
class Shim:
    """The control file of one data folder. A change takes effect at PostgreSQL's next system call."""

    library: Path
    control_file: Path
    _mapped: mmap.mmap

    @classmethod
    def build(cls, folder: Path) -> Self:
        """Compile the library and create the control file, both readable by PostgreSQL's own user."""
        library, control_file = folder / "shim.so", folder / "shim.control"
        flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        subprocess.run(["gcc", *flags, "-o", library, SOURCE, "-ldl"], check=True)
        library.chmod(0o755)
        control_file.write_bytes(struct.pack(CONTROL_FORMAT, 0, 0))
        control_file.chmod(0o644)
        with control_file.open("r+b") as opened:
            return cls(library, control_file, mmap.mmap(opened.fileno(), 0))

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.library), CONTROL_ENV: str(self.control_file)}

    def set_clock_offset(self, seconds: int) -> None:
        """Let PostgreSQL's clock be this many seconds ahead (or behind)."""
        struct.pack_into("q", self._mapped, 0, seconds)

    def set_disk_full(self, *, is_full: bool) -> None:
        """Let PostgreSQL's disk be full, or not."""
        struct.pack_into("q", self._mapped, 8, is_full)

    def close(self) -> None:
        """Unmap the control file."""
        self._mapped.close()
