"""Coming in and going out. `guest` is a hot route: when a sale opens, everybody comes at once."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from fastapi import APIRouter, Header, Response
from pydantic import Field

from voelgoed.accounts import signing
from voelgoed.accounts.attempts import RateLimited
from voelgoed.accounts.model import Role
from voelgoed.accounts.permissions import Action
from voelgoed.accounts.refusals import EmailTaken
from voelgoed.accounts.signing import (
    CredentialsWrong,
    OrganizationNotFound,
    OrganizationSuspended,
    PasswordRefused,
    SignedIn,
    TokenInvalid,
)
from voelgoed.holds import handover
from voelgoed.http.context import Caller, Context
from voelgoed.http.edge import Whole, session_cookie_name
from voelgoed.http.guard import guarded
from voelgoed.http.problems import RequestInvalid
from voelgoed.http.shapes import SLUG, Body, Data, Email, Name, Password, Slug, View

router = APIRouter(prefix="/api/auth", tags=["auth"])

Locale = Literal["en", "af"]
SessionHeader = Annotated[
    Literal["cookie"] | None, Header(alias="X-Session", description="`cookie`: also set the session as a cookie")
]


class LoginBody(Body):
    """Who signs in, and where."""

    organization: Slug
    email: Email
    password: Password


class RegisterBody(LoginBody):
    """Who registers, and where."""

    name: Name
    locale: Locale = "en"


class ResetBody(Body):
    """Who wants a new password, and where."""

    organization: Slug
    email: Email


class NewPasswordBody(Body):
    """The secret from the mail, and the new password."""

    token: Annotated[str, Field(min_length=1, max_length=200)]
    password: Password


class SessionUser(View):
    """The person, as a session sees them."""

    id: UUID
    name: str
    role: Role
    is_guest: bool


class SessionOrganization(View):
    """Where the session is."""

    id: UUID
    slug: str
    name: str


class SessionView(View):
    """A new session. `csrf_token` goes with the cookie on every change."""

    token: str
    csrf_token: str
    expires_at: datetime
    user: SessionUser
    organization: SessionOrganization


class BasketView(View):
    """What became of the places that were held as a guest: still held, or let go because this account may not."""

    kept: int
    released: int


class SignedInView(SessionView):
    """A new session, and what came along from the guest's."""

    basket: BasketView


def session_view(signed_in: SignedIn) -> SessionView:
    user = signed_in.user
    return SessionView(
        token=signed_in.token,
        csrf_token=signed_in.csrf_token,
        expires_at=signed_in.expires_at,
        user=SessionUser(id=user.id, name=user.name, role=signed_in.role, is_guest=user.is_guest),
        organization=SessionOrganization.model_validate(signed_in.organization),
    )


def session_cookie(context: Context, token: str) -> str:
    """HttpOnly: no script can read it. Lax: other sites' requests do not carry it, links do."""
    is_https = context.services.settings.is_https
    secure = "; Secure" if is_https else ""
    return f"{session_cookie_name(is_https=is_https)}={token}; Path=/; HttpOnly; SameSite=Lax{secure}"


def _answer(signed_in: SignedIn, caller: Context, response: Response, *, by_cookie: bool) -> Data[SessionView]:
    if by_cookie:
        response.headers["set-cookie"] = session_cookie(caller, signed_in.token)
    return Data(data=session_view(signed_in))


@router.post("/login", status_code=201)
@guarded(Action.SIGN_IN, CredentialsWrong, OrganizationNotFound, OrganizationSuspended, RateLimited)
async def login(
    body: LoginBody, caller: Caller, response: Response, x_session: SessionHeader = None
) -> Data[SignedInView]:
    """Sign in with e-mail address and password; a guest who does this keeps what they hold, as far as they may."""
    signed_in, basket = await handover.sign_in(
        caller.services.door,
        caller.services.lanes,
        caller.call,
        organization=body.organization,
        email=body.email,
        password=body.password,
    )
    session = _answer(signed_in, caller, response, by_cookie=x_session is not None).data
    return Data(data=SignedInView(**dict(session), basket=BasketView.model_validate(basket)))


@router.post("/register", status_code=201)
@guarded(Action.SIGN_IN, EmailTaken, PasswordRefused, OrganizationNotFound, OrganizationSuspended, RateLimited)
async def register(
    body: RegisterBody, caller: Caller, response: Response, x_session: SessionHeader = None
) -> Data[SessionView]:
    """Make an account and sign in; a guest who does this keeps what they hold."""
    signed_in = await signing.register(
        caller.services.door,
        caller.call,
        organization=body.organization,
        email=body.email,
        password=body.password,
        name=body.name,
        locale=body.locale,
    )
    return _answer(signed_in, caller, response, by_cookie=x_session is not None)


@router.post("/logout", status_code=204)
@guarded(Action.SIGN_OUT)
async def logout(caller: Caller, response: Response) -> None:
    """End this session."""
    await signing.logout(caller.services.door, caller.call)
    response.headers["set-cookie"] = f"{session_cookie(caller, '')}; Max-Age=0"


@router.post("/password-reset", status_code=202)
@guarded(Action.SIGN_IN, OrganizationNotFound, OrganizationSuspended, RateLimited)
async def request_password_reset(body: ResetBody, caller: Caller) -> Data[str]:
    """Ask for a mail with a link to a new password; the answer never says whether there is such a person."""
    await signing.request_password_reset(
        caller.services.door, caller.call, organization=body.organization, email=body.email
    )
    return Data(data="If there is such an account, a mail is on its way.")


@router.post("/password-reset/confirm", status_code=204)
@guarded(Action.SIGN_IN, TokenInvalid, PasswordRefused)
async def reset_password(body: NewPasswordBody, caller: Caller) -> None:
    """Choose a new password with the secret from the mail; every session of the person ends."""
    await signing.reset_password(caller.services.door, caller.call, token=body.token, password=body.password)


class GuestAsk(msgspec.Struct, forbid_unknown_fields=True):
    """Where the guest comes in."""

    organization: Annotated[str, msgspec.Meta(min_length=1, max_length=63, pattern=SLUG)]
    locale: Locale = "en"


_decode_guest = msgspec.json.Decoder(GuestAsk)


@guarded(Action.SIGN_IN, OrganizationNotFound, OrganizationSuspended, RateLimited)
async def guest(context: Context) -> Whole:
    """Continue without saying who you are: a session that can hold seats."""
    wanted = context.headers.get(b"x-session")
    if wanted not in (None, b"cookie"):
        raise RequestInvalid(path="X-Session")
    if not context.headers.get(b"content-type", b"").startswith(b"application/json"):
        raise RequestInvalid(path="Content-Type")
    ask = _decode_guest.decode(context.body)
    signed_in = await signing.continue_as_guest(
        context.services.door, context.call, organization=ask.organization, locale=ask.locale
    )
    user, place = signed_in.user, signed_in.organization
    body = {
        "data": {
            "token": signed_in.token,
            "csrf_token": signed_in.csrf_token,
            "expires_at": signed_in.expires_at,
            "user": {"id": user.id, "name": user.name, "role": signed_in.role, "is_guest": user.is_guest},
            "organization": {"id": place.id, "slug": place.slug, "name": place.name},
        }
    }
    cookie = [(b"set-cookie", session_cookie(context, signed_in.token).encode())] if wanted else []
    return Whole(201, msgspec.json.encode(body), cookie)
