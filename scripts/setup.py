"""Make everything the project needs, from a plain Python: environment, packages, web bundle, test programs.

    python3 scripts/setup.py run     what `make demo` and `make serve` need
    python3 scripts/setup.py dev     and what `make check` and `make test` need

Each step is keyed by what it is made from, so a second run does nothing. Only the standard library is used.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
STAMPS = VENV / ".stamps"
WEB = ROOT / "web"
BUNDLE = ROOT / "src" / "voelgoed" / "http" / "dist" / "index.html"
REQUIREMENTS = ROOT / "requirements"
OLDEST_PYTHON = (3, 11)
CHOSEN = "VOELGOED_THIS_PYTHON"
SYSTEM_PYTHON = Path("/usr/bin/python3")
OLDEST_NODE = (22, 12)
WHOLE_CHROMIUM = Path(shutil.which("chromium") or "/usr/bin/chromium")
C_COMPILER = Path(shutil.which("cc") or "/usr/bin/cc")
POSTGRES_15 = Path("/usr/lib/postgresql/15/bin/postgres")
NO_CLUSTER = Path("/etc/postgresql-common/createcluster.conf")


def main() -> None:
    """Run the steps of the asked level that have something to do."""
    level = sys.argv[1] if len(sys.argv) > 1 else "dev"
    if level not in ("run", "dev"):
        sys.exit(__doc__)
    if sys.version_info < OLDEST_PYTHON:
        sys.exit(f"Python {'.'.join(map(str, OLDEST_PYTHON))} or newer is needed; this is {sys.version.split()[0]}.")
    if CHOSEN not in os.environ and not is_built_for_speed() and (quicker := quicker_python()):
        os.environ[CHOSEN] = "1"  # once is enough, whatever that one is
        os.execv(quicker, [quicker, *sys.argv])  # noqa: S606 - this very program, run by another Python
    is_dev = level == "dev"
    step("environment", [REQUIREMENTS / "build.txt"], make_environment, made=VENV / "bin" / "python")
    wanted = REQUIREMENTS / ("dev.txt" if is_dev else "run.txt")
    # A developer's environment holds all that running needs: `make demo` must not take it apart again.
    if is_dev or not is_fresh("python packages (dev)", [REQUIREMENTS / "dev.txt"]):
        step(f"python packages ({level})", [wanted], lambda: uv("install", "--require-hashes", "-r", wanted))
    step(
        "the project itself",
        [ROOT / "pyproject.toml"],
        lambda: uv("install", "--no-deps", "--no-build-isolation", "-e", "."),
    )
    if not node_is_new_enough():
        step(
            "node",
            [REQUIREMENTS / "web.txt"],
            lambda: uv("install", "--require-hashes", "-r", REQUIREMENTS / "web.txt"),
        )
    lock = [WEB / "package-lock.json", WEB / "package.json"]
    step("web packages", lock, lambda: npm("ci", "--no-audit", "--no-fund"), made=WEB / "node_modules")
    step("web bundle", [*lock, *web_sources()], lambda: npm("run", "build"), made=BUNDLE)
    if is_dev:
        step("chromium", [], lambda: apt("chromium-headless-shell"), made=chromium())
        # The shell starts in a fraction of the time, but keeps no page for whoever goes back; one test needs that.
        step("chromium, all of it", [], lambda: apt("chromium"), made=WHOLE_CHROMIUM)
        step("wrk, for benchmarks", [], lambda: apt("wrk"), made=Path(shutil.which("wrk") or "/usr/bin/wrk"))
        step("C compiler, for tests with a full disk", [], lambda: apt("build-essential"), made=C_COMPILER)
        step("font for pictures", [], lambda: apt("fonts-inter"), made=Path("/usr/share/fonts/opentype/inter"))
        step("postgresql 15", [], install_postgres_15, made=POSTGRES_15)


def is_built_for_speed() -> bool:
    """Whether this Python was optimised with a profile: distributions do that, who compiles it must ask for it.

    A sale takes a sixth less of the web process on one that was (docs/performance.md, "What was tried").
    """
    asked_for = sysconfig.get_config_var("CONFIG_ARGS") or ""
    return sys.base_prefix == SYSTEM_PYTHON.parents[1].as_posix() or "--enable-optimizations" in asked_for


def quicker_python() -> str | None:
    """The system's own Python, where it is of the same version, and can make environments."""
    if not SYSTEM_PYTHON.exists():
        return None
    is_own = f"sys.base_prefix == {SYSTEM_PYTHON.parents[1].as_posix()!r}"
    can = f"import ensurepip, sys, venv; sys.exit(not ({is_own} and sys.version_info[:2] == {sys.version_info[:2]}))"
    done = subprocess.run([SYSTEM_PYTHON, "-c", can], capture_output=True, check=False)
    return None if done.returncode else str(SYSTEM_PYTHON)


def step(name: str, sources: Iterable[Path], work: Callable[[], None], *, made: Path | None = None) -> None:
    """Do the work unless its sources are as they were and what it makes is there; say how long it took."""
    sources = list(sources)
    if is_fresh(name, sources) and (made is None or made.exists()):
        return
    print(f"  {name} ...", end="", flush=True)
    started = time.monotonic()
    work()
    stamp = stamp_of(name)
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(fingerprint(sources))
    print(f"\r  {name}: {time.monotonic() - started:.1f} s", flush=True)


def is_fresh(name: str, sources: Iterable[Path]) -> bool:
    """Whether the step ran with exactly these sources."""
    stamp = stamp_of(name)
    return stamp.exists() and stamp.read_text() == fingerprint(sources)


def stamp_of(name: str) -> Path:
    return STAMPS / re.sub(r"\W+", "-", name)


def fingerprint(sources: Iterable[Path]) -> str:
    """A hash over names and contents, and over the Python that made the environment."""
    seen = hashlib.sha256(sys.version.encode())
    for path in sorted(sources):
        seen.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return seen.hexdigest()


def make_environment() -> None:
    """The virtual environment, with uv in it unless the machine has one."""
    try:
        run(sys.executable, "-m", "venv", "--clear", VENV)
    except SystemExit:
        sys.exit("The virtual environment could not be made. On Debian: apt-get install python3-venv")
    build = REQUIREMENTS / "build.txt"
    if shutil.which("uv"):
        uv("install", "--require-hashes", "-r", build)
    else:
        run(VENV / "bin" / "python", "-m", "pip", "install", "--quiet", "--require-hashes", "-r", build)


def uv(command: str, *args: str | Path) -> None:
    program = VENV / "bin" / "uv"
    program = program if program.exists() else Path(shutil.which("uv") or program)
    # Compiled now, once: every process of the project would do it again where Python may not write beside the sources.
    quiet = ("--quiet", "--compile-bytecode")
    run(program, "pip", command, *quiet, "--python", VENV / "bin" / "python", *args)


def npm(*args: str) -> None:
    """The npm of the environment where it has one, else the machine's."""
    path = os.pathsep.join([str(VENV / "bin"), os.environ.get("PATH", "")])
    run("npm", *args, cwd=WEB, env={**os.environ, "PATH": path})


def node_is_new_enough() -> bool:
    """Whether Node and its npm are here and new enough to build the bundle; those of the environment come first."""
    program = VENV / "bin" / "node"
    found = str(program) if program.exists() else shutil.which("node")
    if not found or not ((VENV / "bin" / "npm").exists() or shutil.which("npm")):
        return False
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    number = re.match(r"v(\d+)\.(\d+)", said)
    return number is not None and (int(number[1]), int(number[2])) >= OLDEST_NODE


def web_sources() -> list[Path]:
    """Everything the bundle is made from."""
    folders = [path for folder in ("src", "public") for path in (WEB / folder).rglob("*") if path.is_file()]
    return [*folders, *WEB.glob("*.ts"), *WEB.glob("*.html"), *WEB.glob("*.json")]


def chromium() -> Path:
    named = os.environ.get("VOELGOED_CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    return Path(named) if named else Path("/usr/bin/chromium-headless-shell")


def install_postgres_15() -> None:
    """The oldest PostgreSQL we support, for one leg of the tests; without the server Debian would start with it."""
    forbid = os.geteuid() == 0 and shutil.which("apt-get") is not None and not NO_CLUSTER.exists()
    if forbid:
        NO_CLUSTER.parent.mkdir(parents=True, exist_ok=True)
        NO_CLUSTER.write_text("create_main_cluster = false\n")
    try:
        apt("postgresql-15")
    finally:
        if forbid:  # the machine is not ours: what its owner installs next shall behave as he knows it
            NO_CLUSTER.unlink(missing_ok=True)


def apt(package: str) -> None:
    """Install Debian's package where we may; elsewhere the test that needs it fails and says so."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        print(f" not installed: install {package} yourself, the tests need it", end="")
        return
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run("apt-get", "update", "-qq", env=quiet)
    run("apt-get", "install", "-y", "-qq", "--no-install-recommends", package, env=quiet)


def run(*argv: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    """Run a program quietly; when it fails, show what it said and stop."""
    done = subprocess.run(
        [str(arg) for arg in argv],
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        said = "\n".join(done.stdout.splitlines()[-30:])
        sys.exit(f"\n{said}\n{' '.join(map(str, argv))} failed with {done.returncode}")


if __name__ == "__main__":
    main()
