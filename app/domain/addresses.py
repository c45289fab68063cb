"""Which addresses this program may open a connection to: a pure decision, with no look-up and no socket.

A destination is registered once (scheme, host, port, allowed networks). Whoever connects resolves its name once, asks here about every
answer, and connects to one of the answers that were asked about, never to the name again: so a second answer, a redirect or an odd
spelling reaches nothing else. What is never allowed, whatever networks are: link-local and metadata addresses, the unspecified and
multicast ones, and every IPv6 form that carries such an IPv4 address inside.
"""

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from app.domain.errors import InvalidRequest

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# Every address that is not forbidden outright: for a person who measures from their own terminal and could open it with curl as well.
ANY_NETWORK = ("0.0.0.0/0", "::/0")

_NEVER: tuple[tuple[Network, str], ...] = tuple(
    (ipaddress.ip_network(network), what)
    for network, what in (
        ("169.254.0.0/16", "link-local, where clouds keep their metadata"),
        ("fe80::/10", "link-local"),
        ("fd00:ec2::254/128", "a cloud's metadata service"),
        ("fd20:ce::254/128", "a cloud's metadata service"),
        ("100.100.100.200/32", "a cloud's metadata service"),
        ("168.63.129.16/32", "a cloud's metadata service"),
        ("192.0.0.192/32", "a cloud's metadata service"),
        ("0.0.0.0/8", "this host on this network"),
        ("::/128", "unspecified"),
        ("224.0.0.0/4", "multicast"),
        ("ff00::/8", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("fec0::/10", "site-local, which was given up"),
    )
)
_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_TRANSLATED = ipaddress.IPv6Network("::ffff:0:0:0/96")
_PORTS = {"http": 80, "https": 443}
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*\Z")
_NUMERIC_LABEL = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)\Z")
_LONGEST_HOST = 253


@dataclass(frozen=True)
class Destination:
    """A registered place: `networks` are the allowed ones as CIDR; none means every public address and no private one.

    `path` is the part of the address before the API's own paths, without a slash at its end.
    """

    scheme: str
    host: str
    port: int
    path: str = ""
    networks: tuple[str, ...] = ()

    @property
    def authority(self) -> str:
        """Host and port as they stand in a Host header: without the port where it is the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def parse_destination(url: str, networks: Sequence[str] = ()) -> Destination:
    """An address that a person wrote, as a destination. Raises InvalidRequest (field `url` or `networks`) with what to write instead.

    Refused are user names and passwords, queries, fragments, control characters, names outside ASCII, and IPv4 addresses that are not
    four decimal numbers: libraries read those differently, and a wrong guess is worse than a refusal.
    """
    if any(ord(letter) <= 0x20 or ord(letter) == 0x7F or letter == "\\" for letter in url):
        raise InvalidRequest("url", "The address holds a space, a backslash or a control character: write http://gpu7.example:8000.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidRequest("url", f"The address cannot be read ({error}): write http://gpu7.example:8000.") from error
    if parts.scheme not in _PORTS:
        raise InvalidRequest("url", "The address must begin with http or https.")
    if parts.username is not None or parts.password is not None:
        raise InvalidRequest("url", "The address holds a user name or a password: give the key apart from the address.")
    if parts.query or parts.fragment or "?" in url or "#" in url:
        raise InvalidRequest("url", "The address holds a query or a fragment: write only http://gpu7.example:8000 and a path.")
    if port == 0:
        raise InvalidRequest("url", "Port 0 is none: write the port that the server listens on.")
    host = checked_host(parts.hostname or "")
    return Destination(parts.scheme, host, port or _PORTS[parts.scheme], parts.path.rstrip("/"), checked_networks(networks))


def checked_host(host: str) -> str:
    """A host name or address in its one spelling, lower case. Raises InvalidRequest (field `url`) for any other spelling."""
    name = host.lower()
    if not name or len(name) > _LONGEST_HOST:
        raise InvalidRequest("url", "The address has no host name, or one that is too long.")
    if ":" in name:
        return _ipv6(name)
    if not name.isascii():
        raise InvalidRequest("url", "The host name holds letters outside ASCII: write its xn-- form.")
    if not _NAME.match(name):
        raise InvalidRequest("url", "The host name holds something other than letters, digits, hyphens and dots.")
    if _NUMERIC_LABEL.match(name.rsplit(".", 1)[-1]):
        try:
            return str(ipaddress.IPv4Address(name))
        except ValueError as error:
            raise InvalidRequest("url", "A numeric host must be four decimal numbers, as in 10.0.0.7.") from error
    return name


def _ipv6(name: str) -> str:
    try:
        address = ipaddress.IPv6Address(name)
    except ValueError as error:
        raise InvalidRequest("url", "The host is no IPv6 address: write it in brackets, as in [fd00::7]:8000.") from error
    if address.scope_id is not None:
        raise InvalidRequest("url", "An IPv6 address with a zone (%) is link-local, which is never measured.")
    return str(address)


def checked_networks(networks: Sequence[str]) -> tuple[str, ...]:
    """Networks as CIDR in their one spelling. Raises InvalidRequest (field `networks`) that names the first wrong one."""
    found = []
    for network in networks:
        try:
            found.append(str(ipaddress.ip_network(network)))
        except ValueError as error:
            raise InvalidRequest("networks", f"{network!r} is no network: write it as 10.0.0.0/8 or fd00::/8.") from error
    return tuple(found)


def refusal(address: str, networks: Sequence[str]) -> str | None:
    """Why no connection may be opened to an address that a name resolved to; None where it may.

    `address` is what the resolver answered, `networks` the allowed ones as CIDR: with none, every public address is allowed.
    """
    try:
        asked = ipaddress.ip_address(address)
    except ValueError:
        return f"{address[:60]!r} is no address"
    forms = tuple(_forms(asked))
    for form in forms:
        what = next((what for network, what in _NEVER if form in network), None)
        if what is not None:
            return f"{asked} is {what}" if form == asked else f"{asked} stands for {form}, which is {what}"
    # The address that traffic ends at decides: an IPv6 form of a private IPv4 address is private.
    last = forms[-1]
    if not networks:
        return None if last.is_global else f"{last} is private or this host, and no network is allowed for this destination"
    if any(last in ipaddress.ip_network(network) for network in networks):
        return None
    return f"{last} is in none of the allowed networks ({', '.join(networks)})"


def all_allowed(answers: Sequence[str], networks: Sequence[str]) -> str | None:
    """Why a name is refused: it has no address, or one of its answers is refused. None where every answer may be connected to."""
    if not answers:
        return "the name has no address"
    return next((reason for answer in answers if (reason := refusal(answer, networks)) is not None), None)


def _forms(address: Address) -> Iterator[Address]:
    """The address and the IPv4 addresses that it carries inside, the last one being where its traffic ends."""
    yield address
    if isinstance(address, ipaddress.IPv4Address):
        return
    if address.teredo is not None:
        yield from address.teredo
    elif address.sixtofour is not None:
        yield address.sixtofour
    elif address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif any(address in network for network in (*_NAT64, _TRANSLATED)) or (address in _COMPATIBLE and int(address) > 1):
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
