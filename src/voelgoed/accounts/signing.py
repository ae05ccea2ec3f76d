"""Coming in and going out: register, sign in, continue as a guest, choose a new password, sign out."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import structlog

from voelgoed.accounts import attempts, mail, passwords, rules, store, tokens
from voelgoed.accounts.attempts import Attempts
from voelgoed.accounts.mail import Mail
from voelgoed.accounts.model import Call, Organization, Role, User
from voelgoed.accounts.passwords import Passwords
from voelgoed.accounts.sessions import Sessions
from voelgoed.db import Conn, Database
from voelgoed.errors import DomainError, Kind
from voelgoed.ids import OrganizationId, UserId, new_id
from voelgoed.journal.model import Fact
from voelgoed.journal.recording import record
from voelgoed.network import CONNECTIONS, GUESTS
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)

RESET_VALID_S = 3600.0
PASSWORD_RESET = "password_reset"  # noqa: S105 - the name of a purpose
PASSWORD_RESET_REQUESTED = "password_reset_requested"  # noqa: S105 - the name of a fact
GUEST_NAME = "Guest"


class OrganizationNotFound(DomainError):
    """There is no such organization."""

    kind = Kind.MISSING
    code = "organization_not_found"
    message = "There is no organization at this address."


class OrganizationSuspended(DomainError):
    """The organization is closed for now."""

    kind = Kind.DENIED
    code = "organization_suspended"
    message = "This organization is suspended at the moment."


class CredentialsWrong(DomainError):
    """Unknown address or wrong password: which of the two is not said."""

    kind = Kind.ANONYMOUS
    code = "credentials_wrong"
    message = "The e-mail address or the password is wrong."


class PasswordRefused(DomainError):
    """The password would not protect."""

    kind = Kind.INVALID
    code = "password_refused"
    message = "Choose another password."


class TokenInvalid(DomainError):
    """A link that was used, is too old, or was never ours."""

    kind = Kind.INVALID
    code = "token_invalid"
    message = "This link does not work any more. Ask for a new one."


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """What the front door needs at hand."""

    db: Database
    sessions: Sessions
    passwords: Passwords
    attempts: Attempts
    secret_key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A new session. The token exists here and with its owner, nowhere else."""

    token: str
    csrf_token: str
    expires_at: datetime
    user: User
    role: Role
    organization: Organization


Inherit = Callable[[Conn, SignedIn, UserId], Awaitable[None]]
"""What a guest has becomes that of the person who has just signed in, in the transaction that lets them in."""


async def login(door: Door, call: Call, *, organization: str, email: str, password: str, inherit: Inherit) -> SignedIn:
    """Sign in with e-mail address and password; the first time on a storefront makes a customer of it.

    Who was a guest here until now is one no more, and what they have goes over with them or they are not signed in:
    then the guest has everything still, and may try again. Better told that than signed in to an empty basket.
    """
    email = rules.normal_email(email)
    async with door.db.system_transaction() as conn:
        place = await _open_organization(conn, organization)
        found = await store.find_user_by_email(conn, email)
    user, password_hash = found or (None, None)
    # The limit is the account's, wherever it is tried: passwords belong to the whole installation.
    await prove(door, call, account=email, password_hash=password_hash, password=password)
    assert user is not None
    assert password_hash is not None
    is_outdated = passwords.is_outdated(password_hash)
    stronger = await door.passwords.hash(password, network=call.network(CONNECTIONS)) if is_outdated else None
    guest = _guest_at(place, call)

    async def enter() -> SignedIn:
        async with door.db.transaction(place.id) as conn:
            if await store.lock_user(conn, user.id) != (password_hash,):
                raise CredentialsWrong  # changed or deleted while we looked
            if stronger:
                await store.set_password_hash(conn, user.id, stronger)
            signed_in = await _enter(door, conn, call, place, user, how="signed_in")
            # The session is ended once: of two who sign in with it at the same time, one inherits.
            if guest and await store.revoke_session(conn, guest.session_id, guest.user_id):
                await inherit(conn, signed_in, guest.user_id)
            return signed_in

    try:
        return await door.db.attempt(enter)
    finally:
        if guest:  # also when nobody knows what came of it: then it is looked up
            door.sessions.end(guest.user_id)


async def prove(door: Door, call: Call, *, account: str, password_hash: str | None, password: str) -> None:
    """Check a password. Wrong ones are counted, wherever they are asked for; too many close the account for a while."""
    network = call.network(CONNECTIONS)
    async with door.attempts.guess(account, network) as was_wrong:
        if await door.passwords.verify(password_hash, password, network=network):
            metrics.LOGIN_ATTEMPTS.labels("right").inc()
            return
        log.info("password_wrong")
        metrics.LOGIN_ATTEMPTS.labels("wrong").inc()
        await was_wrong()
        raise CredentialsWrong


async def register(
    door: Door, call: Call, *, organization: str, email: str, password: str, name: str, locale: str
) -> SignedIn:
    """Make an account and sign in. A guest who registers stays the same person, with everything held so far."""
    email = rules.normal_email(email)
    if why := rules.refuse_password(password, email=email):
        raise PasswordRefused(reason=why)
    await attempts.refuse_too_many(door.attempts.newcomers, call.network(GUESTS))
    async with door.db.system_transaction() as conn:
        place = await _open_organization(conn, organization)
    password_hash = await door.passwords.hash(password, network=call.network(CONNECTIONS))
    about = {"email": email, "password_hash": password_hash, "name": name, "locale": locale}
    async with door.db.transaction(place.id) as conn:
        user = None
        if guest := _guest_at(place, call):
            user = await store.claim_guest(conn, guest.user_id, **about)
            # Whoever else knows the guest's token must not become this person with it.
            await store.revoke_sessions_of_user(conn, guest.user_id)
        if user is None:
            user = await store.add_user(conn, UserId(new_id()), is_guest=False, **about)
        signed_in = await _enter(door, conn, call, place, user, how="registered")
    door.sessions.end(user.id)
    return signed_in


async def continue_as_guest(door: Door, call: Call, *, organization: str, locale: str = "en") -> SignedIn:
    """A session for somebody who has not said who they are."""
    await attempts.refuse_too_many(door.attempts.newcomers, call.network(GUESTS))
    async with door.db.system_transaction() as conn:
        place = await _open_organization(conn, organization)
    async with door.db.transaction(place.id) as conn:
        user = await store.add_user(
            conn, UserId(new_id()), email=None, password_hash=None, name=GUEST_NAME, locale=locale, is_guest=True
        )
        return await _enter(door, conn, call, place, user, how="guest_entered")


async def logout(door: Door, call: Call) -> None:
    """End the session that asks."""
    actor = call.actor
    if actor.session_id is None or actor.user_id is None:
        return  # a program's key is revoked, not signed out
    async with door.db.transaction(call.organization_id) as conn:
        if await store.revoke_session(conn, actor.session_id, actor.user_id):
            await record(conn, _fact("signed_out", call, call.organization_id, actor.user_id))
    door.sessions.end(actor.session_id)


async def request_password_reset(door: Door, call: Call, *, organization: str, email: str) -> None:
    """Ask for a link to a new password. The answer is the same whether there is such a person or not."""
    email = rules.normal_email(email)
    network = call.network(CONNECTIONS)
    door.attempts.resets_here.refuse_blocked(network)
    door.attempts.resets_here.count(network)
    await attempts.refuse_too_many(door.attempts.resets, email)
    async with door.db.system_transaction() as conn:
        place = await _open_organization(conn, organization)
        found = await store.find_user_by_email(conn, email)
    user = found[0] if found else None
    token_id = new_id()
    async with door.db.transaction(place.id) as conn:
        await store.add_one_time_token(
            conn,
            token_id,
            PASSWORD_RESET,
            user_id=user.id if user else None,
            organization_id=place.id,
            valid_s=RESET_VALID_S,
        )
        if user:
            # The mail follows from this fact once it is committed; the secret part of the link is made only then.
            fact = _fact(PASSWORD_RESET_REQUESTED, call, place.id, user.id, one_time_id=str(token_id))
            await record(conn, fact)


async def reset_password(door: Door, call: Call, *, token: str, password: str) -> None:
    """Choose a new password with the link from the mail; ends every session of the person."""
    token_id = tokens.one_time_token_id(door.secret_key, token)
    if token_id is None:
        raise TokenInvalid
    password_hash = await door.passwords.hash(password, network=call.network(CONNECTIONS))
    async with door.db.system_transaction() as conn:
        used = await store.use_one_time_token(conn, token_id, PASSWORD_RESET)
        if used is None:
            raise TokenInvalid
        user_id, organization_id = used
        found = await store.get_user(conn, user_id)
        if found is None:
            raise TokenInvalid
        if why := rules.refuse_password(password, email=found[0].email or ""):
            raise PasswordRefused(reason=why)  # which undoes all this: the link is still good
        await store.use_up_one_time_tokens(conn, user_id, PASSWORD_RESET)
        await store.set_password_hash(conn, user_id, password_hash)
        await store.revoke_sessions_of_user(conn, user_id)
        await record(conn, _fact("password_reset", call, organization_id, user_id))
    door.sessions.end(user_id)


async def password_reset_mail(db: Database, secret_key: bytes, token_id: UUID, *, address: str) -> Mail | None:
    """The mail that a committed request calls for; None when it was used or ran out in the meantime."""
    async with db.system_transaction() as conn:
        row = await store.get_one_time_token(conn, token_id)
    if row is None:
        return None
    link = f"{address}/{row['slug']}/new-password#{tokens.one_time_token(secret_key, token_id)}"
    return mail.password_reset(
        to=row["email"], name=row["name"], locale=row["locale"], organization=row["organization_name"], link=link
    )


async def _open_organization(conn: Conn, slug: str) -> Organization:
    place = await store.find_organization(conn, slug)
    if place is None:
        raise OrganizationNotFound(organization=slug)
    if place.suspended_at is not None:
        raise OrganizationSuspended
    return place


@dataclass(frozen=True, slots=True)
class _Guest:
    user_id: UserId
    session_id: UUID


def _guest_at(place: Organization, call: Call) -> _Guest | None:
    """Who asks, as a guest of this organization; at another they stay whoever they are."""
    actor = call.actor
    if not actor.is_guest or actor.organization_id != place.id or actor.user_id is None or actor.session_id is None:
        return None
    return _Guest(actor.user_id, actor.session_id)


async def _enter(door: Door, conn: Conn, call: Call, place: Organization, user: User, *, how: str) -> SignedIn:
    """Make the session, in the transaction that found or made the person."""
    await store.join_as_customer(conn, place.id, user.id)
    member = await store.get_member(conn, place.id, user.id)
    assert member is not None
    token, session_id = tokens.new_session_token(), new_id()
    await store.add_session(conn, session_id, tokens.token_hash(token), user.id, place.id)
    await record(conn, _fact(how, call, place.id, user.id, session_id=str(session_id), actor_type=member.role))
    return SignedIn(
        token=token,
        csrf_token=tokens.csrf_token(token),
        expires_at=datetime.now(UTC) + timedelta(seconds=door.sessions.idle_s),
        user=user,
        role=member.role,
        organization=place,
    )


def _fact(kind: str, call: Call, organization_id: OrganizationId, user_id: UserId, **data: str) -> Fact:
    return Fact(
        kind=kind,
        organization_id=organization_id,
        actor_id=user_id,
        request_id=call.request_id,
        origin=call.origin,
        data={"actor_type": call.actor.kind, **data},
    )
