"""Secrets that people and programs show: how they look, and what is kept of them.

Session tokens and API keys are random, and only their hash is stored. One-time tokens are derived from their id with
the installation's secret key, so that the process which sends the mail can make the link and nobody has to store it.
"""

import base64
import hashlib
import hmac
import secrets
from uuid import UUID

SESSION_PREFIX = "vgs_"
API_KEY_PREFIX = "vgk_"
SECRET_BYTES = 32
TOKEN_CHARS_MAX = 100
HINT_CHARS = 8


def new_session_token() -> str:
    return SESSION_PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def new_api_key() -> str:
    return API_KEY_PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def hint(token: str) -> str:
    """The first characters, by which people tell their keys apart."""
    return token[: len(API_KEY_PREFIX) + HINT_CHARS]


class Shown:
    """A token as somebody showed it, with what is kept of such tokens: worked out once for all who show the same."""

    __slots__ = ("_csrf", "digest", "is_cookie", "is_key", "token")

    def __init__(self, token: str, *, is_cookie: bool = False) -> None:
        self.token, self.is_cookie = token, is_cookie
        self.is_key = token.startswith(API_KEY_PREFIX)
        is_ours = len(token) <= TOKEN_CHARS_MAX and (self.is_key or token.startswith(SESSION_PREFIX))
        self.digest = token_hash(token) if is_ours else None
        self._csrf: str | None = None

    @classmethod
    def read(cls, value: bytes, *, is_cookie: bool) -> "Shown | None":
        """A token as it stands in a header; nothing when it is none, or too long to be one of ours."""
        if not 0 < len(value) <= TOKEN_CHARS_MAX:
            return None
        return cls(value.decode("latin-1"), is_cookie=is_cookie)

    @property
    def csrf(self) -> str:
        """What a page must show beside it when it was the browser that sent it."""
        if self._csrf is None:
            self._csrf = csrf_token(self.token)
        return self._csrf


def token_hash(token: str) -> bytes:
    """What is kept. A plain hash will do: the secret has 256 random bits, there is nothing to guess."""
    return hashlib.sha256(token.encode()).digest()


def csrf_token(session_token: str) -> str:
    """What a page must show beside its cookie; only somebody who knows the session's token can make it."""
    return _text(hashlib.sha256(b"csrf\0" + session_token.encode()).digest())


def one_time_token(secret_key: bytes, token_id: UUID) -> str:
    """The secret part of a link sent by mail, with the id in front to find it by."""
    proof = hmac.digest(secret_key, b"one-time\0" + token_id.bytes, "sha256")
    return f"{token_id.hex}.{_text(proof)}"


def one_time_token_id(secret_key: bytes, token: str) -> UUID | None:
    """The id of a genuine one-time token; None for anything else."""
    try:
        token_id = UUID(hex=token.partition(".")[0])
    except ValueError:
        return None
    return token_id if hmac.compare_digest(one_time_token(secret_key, token_id).encode(), token.encode()) else None


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
