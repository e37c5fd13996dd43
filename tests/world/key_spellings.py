"""Generate texts that are written like keys of a type, or nearly, for property tests."""

from decimal import Decimal
from ipaddress import IPv6Address

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from makewhole.model.points import KeyType

_DIGITS = st.text("0123456789", min_size=1, max_size=22)
_SIGNS = st.sampled_from(["", "", "-", "+"])
_NUMBERS = st.one_of(
    st.integers(-(2**65), 2**65).map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(lambda number: format(number, "f")),
    st.builds(lambda sign, digits: sign + digits, _SIGNS, _DIGITS),
    st.builds("{}{}.{}".format, _SIGNS, _DIGITS, _DIGITS),
    st.builds("{}{}e{}".format, _SIGNS, _DIGITS, st.integers(-40, 40)),
    st.sampled_from(
        ["1_2", "１２", "-0", "-0.00", "+0", "0e5", "1e1000", "1e999", "1e-999", "NaN", "Infinity", "0x1f"]
    ),
    st.sampled_from(["", " 1", "1 ", "1\n", ".5", "5.", "1e", "e5", "--1", "007", "9223372036854775808", "0" * 1001]),
    st.sampled_from(["-9223372036854775808", "9223372036854775807.0", "1e18", "1e19", "1.5e1", "15e-1"]),
)
_UUIDS = st.one_of(
    st.uuids().map(str),
    st.uuids().map(lambda value: str(value).upper()),
    st.uuids().map(lambda value: value.hex),
    st.uuids().map(lambda value: f"{{{value}}}"),
    st.uuids().map(lambda value: f"{value.hex[:8]}-{value.hex[8:]}"),
    st.uuids().map(lambda value: f"{value.hex[:6]}-{value.hex[6:]}"),
    st.sampled_from(["", "urn:uuid:0", "0" * 31, "g" * 32, " " + "0" * 32]),
)
_DATES = st.one_of(
    st.dates().map(str),
    st.builds("{:04d}-{:02d}-{:02d}".format, st.integers(0, 9999), st.integers(0, 13), st.integers(0, 32)),
    st.sampled_from(["", "infinity", "2013-1-1", "20130101", "2013-W01-1", "1900-02-29", "2000-02-29", "2013-02-30"]),
    st.sampled_from(["2013-01-01 BC", "9999-12-31", "0001-01-01", "2013-01-01\n", "２013-01-01"]),
)
_BOOLEANS = st.sampled_from(["true", "TRUE", "False", "t", "F", "yes", "on", "1", "0", "", " true", "tru", "true\n"])
_CHARS = st.one_of(st.text("ab ", max_size=6), st.sampled_from(["", " ", "a\t", "a\u00a0 ", "\u3000", "ü "]))
_ADDRESSES = st.one_of(
    st.ip_addresses().map(str),
    st.ip_addresses(v=6).map(lambda address: address.exploded.upper()),
    st.integers(0, 2**48 - 1).map(lambda number: str(IPv6Address(number))),
    st.builds("::ffff:{}".format, st.ip_addresses(v=4)),
    st.builds("{}:{}".format, st.sampled_from(["", "::1", "1:2:3:4:5:6", "1::6", ":"]), st.ip_addresses(v=4)),
    st.builds("{}/{}".format, st.ip_addresses(), st.integers(0, 130)),
    st.lists(st.sampled_from(["0", "1", "00a", "FFFF", ""]), min_size=2, max_size=9).map(":".join),
    st.sampled_from(["", " ::1", "::1\n", "10/8", "10.1", "010.0.0.01", "1.2.3.4/08", "1.2.3.4/", "1.2.3.256", "::g"]),
    st.sampled_from(
        ["fe80::1%eth0", "10.0.0.0/255.0.0.0", "::1.2.3", "::ffff:01.2.3.4", "1::2:3:4:5:6:7:8", "１.2.3.4"]
    ),
)

SPELLINGS: dict[KeyType, SearchStrategy[str]] = {
    KeyType.CHAR: _CHARS,
    KeyType.BIGINT: _NUMBERS,
    KeyType.DECIMAL: _NUMBERS,
    KeyType.UUID: _UUIDS,
    KeyType.BOOLEAN: _BOOLEANS,
    KeyType.DATE: _DATES,
    KeyType.INET: _ADDRESSES,
}
"""Texts by the type of which they are a key, or nearly; a column of texts can hold each."""

MOMENTS: SearchStrategy[str] = st.one_of(
    st.datetimes().map(str),
    st.datetimes().map(lambda moment: moment.isoformat() + "Z"),
    st.datetimes().map(lambda moment: moment.isoformat() + "+05:30"),
    st.sampled_from(["infinity", "-infinity", "2013-01-01", "2013-01-01 00:00 BC", "294276-12-31 23:59:59.999999"]),
    st.sampled_from(["2013-01-01T12:00:00.1234567Z", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z"]),
)
"""Texts that PostgreSQL reads as moments."""

JSON_SCALARS: SearchStrategy[object] = st.one_of(
    *SPELLINGS.values(),
    MOMENTS,
    st.text(max_size=8),
    st.integers(-(2**65), 2**65),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.sampled_from([Decimal("5.00"), Decimal("1E+2"), Decimal("-0.0"), 7, -7, 10**17]),
    st.booleans(),
    st.none(),
)
"""Scalars as JSON has them."""
