"""Lock every dependency with its hash into requirements/*.txt. No file names a registry."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UV = ROOT / ".venv" / "bin" / "uv"

FILES = {
    "run.txt": ["pyproject.toml", "--extra", "embedded"],
    "build.txt": ["--group", "build"],
    "web.txt": ["--group", "web"],
    "dev.txt": ["pyproject.toml", "--extra", "embedded", "--group", "dev", "--group", "build", "--group", "web"],
}


def main() -> None:
    """Compile each file; the development set takes the versions of the running set."""
    for name, chosen in FILES.items():
        fixed = ["-c", "requirements/run.txt"] if name == "dev.txt" else []
        compiled = ["pip", "compile", "--quiet", "--generate-hashes", "--universal", "--python-version", "3.11"]
        written = ["--custom-compile-command", "make lock", "-o", f"requirements/{name}"]
        subprocess.run([str(UV), *compiled, *written, *chosen, *fixed], cwd=ROOT, check=True)
        print(f"requirements/{name}")


if __name__ == "__main__":
    main()
