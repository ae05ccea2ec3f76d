"""Addresses in one spelling, networks with exact boundaries, and no text of a stranger's taken for an address."""

import ipaddress
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given, strategies as st

from voelgoed.network import CONNECTIONS, GUESTS, HOLDS, Prefix, client_address, network_of, parse_address

ADDRESSES = st.ip_addresses().filter(lambda address: getattr(address, "ipv4_mapped", None) is None)
PORTS = st.integers(0, 65_535)
INTERFACES = st.text("abcdefghijklmnopqrstuvwxyz0123456789._-", max_size=15)
KINDS = st.sampled_from([HOLDS, GUESTS, CONNECTIONS])


@st.composite
def spellings(draw: st.DrawFn) -> tuple[str, str]:
    """An address in its one spelling, and in one of the many that proxies and sockets use."""
    address = draw(ADDRESSES)
    plain = str(address)
    if isinstance(address, IPv4Address):
        forms = [plain, f"{plain}:{draw(PORTS)}", f"::ffff:{plain}", f"[::FFFF:{plain}]:{draw(PORTS)}", f" {plain}"]
    else:
        zone = f"{plain}%{draw(INTERFACES)}"
        forms = [address.exploded, plain.upper(), f"[{plain}]", f"[{plain}]:{draw(PORTS)}", zone, f"[{zone}]:443"]
    return plain, draw(st.sampled_from(forms))


@pytest.mark.parametrize(
    ("prefix", "address", "network", "last", "outside"),
    [
        (HOLDS, "203.0.113.7", "203.0.113.7/32", "203.0.113.7", "203.0.113.8"),
        (GUESTS, "203.0.113.7", "203.0.113.7/32", "203.0.113.7", "203.0.113.8"),
        (CONNECTIONS, "203.0.113.7", "203.0.113.0/24", "203.0.113.255", "203.0.114.0"),
        (HOLDS, "2001:db8::1", "2001:db8::/64", "2001:db8::ffff:ffff:ffff:ffff", "2001:db8:0:1::"),
        (GUESTS, "2001:db8::1", "2001:db8::/56", "2001:db8:0:ff:ffff:ffff:ffff:ffff", "2001:db8:0:100::"),
        (CONNECTIONS, "2001:db8::1", "2001:db8::/56", "2001:db8:0:ff:ffff:ffff:ffff:ffff", "2001:db8:0:100::"),
    ],
)
def test_a_network_ends_where_its_prefix_says(
    prefix: Prefix, address: str, network: str, last: str, outside: str
) -> None:
    """The last address inside counts as the same, the first one behind it and the last one before it do not."""
    before = str(ipaddress.ip_network(network)[0] - 1)
    assert network_of(address, prefix) == network_of(last, prefix) == network
    assert network not in (network_of(outside, prefix), network_of(before, prefix))


@given(spelling=spellings(), prefix=KINDS)
def test_every_spelling_is_the_same_address(spelling: tuple[str, str], prefix: Prefix) -> None:
    """A port, brackets, an interface or a wrapping in IPv6 do not make another client of it."""
    plain, written = spelling
    assert parse_address(written) == plain
    assert network_of(written, prefix) == network_of(plain, prefix)


@given(one=ADDRESSES, other=ADDRESSES, prefix=KINDS)
def test_addresses_share_a_network_when_they_share_its_bits(
    one: IPv4Address | IPv6Address, other: IPv4Address | IPv6Address, prefix: Prefix
) -> None:
    """Compared with the bits themselves, for near addresses too."""
    near = type(one)((int(one) & ~0xFF) | int(other) & 0xFF)
    for another in (near, other):
        bits = prefix.v4 if one.version == 4 else prefix.v6
        shift = one.max_prefixlen - bits
        is_same = one.version == another.version and int(one) >> shift == int(another) >> shift
        assert (network_of(str(one), prefix) == network_of(str(another), prefix)) is is_same


@pytest.mark.parametrize(
    "written",
    [
        "", " ", "unknown", "_hidden", "localhost", "testclient", "203.0.113.7/24", "203.0.113.7:", "203.0.113.7:x",
        "203.0.113.7:123456", "203.0.113", "203.0.113.07", "256.0.0.1", "[2001:db8::1", "2001:db8::1]",
        "[2001:db8::1]x", "[2001:db8::1]:", "2001:db8::1::2", "[]", "[]:80", ":80", "%eth0", "٢٠٣.0.113.7",
        "203.0.113.7 2", '"203.0.113.7"', "for=203.0.113.7", "x" * 10_000,
    ],
)  # fmt: skip
def test_anything_else_is_no_address(written: str) -> None:
    """And so has no network of its own."""
    assert parse_address(written) is None
    assert network_of(written, HOLDS) is None


def test_without_an_address_there_is_no_network() -> None:
    """As on a unix socket."""
    assert network_of(None, CONNECTIONS) is None


@pytest.mark.parametrize(
    ("proxies", "forwarded", "seen"),
    [
        (0, "203.0.113.7", "192.0.2.1"),
        (1, "203.0.113.7", "203.0.113.7"),
        (1, "198.51.100.1, 203.0.113.7:1234", "203.0.113.7"),
        (1, "198.51.100.1, [2001:db8::1]:443", "2001:db8::1"),
        (1, "198.51.100.1,2001:db8::1%eth0", "2001:db8::1"),
        (1, "198.51.100.1, ::ffff:203.0.113.7", "203.0.113.7"),
        (2, "198.51.100.1, 203.0.113.7", "198.51.100.1"),
        (3, "198.51.100.1, 203.0.113.7", "192.0.2.1"),
        (2, "203.0.113.7", "192.0.2.1"),
        (1, "", "192.0.2.1"),
        (1, " , ", "192.0.2.1"),
        (1, "203.0.113.7, unknown", "192.0.2.1"),
        (2, "198.51.100.1, unknown, 203.0.113.7", "203.0.113.7"),
        (2, "198.51.100.1, unknown, _proxy", "192.0.2.1"),
    ],
)
def test_the_client_is_what_our_outermost_proxy_saw(proxies: int, forwarded: str, seen: str) -> None:
    """What is unreadable gives way to the next proxy's word, in the end to the peer; never to the client's own."""
    assert client_address("192.0.2.1", forwarded, proxies) == seen


@given(invented=st.text(max_size=60), client=ADDRESSES, proxies=st.lists(ADDRESSES, max_size=3))
def test_a_client_cannot_choose_its_address(
    invented: str, client: IPv4Address | IPv6Address, proxies: list[IPv4Address | IPv6Address]
) -> None:
    """Whatever a client writes into the header, our proxies append what they saw."""
    chain = ", ".join([invented, str(client), *map(str, proxies)])
    assert client_address("192.0.2.1", chain, 1 + len(proxies)) == str(client)


@given(forwarded=st.text(max_size=60), proxies=st.integers(0, 3))
def test_what_is_seen_is_always_an_address(forwarded: str, proxies: int) -> None:
    """No key of a limit and no record is made from a stranger's text."""
    seen = client_address("192.0.2.1", forwarded, proxies)
    assert seen is not None
    assert str(ipaddress.ip_address(seen)) == seen
