"""What is held counts towards limits until its very end, however long it lasts, and not a microsecond longer."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.make.boxoffice import TICK, BoxOffice
from tests.make.events import call_of
from voelgoed.accounts.model import Role
from voelgoed.holds import booking, registry
from voelgoed.holds.model import Ask, Outcome
from voelgoed.ids import new_id
from voelgoed.seating.policy import HOLD_TTL_MINUTES_MAX, refused_overrides
from voelgoed.seating.refusals import PolicyInvalid

IP = "192.0.2.7"
MORE = timedelta(minutes=5)
LONGEST = timedelta(minutes=HOLD_TTL_MINUTES_MAX) + MORE
LOOK_BACK = timedelta(minutes=70)
"""How far back the queries look for holds that may be active: longer than any hold lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit on what is held at one time: what the policy says, and how one above it is answered."""

    policy: Mapping[str, object]
    most: int
    refusal: Outcome
    kinds: tuple[str, ...] = ("seats", "places")


LIMITS = {
    "seats per booking": Limit(policy={"max_seats_per_booking": 3}, most=3, refusal=Outcome.TOO_MANY_SEATS),
    "wheelchair seats per booking": Limit(
        policy={"max_wheelchair_seats_per_booking": 2},
        most=2,
        refusal=Outcome.TOO_MANY_WHEELCHAIRS,
        kinds=("wheelchairs",),
    ),
    "holds per user": Limit(policy={"max_holds_per_user": 3}, most=3, refusal=Outcome.TOO_MANY_HOLDS),
    "holds per address": Limit(policy={"max_holds_per_ip": 3}, most=3, refusal=Outcome.TOO_MANY_HOLDS),
}
CASES = [(name, held, asked) for name, limit in LIMITS.items() for held in limit.kinds for asked in limit.kinds]
OF_ACCOUNTS = [(name, kind) for name, limit in LIMITS.items() if name != "holds per address" for kind in limit.kinds]


def ask_for(office: BoxOffice, kind: str, count: int, user_id: UUID, **fields: Any) -> Ask:
    if kind == "places":
        return office.ask(places=count, user_id=user_id, ip=IP, **fields)
    return office.ask(*office.seats(count, wheelchair=kind == "wheelchairs"), user_id=user_id, ip=IP, **fields)


async def hold(office: BoxOffice, kind: str, count: int, user_id: UUID) -> Ask:
    ask = ask_for(office, kind, count, user_id)
    assert await office.outcome(ask) == Outcome.CREATED
    return ask


async def hold_for(office: BoxOffice, kind: str, count: int, user_id: UUID, *, is_longest: bool) -> datetime:
    """Hold something for the usual ten minutes, or for as long as any hold can last; return the end."""
    if is_longest:
        await office.allow(default_hold_ttl_minutes=HOLD_TTL_MINUTES_MAX)
    ask, began = await hold(office, kind, count, user_id), await office.now()
    if not is_longest:
        return began + timedelta(minutes=10)
    assert {verdict for verdict, _ in await office.extend(ask)} == {"extended"}
    return began + LONGEST


LASTING = pytest.mark.parametrize("is_longest", [False, True], ids=["ten minutes", "sixty-five minutes"])


@pytest.mark.parametrize(("name", "held", "asked"), CASES)
@LASTING
async def test_hold_counts_until_its_end(
    office: BoxOffice, name: str, held: str, asked: str, *, is_longest: bool
) -> None:
    limit, user_id = LIMITS[name], new_id()
    await office.allow(**limit.policy)
    end = await hold_for(office, held, limit.most, user_id, is_longest=is_longest)
    await office.set_clock(end - TICK)
    before = await office.everything()
    said = await office.outcome(ask_for(office, asked, 1, user_id))
    assert said == limit.refusal, "a hold did not count although it had not ended"
    assert await office.everything() == before
    await office.set_clock(end)
    said = await office.outcome(ask_for(office, asked, limit.most, user_id))
    assert said == Outcome.CREATED, "an expired hold counted towards a limit"


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, limit in LIMITS.items() for kind in limit.kinds])
@pytest.mark.parametrize("change", ["released", "sold", "taken over"])
async def test_ended_hold_makes_room(office: BoxOffice, name: str, kind: str, change: str) -> None:
    """Exactly as much room as it took: what is released, sold or expired is no longer held."""
    limit, user_id = LIMITS[name], new_id()
    await office.allow(**limit.policy)
    asks = [await hold(office, kind, 1, user_id) for _ in range(limit.most)]
    if change == "released":
        assert await office.release(asks[0]) == ["released"]
    elif change == "sold":
        assert await office.convert(asks[0]) == "sold"
    else:
        await office.advance(minutes=10)
        await office.expire()
        await hold(office, kind, limit.most - 1, user_id)
    assert await office.outcome(ask_for(office, kind, 2, user_id)) == limit.refusal
    assert await office.outcome(ask_for(office, kind, 1, user_id)) == Outcome.CREATED
    assert await office.outcome(ask_for(office, kind, 1, user_id)) == limit.refusal


# Signing in with a basket


@pytest.mark.parametrize(("name", "kind"), OF_ACCOUNTS)
@pytest.mark.parametrize("room", [0, 1, 2])
async def test_signing_in_at_a_limit(office: BoxOffice, name: str, kind: str, room: int) -> None:
    """Of two holds of a guest the account keeps as many as it has room for, the oldest first."""
    limit, guest_id, user_id = LIMITS[name], new_id(), new_id()
    await office.allow(**limit.policy)
    if limit.most > room:
        await hold(office, kind, limit.most - room, user_id)
    asks = []
    for _ in range(2):
        await office.advance(seconds=1)
        asks.append(await hold(office, kind, 1, guest_id))
    verdicts = ["kept"] * room + ["released"] * (2 - room)
    assert await office.hand_over(guest_id, user_id) == verdicts, "handed over more or less than the limit"
    assert await office.states(*asks) == ["active" if verdict == "kept" else "cancelled" for verdict in verdicts]
    assert await office.active(user_id) == limit.most


@pytest.mark.parametrize(("name", "kind"), OF_ACCOUNTS)
async def test_signing_in_with_as_much_as_allowed(office: BoxOffice, name: str, kind: str) -> None:
    """A guest at a limit keeps everything in an account that holds nothing."""
    limit, guest_id = LIMITS[name], new_id()
    await office.allow(**limit.policy)
    ask = await hold(office, kind, limit.most, guest_id)
    assert await office.hand_over(guest_id, new_id()) == ["kept"] * len(ask.items)


@pytest.mark.parametrize(("name", "kind"), OF_ACCOUNTS)
async def test_signing_in_as_staff(office: BoxOffice, name: str, kind: str) -> None:
    limit, guest_id, user_id = LIMITS[name], new_id(), new_id()
    await office.allow(**limit.policy)
    await hold(office, kind, limit.most, user_id)
    await hold(office, kind, 1, guest_id)
    assert await office.hand_over(guest_id, user_id, is_staff=True) == ["kept"]


@pytest.mark.parametrize("kind", ["seats", "places"])
async def test_signing_in_ignores_the_address(office: BoxOffice, kind: str) -> None:
    """Holds stay where they were asked for, so signing in moves none of them to an address."""
    await office.allow(max_holds_per_ip=2)
    guest_id, user_id = new_id(), new_id()
    await hold(office, kind, 1, guest_id)
    await hold(office, kind, 1, user_id)
    assert await office.hand_over(guest_id, user_id) == ["kept"]


@pytest.mark.parametrize(("name", "kind"), OF_ACCOUNTS)
@LASTING
async def test_signing_in_counts_until_the_end(office: BoxOffice, name: str, kind: str, *, is_longest: bool) -> None:
    """What the account holds leaves no room for the guest's until its end."""
    limit = LIMITS[name]
    await office.allow(**limit.policy)
    user_id, guests = new_id(), [new_id(), new_id()]
    end = await hold_for(office, kind, limit.most, user_id, is_longest=is_longest)
    await office.set_clock(end - 2 * TICK)
    for guest_id in guests:
        await hold(office, kind, 1, guest_id)
    await office.set_clock(end - TICK)
    assert await office.hand_over(guests[0], user_id) == ["released"]
    await office.set_clock(end)
    assert await office.hand_over(guests[1], user_id) == ["kept"]


@pytest.mark.parametrize("kind", ["seats", "places", "wheelchairs"])
async def test_longest_hold_is_handed_over_and_shown_to_its_end(office: BoxOffice, kind: str) -> None:
    guest_id, user_id = new_id(), new_id()
    end = await hold_for(office, kind, 1, guest_id, is_longest=True)
    await office.set_clock(end - TICK)
    assert await office.hand_over(guest_id, user_id) == ["kept"], "a hold was not found before its end"
    call = call_of(office.organization, Role.CUSTOMER, user_id)
    assert len(await booking.list_own(office.db, call, office.event_id)) == 1
    await office.set_clock(end)
    assert await booking.list_own(office.db, call, office.event_id) == []


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_signing_in_with_many_holds(office: BoxOffice, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """One sign-in hands over a bounded number of holds: up to the bound all of them, above it the oldest."""
    monkeypatch.setattr(registry, "HANDED_OVER_MAX", 2)
    guest_id, user_id = new_id(), new_id()
    for _ in range(count):
        await office.advance(seconds=1)
        await hold(office, "seats", 1, guest_id)
    assert await office.hand_over(guest_id, user_id) == ["kept"] * min(count, 2)
    assert await office.active(guest_id) == max(0, count - 2)


# How long a hold can last


def test_look_back_is_longer_than_any_hold() -> None:
    """Ten seats in five minutes, each for at most sixty-five: also why so many holds at most are handed over."""
    assert LONGEST < LOOK_BACK
    windows = -(-LONGEST // MORE)
    assert 10 * windows < registry.HANDED_OVER_MAX


@pytest.mark.parametrize("minutes", [0, 1, 60, 61])
async def test_hold_lasts_from_one_minute_to_sixty(office: BoxOffice, minutes: int) -> None:
    """The policy, the database itself and an event's override all refuse anything else."""
    is_right = 1 <= minutes <= HOLD_TTL_MINUTES_MAX
    assert bool(refused_overrides(None, {"default_hold_ttl_minutes": minutes})) is not is_right
    await office.allow(max_seats_per_booking=9)  # so that there is a policy
    update = (
        "update seating_policies set default_hold_ttl_minutes = $2, version = version + 1 where organization_id = $1"
    )
    if is_right:
        await office.allow(default_hold_ttl_minutes=minutes)
        began, ask = await office.now(), await office.hold(*office.seats(1))
        assert [row["expires_at"] for row in await office.holds(ask)] == [began + timedelta(minutes=minutes)]
    else:
        with pytest.raises(PolicyInvalid):
            await office.allow(default_hold_ttl_minutes=minutes)
        with pytest.raises(asyncpg.CheckViolationError):
            async with office.db.transaction(office.organization.id) as conn:
                await conn.execute(update, office.organization.id, minutes)
