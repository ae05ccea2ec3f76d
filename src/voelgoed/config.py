"""Every setting of an installation, read once from the environment (`VOELGOED_...`) and never changed."""

import os
from importlib.metadata import version
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from voelgoed.errors import StartRefused

VERSION = version("voelgoed")
ENV_PREFIX = "VOELGOED_"
ROOT_UID = 0


def default_data_dir() -> Path:
    """Where the embedded servers keep their files.

    Not below root's home: the servers drop to an ordinary user, who may not enter it.
    """
    if os.geteuid() == ROOT_UID:
        return Path("/var/lib/voelgoed")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "voelgoed"


class Settings(BaseSettings):
    """What an operator may choose. Unset URLs mean: start the embedded server."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, env_ignore_empty=True, frozen=True, extra="forbid")

    database_url: SecretStr | None = None
    owner_database_url: SecretStr | None = None
    redis_url: SecretStr | None = None
    data_dir: Path = Field(default_factory=default_data_dir)
    pg_config: Path | None = None
    """Take the embedded PostgreSQL's programs from this `pg_config` instead of from the wheel."""

    host: str = "127.0.0.1"
    port: int = Field(default=8600, ge=0, le=65535)
    workers: int = Field(default=1, ge=1, le=64)
    public_url: str | None = None
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "json", "console"] = "auto"

    pool_size: int = Field(default=10, ge=1, le=200)
    """Connections per process for everything but the lanes."""
    acquire_timeout_s: float = Field(default=3.0, gt=0, le=60)
    command_timeout_s: float = Field(default=10.0, gt=0, le=300)
    redis_connect_timeout_s: float = Field(default=0.1, gt=0, le=5)
    redis_call_timeout_s: float = Field(default=0.15, gt=0, le=5)
    stop_grace_s: float = Field(default=5.0, gt=0, le=60)
    """How long a stopping process may finish requests that are under way."""

    unsafe_database: bool = False
    """Accept `fsync=off` and asynchronous commit. For tests only: a crash then loses acknowledged holds."""

    @field_validator("database_url", "owner_database_url")
    @classmethod
    def _is_postgresql(cls, value: SecretStr | None) -> SecretStr | None:
        if value and urlsplit(value.get_secret_value()).scheme not in ("postgresql", "postgres"):
            raise ValueError("must start with postgresql://")
        return value

    @field_validator("redis_url")
    @classmethod
    def _is_redis(cls, value: SecretStr | None) -> SecretStr | None:
        if value and urlsplit(value.get_secret_value()).scheme not in ("redis", "rediss", "unix"):
            raise ValueError("must start with redis://, rediss:// or unix://")
        return value

    @model_validator(mode="after")
    def _owner_needs_app(self) -> "Settings":
        if self.owner_database_url and not self.database_url:
            raise ValueError("OWNER_DATABASE_URL is set but DATABASE_URL is not: set both, or neither")
        return self

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
    except ValidationError as wrong:
        lines = [
            f"{ENV_PREFIX}{'_'.join(map(str, e['loc'])).upper()}: {e['msg']}" if e["loc"] else e["msg"]
            for e in wrong.errors(include_url=False, include_input=False)
        ]
        raise StartRefused("the settings are wrong:\n  " + "\n  ".join(lines)) from None


INTERNAL_NAMES = frozenset({"VOELGOED_LIFELINE", "VOELGOED_CHROMIUM", "VOELGOED_TEST_DIR"})
"""Names that are not settings: the pipe between parent and child, and what the tests use."""
