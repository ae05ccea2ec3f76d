"""Client addresses, and the networks that limits count instead of single addresses. Pure.

One customer of an IPv6 provider has a whole network, so a limit per address would be no limit.
"""

import ipaddress
import re
from functools import lru_cache
from typing import Final, NamedTuple

ADDRESSES_KEPT: Final = 1_000
ADDRESS_CHARS_MAX: Final = 100  # the longest address has 45, a port and an interface's name come on top
# With or without a port; IPv6 in brackets where a port follows it; `%eth0` names an interface of the sender.
WRITTEN: Final = re.compile(
    r"\[([0-9A-Fa-f:.]+)(?:%[^\]]*)?\](?::[0-9]{1,5})?|([0-9.]+)(?::[0-9]{1,5})?|([0-9A-Fa-f:.]+)(?:%.*)?"
)


class Prefix(NamedTuple):
    """How many leading bits two addresses share when they are counted as one network."""

    v4: int
    v6: int


HOLDS: Final = Prefix(32, 64)
"""One household, as `max_holds_per_ip` counts: a carrier puts thousands of buyers behind the addresses of one /24."""
GUESTS: Final = Prefix(32, 56)
"""New guests and accounts: the same for IPv4; a /56 has 256 networks of one household each."""
CONNECTIONS: Final = Prefix(24, 56)
"""Connections and sign-ins: what one customer of a provider can rent."""


def parse_address(written: str) -> str | None:
    """Return an address in its one spelling, or None if it is not one.

    Port, brackets and interface are dropped. IPv4 wrapped in IPv6 (`::ffff:192.0.2.1`) is IPv4.
    """
    return _parse(written.strip()[:ADDRESS_CHARS_MAX])


@lru_cache(ADDRESSES_KEPT)
def network_of(address: str | None, prefix: Prefix) -> str | None:
    """Return the network that an address is counted in, such as `2001:db8::/56`; None without an address."""
    plain = parse_address(address or "")
    if plain is None:
        return None
    bits = prefix.v6 if ":" in plain else prefix.v4
    return str(ipaddress.ip_network((plain, bits), strict=False))


def client_address(peer: str | None, forwarded_for: str, proxies: int) -> str | None:
    """Return the address that the outermost of our own proxies saw.

    Each proxy appends the address it saw to X-Forwarded-For, so the last `proxies` entries are ours and everything
    before them is the client's own text. An entry that is no address gives way to the next proxy's, in the end to the
    peer; so does a chain that is too short.
    """
    chain = [part for part in forwarded_for.split(",") if part.strip()] if proxies else []
    ours = chain[-proxies:] if len(chain) >= proxies else []
    return next((known for hop in (*ours, peer or "") if (known := parse_address(hop))), None)


@lru_cache(ADDRESSES_KEPT)
def _parse(written: str) -> str | None:
    found = WRITTEN.fullmatch(written)
    if found is None:
        return None
    try:
        address = ipaddress.ip_address(next(filter(None, found.groups())))
    except ValueError:
        return None
    return str(getattr(address, "ipv4_mapped", None) or address)
