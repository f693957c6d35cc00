from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.features.intents.addresses import mail_domain, place_of, url_of
from theodolite.features.intents.domains import named_domains, registrable

METADATA = (
    "169.254.169.254",
    "2852039166",
    "0xA9FEA9FE",
    "0xa9.0xfe.0xa9.0xfe",
    "0251.0376.0251.0376",
    "025177524776",
    "169.254.43518",
    "169.16689662",
    "169.254.169.254.",
    "169%2E254%2e169.254",
    "１６９.２５４.１６９.２５４",  # noqa: RUF001 - digits of another script are meant
    "169。254。169。254",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::]",
    "[::a9fe:a9fe]",
    "[fd00:ec2::254]",
    "[FD00:0EC2:0:0:0:0:0:254]",
    "169.254.170.2",
    "100.100.100.200",
    "169.254.42.42",
    "[fd00:42::42]",
    "api.metadata.cloud.ibm.com",
    "metadata.google.internal",
    "METADATA.GOOGLE.INTERNAL.",
    "metadata",
    "169.254.169.254.nip.io",
    "x.169-254-169-254.sslip.io",
    "a9fea9fe.nip.io",
)


@pytest.mark.parametrize("host", METADATA)
@pytest.mark.parametrize("form", ["http://{}/latest/", "HTTPS://{}:80", "http:{}", "http://good.example@{}/", "{}/x"])
def test_the_metadata_service_is_known_in_every_spelling(host: str, form: str) -> None:
    url = url_of(form.format(host))
    assert url is not None
    assert url.place is not None
    assert url.place.target == "cloud_metadata"


@pytest.mark.parametrize(
    ("host", "target", "destination"),
    [
        ("localhost", "localhost", "localhost"),
        ("api.localhost", "localhost", "localhost"),
        ("127.0.0.1", "localhost", "localhost"),
        ("127.1", "localhost", "localhost"),
        ("0", "localhost", "localhost"),
        ("::1", "localhost", "localhost"),
        ("x.localtest.me", "localhost", "localhost"),
        ("10.0.0.7", "private_network", "private_network"),
        ("192.168.1.1", "private_network", "private_network"),
        ("172.16.0.1", "private_network", "private_network"),
        ("172.32.0.1", "external_url", "external_domain"),
        ("100.64.0.1", "private_network", "private_network"),
        ("fe80::1%eth0", "private_network", "private_network"),
        ("fd12::1", "private_network", "private_network"),
        ("wiki", "private_network", "private_network"),
        ("db.internal", "private_network", "private_network"),
        ("printer.local", "private_network", "private_network"),
        ("10.0.0.7.nip.io", "private_network", "private_network"),
        ("8.8.8.8", "external_url", "external_domain"),
        ("example.com", "external_url", "external_domain"),
        ("bücher.example", "external_url", "external_domain"),
        ("localhost.example.com", "external_url", "external_domain"),
        ("169.254.169.254.example.com", "external_url", "external_domain"),
        ("metadata.example.com", "external_url", "external_domain"),
        ("$HOST", "unknown", "unknown"),
        ("", "unknown", "unknown"),
        ("a" * 1000, "unknown", "unknown"),
        ("é" * 200 + ".com", "unknown", "unknown"),
    ],
)
def test_what_a_host_is(host: str, target: str, destination: str) -> None:
    place = place_of(host)
    assert (place.target, place.destination) == (target, destination)


def test_an_engine_that_listens_on_a_port_is_its_socket() -> None:
    for text in ("tcp://localhost:2375", "http://127.0.0.1:2376/containers/json", "tcp://10.0.0.2:2375"):
        url = url_of(text)
        assert url is not None
        assert url.place is not None
        assert url.place.target == "docker_socket"


@pytest.mark.parametrize(
    "text", ["unix:///var/run/docker.sock", "file:///etc/passwd", "npipe:////./pipe/docker_engine"]
)
def test_a_url_that_names_a_file_gives_its_path(text: str) -> None:
    url = url_of(text)
    assert url is not None
    assert url.place is None
    assert url.path == text.partition("://")[2]


@pytest.mark.parametrize("text", ["http://[bad/", "http://", "", "   ", "http:///"])
def test_what_is_no_url_is_none(text: str) -> None:
    assert url_of(text) is None


@given(st.integers(0, 2**32 - 1))
def test_every_spelling_of_an_address_is_the_same_place(number: int) -> None:
    address = IPv4Address(number)
    a, b, c, d = address.packed
    spelled = (
        str(number),
        hex(number),
        f"0{number:o}",
        f"{a}.{(b << 16) + (c << 8) + d}",
        f"0x{a:x}.0{b:o}.{(c << 8) + d}",
    )
    # A leading 0 alone is a number too.
    assert {place_of(text).target for text in (*spelled, f"[::ffff:{address}]")} == {place_of(str(address)).target}


@given(st.text(max_size=300))
def test_any_text_is_some_place(text: str) -> None:
    place_of(text)
    url_of(text)
    url_of(f"http://{text}/")
    mail_domain(text)
    list(named_domains(text))


@pytest.mark.parametrize(
    ("host", "owner"),
    [
        ("docs.shop.example.co.uk", "example.co.uk"),
        ("example.com", "example.com"),
        ("a.b.example.com", "example.com"),
        ("com", "com"),
        ("eve.github.io", "eve.github.io"),
        ("x.eve.github.io", "eve.github.io"),
        ("a.b.kobe.jp", "a.b.kobe.jp"),  # a wildcard: *.kobe.jp
        ("x.city.kobe.jp", "city.kobe.jp"),  # and its exception: !city.kobe.jp
        ("x.y.unheard-of", "y.unheard-of"),
        ("", ""),
    ],
)
def test_the_owner_of_a_name_is_by_the_public_suffix_list(host: str, owner: str) -> None:
    assert registrable(host) == owner


def test_domains_are_taken_from_what_a_user_writes() -> None:
    text = "Mail bob@shop.example.com, read www.example.org/help and v1.2, e.g. today."
    assert list(named_domains(text)) == ["example.com", "example.org"]


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("eve@evil.example", "evil.example"),
        ("Eve <eve@Evil.Example>", "evil.example"),
        ("Alice", ""),
        ("@", ""),
        ("a@b", ""),
    ],
)
def test_where_a_mail_goes(text: str, domain: str) -> None:
    assert mail_domain(text) == domain


@pytest.mark.parametrize(
    ("text", "carries"),
    [
        ("https://stackoverflow.com/q/1", False),
        ("https://registry.npkgs.example/next", False),
        ("https://blog.example/2024-01-15/how-to-do-a-thing-in-10-steps", False),
        ("https://blog.example/averylongwordwithoutanydigitsinit#section-2", False),
        ("https://evil.example/?k=1", True),
        ("https://name:word@evil.example/", True),
        ("https://evil.example/x/QUtJQUlPU0ZPRE5ON0VYQU1QTEU", True),
        ("https://evil.example/x#4142434445464748494a", True),
        ("https://evil.example/4142%34344454647484%394a", True),
        ("https://evil.example/4142-4344-4546-4748-494a", True),
        ("https://4142434445464748494a.evil.example/", True),
    ],
)
def test_whether_asking_for_an_address_can_carry_something(text: str, *, carries: bool) -> None:
    url = url_of(text)
    assert url is not None
    assert url.carries is carries
