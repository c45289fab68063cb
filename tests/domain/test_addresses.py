"""The decision about an address: what is never allowed, in each spelling, and what a registered network allows."""

import ipaddress
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.domain.addresses import ANY_NETWORK, all_allowed, checked_host, parse_destination, refusal
from app.domain.errors import InvalidRequest

# Forms in which a resolver may answer with a forbidden address, or with one that carries it inside.
FORBIDDEN = [
    "169.254.169.254", "169.254.0.1", "169.254.255.255", "100.100.100.200", "168.63.129.16", "192.0.0.192",
    "0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255", "240.0.0.1",
    "::", "fe80::1", "febf::1", "ff02::1", "fec0::1", "fd00:ec2::254", "fd20:ce::254",
    "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "::169.254.169.254", "::ffff:0:169.254.169.254",
    "64:ff9b::169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "2002:a9fe:a9fe::1",
    "::ffff:0.0.0.0", "::ffff:224.0.0.1", "2001:0:4136:e378:8000:63bf:5601:5601",
]  # fmt: skip

ODD_SPELLINGS = [
    "http://2852039166/", "http://0xA9FEA9FE/", "http://0xa9.0xfe.0xa9.0xfe/", "http://0251.0376.0251.0376/", "http://169.254.43518/",
    "http://169.16689662/", "http://0xa9fea9fe", "http://017700000001/", "http://127.1/", "http://127.0.1/", "http://0/", "http://0x7f.1/",
    "http://169.254.169.254./", "http://169.254.169.0376/", "http://①⑥⑨.②⑤④.①⑥⑨.②⑤④/", "http://169。254。169。254/", "http://[fe80::1%25eth0]/",
    "http://[::ffff:169.254.169.254/", "http://user@169.254.169.254/", "http://good.example@169.254.169.254/", "http://a:b@host/",
    "http://169.254.169.254\\@good.example/", "http://good.example\t.evil.test/", "http://good.example\r\nHost: evil.test/", "http:///path",
    "file:///etc/passwd", "gopher://127.0.0.1:70/", "ftp://host/", "http://good.example:0/", "http://good.example:99999/",
    "http://good.example/?next=http://169.254.169.254", "http://good.example/#@169.254.169.254", "http://1.2.3.4.5/", "http://%31%36%39.254.169.254/",
]  # fmt: skip


@pytest.mark.parametrize("address", FORBIDDEN)
def test_forbidden_addresses_are_refused_whatever_is_allowed(address: str) -> None:
    assert refusal(address, ANY_NETWORK) is not None
    assert refusal(address, (*ANY_NETWORK, "169.254.0.0/16", "fe80::/10")) is not None
    assert refusal(address, ()) is not None


@pytest.mark.parametrize("url", ODD_SPELLINGS)
def test_odd_spellings_are_refused_before_any_look_up(url: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_destination(url)
    assert refused.value.field == "url"


@pytest.mark.parametrize(
    ("address", "networks"),
    [
        ("10.1.2.3", ("10.0.0.0/8",)),
        ("127.0.0.1", ("127.0.0.0/8",)),
        ("::1", ("::1/128",)),
        ("fd00::7", ("fd00::/8",)),
        ("93.184.215.14", ()),
        ("2606:2800:21f::1", ()),
        ("::ffff:10.1.2.3", ("10.0.0.0/8",)),
        ("192.168.1.9", ANY_NETWORK),
    ],
)
def test_what_is_allowed(address: str, networks: tuple[str, ...]) -> None:
    assert refusal(address, networks) is None


@pytest.mark.parametrize(
    ("address", "networks"),
    [
        ("10.1.2.3", ()),
        ("127.0.0.1", ()),
        ("::1", ()),
        ("::ffff:127.0.0.1", ()),
        ("2002:7f00:1::", ()),
        ("64:ff9b::10.0.0.1", ()),
        ("fd00::7", ()),
        ("100.64.0.1", ()),
        ("10.1.2.3", ("192.168.0.0/16",)),
        ("93.184.215.14", ("10.0.0.0/8",)),
        ("::ffff:93.184.215.14", ("10.0.0.0/8", "::/0")),
        ("not an address", ANY_NETWORK),
        ("", ANY_NETWORK),
    ],
)
def test_what_no_network_allows(address: str, networks: tuple[str, ...]) -> None:
    assert refusal(address, networks) is not None


def test_one_refused_answer_refuses_the_name() -> None:
    assert all_allowed(["10.0.0.1", "10.0.0.2"], ("10.0.0.0/8",)) is None
    assert "169.254.169.254" in (all_allowed(["10.0.0.1", "169.254.169.254"], ("10.0.0.0/8",)) or "")
    assert all_allowed([], ANY_NETWORK) == "the name has no address"


def test_a_destination_keeps_its_parts() -> None:
    found = parse_destination("https://GPU7.example.com:8443/v1/", ["10.0.0.0/8"])
    assert (found.scheme, found.host, found.port, found.path) == ("https", "gpu7.example.com", 8443, "/v1")
    assert (found.authority, found.networks) == ("gpu7.example.com:8443", ("10.0.0.0/8",))
    assert parse_destination("https://gpu7.example.com").authority == "gpu7.example.com"
    assert parse_destination("http://[FD00::7]:80").authority == "[fd00::7]"


def test_a_wrong_network_is_named() -> None:
    with pytest.raises(InvalidRequest, match=r"10\.0\.0\.1/8") as refused:
        parse_destination("http://host", ["10.0.0.1/8"])
    assert refused.value.field == "networks"


@given(st.ip_addresses(v=4, network="169.254.0.0/16"), st.sampled_from(["{}", "::ffff:{}", "64:ff9b::{}", "::{}", "::ffff:0:{}"]))
def test_no_form_of_a_link_local_address_passes(address: ipaddress.IPv4Address, form: str) -> None:
    assert refusal(form.format(address), ANY_NETWORK) is not None


@given(st.ip_addresses(v=4))
def test_an_address_and_its_mapped_form_are_one(address: ipaddress.IPv4Address) -> None:
    for networks in ((), ("10.0.0.0/8", "127.0.0.0/8"), ("0.0.0.0/0",)):
        assert (refusal(str(address), networks) is None) == (refusal(f"::ffff:{address}", networks) is None)


@given(st.text(alphabet="0123456789xabcdef.", min_size=1, max_size=20) | st.text(max_size=20))
@example("0xx")
@example("1.0x")
@example("0x7F")
def test_a_numeric_host_is_four_decimal_numbers_or_refused(host: str) -> None:
    try:
        name = checked_host(host)
    except InvalidRequest:
        return
    # What a resolver may read as a number ends in one, decimal or hexadecimal; "0xx" is neither and so a name.
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", name.rsplit(".", 1)[-1]):
        assert str(ipaddress.IPv4Address(name)) == host
