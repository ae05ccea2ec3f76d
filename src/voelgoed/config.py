"""Every setting of an installation, read once from the environment (`VOELGOED_...`) and never changed."""

import ipaddress
import os
import socket
from importlib.metadata import version
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, parse_qsl, urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from voelgoed.errors import StartRefused

VERSION = version("voelgoed")
ENV_PREFIX = "VOELGOED_"
ROOT_UID = 0
PORT_MAX = 65_535
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
SESSION_KINDS = ("any", "primary", "standby", "prefer-standby", "read-only", "read-write")
REDIS_OPTIONS = ("db", "protocol", "client_name", "username", "password")
TLS_OPTIONS = ("ssl_cert_reqs", "ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile", "ssl_check_hostname")


def default_data_dir() -> Path:
    """Where the embedded servers keep their files.

    Not below root's home: the servers drop to an ordinary user, who may not enter it.
    """
    if os.geteuid() == ROOT_UID:
        return Path("/var/lib/voelgoed")
    if named := os.environ.get("XDG_DATA_HOME"):
        return Path(named) / "voelgoed"
    try:
        return Path.home() / ".local" / "share" / "voelgoed"
    except RuntimeError:
        raise StartRefused(
            f"the user {os.geteuid()} has no home folder to keep data in", hint="set VOELGOED_DATA_DIR or HOME"
        ) from None


class Settings(BaseSettings):
    """What an operator may choose. Unset URLs mean: start the embedded server."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, env_ignore_empty=True, frozen=True, extra="forbid")

    database_url: SecretStr | None = None
    owner_database_url: SecretStr | None = None
    jobs_database_url: SecretStr | None = None
    """A direct connection for the job queue where `database_url` goes through a pooler."""
    redis_url: SecretStr | None = None
    data_dir: Path = Field(default_factory=default_data_dir)
    pg_config: Path | None = None
    """Take the embedded PostgreSQL's programs from this `pg_config` instead of from the wheel."""

    host: str = "127.0.0.1"
    port: int = Field(default=8600, ge=0, le=65535)
    workers: int = Field(default=1, ge=1, le=64)
    public_url: str | None = None
    trusted_proxies: int = Field(default=0, ge=0, le=8)
    """How many proxies in front append to X-Forwarded-For: as many of its last entries are believed.

    Must be chosen where `public_url` is https, for then something is in front. 0 is right if that hands on the clients'
    own addresses, as a load balancer at the level of TCP may.
    """
    cors_origins: tuple[str, ...] = ()
    """Other sites whose pages may call the API, as a JSON list; exact origins, never a wildcard."""
    secret_key_file: Path | None = None
    """32 random bytes or more; made in the data folder when unset. Several machines need the same one."""
    mail: Literal["console"] = "console"
    session_idle_s: float = Field(default=1800.0, gt=0, le=86_400)
    session_trust_s: float = Field(default=30.0, ge=0, le=300)
    """How long a process believes what it knows of a session; a revocation is also sent round."""
    guests_per_ip_per_minute: int = Field(default=60, ge=0, le=10_000)
    """New guests and accounts from one IPv4 address or IPv6 /56. 0 is any number."""
    streams_per_ip: int = Field(default=500, ge=0, le=100_000)
    """Live maps from one network (IPv4 /24, IPv6 /56) in one process; a whole venue may share it. 0 is any number."""
    passwords_waiting: int = Field(default=64, ge=1, le=10_000)
    """Passwords waiting to be hashed in one process: sign-ins, registrations, changes and resets. More get 503."""
    passwords_waiting_per_network: int = Field(default=16, ge=1, le=10_000)
    """The same from one network (IPv4 /24, IPv6 /56). More get 429."""
    metrics_token: SecretStr | None = None
    """What a scraper from elsewhere shows as bearer; without it /metrics answers this machine only."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "json", "console"] = "auto"

    pool_size: int = Field(default=10, ge=1, le=200)
    """Connections per process for everything but the lanes."""
    acquire_timeout_s: float = Field(default=3.0, gt=0, le=60)
    command_timeout_s: float = Field(default=10.0, gt=0, le=300)
    redis_connect_timeout_s: float = Field(default=0.1, gt=0, le=5)
    redis_call_timeout_s: float = Field(default=0.15, gt=0, le=5)
    redis_probe_s: float = Field(default=30.0, gt=0, le=600)
    """How often a Redis that was given up is tried again."""
    hot_map_mb: int = Field(default=256, ge=1, le=65_536)
    """How much memory the places of events may take in each process."""
    stop_grace_s: float = Field(default=5.0, gt=0, le=60)
    """How long a stopping process may finish requests that are under way."""

    unsafe_database: bool = False
    """Accept `fsync=off` and asynchronous commit. For tests only: a crash then loses acknowledged holds."""

    @field_validator("database_url", "owner_database_url", "jobs_database_url")
    @classmethod
    def _is_postgresql(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            return None
        parts = _split(value)
        if parts.scheme not in ("postgresql", "postgres"):
            raise ValueError("must start with postgresql://")
        for address in _addresses(parts).split(","):  # several servers may be named, the driver finds the right one
            _check_port(address)
        for name, chosen in parse_qsl(parts.query):
            known = {"sslmode": SSL_MODES, "target_session_attrs": SESSION_KINDS}.get(name)
            if known and chosen not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}")
            if name == "port" and not all(_is_port(one) for one in chosen.split(",")):
                raise ValueError("the port is not a number up to 65535")
        return value

    @field_validator("redis_url")
    @classmethod
    def _is_redis(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            return None
        parts = _split(value)
        if parts.scheme not in ("redis", "rediss", "unix"):
            raise ValueError("must start with redis://, rediss:// or unix://")
        if parts.scheme == "unix" and not parts.path.strip("/"):
            raise ValueError("must name the socket's file, as in unix:///run/valkey.sock")
        if parts.scheme != "unix":
            _check_port(_addresses(parts))
            if parts.path.strip("/") and not parts.path.strip("/").isdecimal():
                raise ValueError("the database after the / must be a number")
        allowed = (*REDIS_OPTIONS, *(TLS_OPTIONS if parts.scheme == "rediss" else ()))
        for name, chosen in parse_qsl(parts.query):
            if name not in allowed:
                raise ValueError(f"unknown option after the ?; the known ones are {', '.join(allowed)}")
            if name in ("db", "protocol") and not chosen.isdecimal():
                raise ValueError(f"{name} must be a number")
        return value

    @field_validator("host")
    @classmethod
    def _is_address(cls, value: str) -> str:
        """Turn a name into its address, IPv4 where there is one: the web server and the port's guard take addresses."""
        bare = value.removeprefix("[").removesuffix("]")
        try:
            return str(ipaddress.ip_address(bare))
        except ValueError:
            pass
        try:
            found = socket.getaddrinfo(bare, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise ValueError(f"{value} is neither an address nor a name that has one") from None
        return str(min(found, key=lambda one: one[0] != socket.AF_INET)[4][0])

    @field_validator("cors_origins")
    @classmethod
    def _are_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for origin in value:
            parts = urlsplit(origin)
            is_plain = f"{parts.scheme}://{parts.netloc}" == origin and parts.netloc
            if parts.scheme not in ("http", "https") or not is_plain:
                raise ValueError(f"{origin} is not an origin such as https://tickets.example")
        return value

    @model_validator(mode="after")
    def _owner_needs_app(self) -> "Settings":
        if self.owner_database_url and not self.database_url:
            raise ValueError("OWNER_DATABASE_URL is set but DATABASE_URL is not: set both, or neither")
        return self

    @model_validator(mode="after")
    def _https_needs_proxies_counted(self) -> "Settings":
        """Without the number every visitor has the proxy's address, and all of them share its limits."""
        if self.is_https and "trusted_proxies" not in self.model_fields_set:
            raise ValueError(
                "VOELGOED_PUBLIC_URL is https, so a proxy is in front, but VOELGOED_TRUSTED_PROXIES is not set: "
                "set it to the number of proxies that append to X-Forwarded-For, or to 0 if none does"
            )
        return self

    @property
    def is_https(self) -> bool:
        """Whether people reach it over TLS, which a proxy in front speaks."""
        return self.address.startswith("https://")

    @property
    def address(self) -> str:
        """The URL people open."""
        if self.public_url:
            return self.public_url.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def load(**over: object) -> Settings:
    """Read the settings; wrong ones are refused in plain words, all at once.

    Unknown `VOELGOED_` names are refused as well: a misspelt limit must not be silently ignored.
    """
    known = {f"{ENV_PREFIX}{name.upper()}" for name in Settings.model_fields}
    unknown = sorted(name for name in os.environ if name.startswith(ENV_PREFIX) and name not in known | INTERNAL_NAMES)
    if unknown:
        raise StartRefused(
            f"unknown setting{'s' if len(unknown) > 1 else ''}: {', '.join(unknown)}",
            hint=f"the known ones are: {', '.join(sorted(known))}",
        )
    try:
        return Settings(**over)  # type: ignore[arg-type]  # checked by pydantic, that is what it is for
    except SettingsError as wrong:  # a list that is not JSON
        raise StartRefused(f"the settings are wrong: {wrong}", hint='lists are JSON, such as ["a", "b"]') from None
    except ValidationError as wrong:
        lines = [
            f"{ENV_PREFIX}{'_'.join(map(str, e['loc'])).upper()}: {e['msg']}" if e["loc"] else e["msg"]
            for e in wrong.errors(include_url=False, include_input=False)
        ]
        raise StartRefused("the settings are wrong:\n  " + "\n  ".join(lines)) from None


def _split(value: SecretStr) -> SplitResult:
    """Take a URL apart. What is wrong with it is said without quoting it: there may be a password anywhere in it."""
    try:
        return urlsplit(value.get_secret_value())
    except ValueError:
        raise ValueError("is not a URL") from None


def _addresses(parts: SplitResult) -> str:
    """What stands between the login and the path."""
    return parts.netloc.rpartition("@")[2]


def _check_port(address: str) -> None:
    """Refuse `host:abc`. An IPv6 address stands in brackets, so what follows them is the port."""
    after = address.rpartition("]")[2].partition(":") if "]" in address else address.partition(":")
    if after[1] and not _is_port(after[2]):
        raise ValueError("the port is not a number up to 65535; a / or @ in a password is written %2F or %40")


def _is_port(text: str) -> bool:
    return text.isdecimal() and int(text) <= PORT_MAX


INTERNAL_NAMES = frozenset(
    {
        "VOELGOED_LIFELINE",
        "VOELGOED_DEMO_CONTROL",
        "VOELGOED_CHROMIUM",
        "VOELGOED_TEST_DIR",
        "VOELGOED_THIS_PYTHON",
    }
)
"""Names that are not settings: the lines between parent and child, and what setup and the tests use."""
