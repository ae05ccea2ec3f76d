"""The mail port: what is sent, and the sender that prints it."""

import sys
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """One message to one person."""

    to: str
    subject: str
    text: str


class Mailer(Protocol):
    """Whoever brings mail to people. Sending the same mail twice must be harmless."""

    async def send(self, mail: Mail) -> None:
        """Hand the mail over; raise when it was not taken."""


class ConsoleMailer:
    """Prints mail where the process was started: for demonstrations, and until a real sender is chosen."""

    async def send(self, mail: Mail) -> None:
        """Print it; standard output is not the log, so the link in it is not kept there."""
        lines = ("", f"To: {mail.to}", f"Subject: {mail.subject}", "", mail.text, "")
        sys.stdout.write("\n  ".join(lines) + "\n")
        sys.stdout.flush()


SUBJECTS = {"en": "Choose a new password for {organization}", "af": "Kies 'n nuwe wagwoord vir {organization}"}
TEXTS = {
    "en": """Hello {name},

somebody, hopefully you, asked for a new password at {organization}. Choose one here:

{link}

The link works once, for one hour. If it was not you, do nothing: your password stays as it is.
""",
    "af": """Hallo {name},

iemand, hopelik jy, het 'n nuwe wagwoord by {organization} gevra. Kies een hier:

{link}

Die skakel werk een keer, vir een uur. As dit nie jy was nie, doen niks: jou wagwoord bly soos dit is.
""",
}


def password_reset(*, to: str, name: str, locale: str, organization: str, link: str) -> Mail:
    """The mail with the link to a new password, in the person's language."""
    return Mail(
        to=to,
        subject=SUBJECTS[locale].format(organization=organization),
        text=TEXTS[locale].format(name=name, organization=organization, link=link),
    )
