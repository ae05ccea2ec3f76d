"""The checker against the running product: what is corrupted behind the product's back is reported."""

import asyncio
from pathlib import Path

import asyncpg
import pytest

from tests.blackbox.buyers import Sale
from tests.blackbox.calls import Caller
from tests.blackbox.checker import check
from tests.blackbox.run import compare, new_history
from tests.blackbox.server import Product, create_event, serving
from tests.blackbox.violations import Rule

TRIES = 20


async def corrupt(product: Product, *statements: str, hold_id: str, user_id: str) -> None:
    """Change PostgreSQL's tables as no user of the product can."""
    conn = await asyncpg.connect(product.database_url)
    try:
        for statement in statements:
            await conn.execute(statement.format(hold_id=hold_id, user_id=user_id))
    finally:
        await conn.close()


async def guest_of(sale: Sale) -> Caller:
    caller = sale.caller()
    assert (await caller.sign_in_as_guest()).status == 201
    sale.guests.append(caller)
    return caller


async def hold(caller: Caller, seat_id: str) -> str:
    """Hold a seat; a process may refuse it from memory for a second."""
    for _ in range(TRIES):
        call = await caller.reserve_seat(seat_id)
        if call.status == 201:
            return call.holds[0].hold_id
        await asyncio.sleep(0.2)
    raise AssertionError("the seat cannot be had")


def broken_rules(sale: Sale) -> set[Rule]:
    return {violation.rule for violation in check(sale.history)}


@pytest.mark.timeout(180)
async def test_corruption_of_the_database_is_reported(data_dir: Path) -> None:
    """A lost hold, a seat with two holders, a hold given to another buyer, and a hold that no buyer requested."""
    async with serving(data_dir) as product:
        event = await create_event(product)
        sale = Sale(product, event, new_history(event), seed=1, pause_s=0.0)
        anne, ben = await guest_of(sale), await guest_of(sale)
        first, second = [await hold(anne, seat_id) for seat_id in event.seat_ids[:2]]
        await anne.list_own()
        await compare(sale, [])
        assert check(sale.history) == []

        await corrupt(
            product,
            "update event_seats set status = 'available', hold_id = null, held_by = null, held_until = null"
            " where hold_id = '{hold_id}'",
            "delete from seat_holds where id = '{hold_id}'",
            hold_id=first,
            user_id="",
        )
        await anne.list_own()
        assert broken_rules(sale) == {Rule.LOST_HOLD}
        third = await hold(ben, event.seat_ids[0])
        assert broken_rules(sale) == {Rule.LOST_HOLD, Rule.DOUBLE_HOLD}

        await corrupt(
            product,
            "update seat_holds set user_id = '{user_id}' where id = '{hold_id}'",
            "update event_seats set held_by = '{user_id}' where hold_id = '{hold_id}'",
            hold_id=second,
            user_id=ben.user_id,
        )
        await compare(sale, [], wait_s=0.0)
        lost = [one.text for one in check(sale.history) if one.rule is Rule.LOST_HOLD and second in one.text]
        assert len(lost) == 2  # in the basket and in the database

        await corrupt(
            product,
            "update seat_holds set id = gen_random_uuid() where id = '{hold_id}'",
            hold_id=third,
            user_id="",
        )
        await compare(sale, [], wait_s=0.0)
        assert {Rule.UNEXPLAINED_HOLD, Rule.DISAGREEMENT} <= broken_rules(sale)
