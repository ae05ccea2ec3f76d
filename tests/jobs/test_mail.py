"""From the wish for a new password to the mail: fact, reaction, job, and the secret in none of them."""

import dataclasses

import pytest

from tests.make.accounts import make_person
from voelgoed.accounts import signing
from voelgoed.accounts.mail import ConsoleMailer, Mail
from voelgoed.accounts.model import ANONYMOUS, Call
from voelgoed.db import Database
from voelgoed.ids import new_id
from voelgoed.jobs import queue
from voelgoed.jobs.reactions import Reactor
from voelgoed.wiring import Services


class Outbox:
    """A mailer that keeps what it is given."""

    def __init__(self) -> None:
        self.sent: list[Mail] = []

    async def send(self, mail: Mail) -> None:
        self.sent.append(mail)


async def test_a_committed_wish_becomes_one_mail(db: Database, services: Services) -> None:
    """The fact and the job name the request; the link is made when the mail is sent, in the person's language."""
    person = await make_person(db)
    call = Call(actor=ANONYMOUS, request_id=new_id())
    assert person.email is not None
    await signing.request_password_reset(services.door, call, organization=person.organization.slug, email=person.email)
    reactor = Reactor(db, reader=f"test_{new_id().hex}")
    for _ in range(3):  # makes its place, follows, and has nothing left to do
        await reactor.tick()
    async with db.system_transaction() as conn:
        rows = await conn.fetch("select payload, dedupe_key from pgqueuer where entrypoint = 'send_password_reset'")
        told = await conn.fetchval(
            "select data ->> 'one_time_id' from journal"
            " where kind = 'password_reset_requested' and organization_id = $1",
            person.organization.id,
        )
    payloads = [bytes(row["payload"]) for row in rows if row["dedupe_key"] == f"password_reset:{told}"]
    assert payloads == [b'{"one_time_id":"%s"}' % told.encode()]

    outbox = Outbox()
    postman = dataclasses.replace(services, mailer=outbox)
    await queue.send_password_reset(postman, payloads[0])
    assert [mail.to for mail in outbox.sent] == [person.email]
    secret = outbox.sent[0].text.split("new-password#")[1].split()[0]
    await signing.reset_password(services.door, call, token=secret, password="another long password")
    await queue.send_password_reset(postman, payloads[0])  # run once more: the link was used, nothing is sent
    assert len(outbox.sent) == 1


async def test_the_console_mailer_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """Until a real sender is chosen, the operator sees the mail."""
    await ConsoleMailer().send(Mail(to="anna@example.test", subject="Hello", text="A link."))
    said = capsys.readouterr().out
    assert all(part in said for part in ("To: anna@example.test", "Subject: Hello", "A link."))
