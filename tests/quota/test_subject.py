"""The subject of a certificate as Java writes it, and so Kafka: RFC 2253."""

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from quota.core.subject import subject_of
from tests.support.certificates import Authority

AUTHORITY = Authority()


def of(*rdns):
    """Of a certificate whose subject has these parts, the most general first."""
    name = x509.Name(
        [
            x509.RelativeDistinguishedName(
                [part if isinstance(part, x509.NameAttribute) else x509.NameAttribute(*part) for part in rdn]
            )
            for rdn in rdns
        ]
    )
    return subject_of(AUTHORITY.issue(name).der)


def test_the_most_special_part_is_first():
    parts = [
        (NameOID.COUNTRY_NAME, "CN"),
        (NameOID.STATE_OR_PROVINCE_NAME, "GD"),
        (NameOID.LOCALITY_NAME, "Shenzhen"),
        (NameOID.ORGANIZATION_NAME, "Org"),
        (NameOID.ORGANIZATIONAL_UNIT_NAME, "Users"),
        (NameOID.COMMON_NAME, "writeuser"),
    ]
    assert of(*([part] for part in parts)) == "CN=writeuser,OU=Users,O=Org,L=Shenzhen,ST=GD,C=CN"


def test_other_kinds_that_the_rfc_names():
    parts = [(NameOID.DOMAIN_COMPONENT, "com"), (NameOID.STREET_ADDRESS, "1 Road"), (NameOID.USER_ID, "u1")]
    assert of(*([part] for part in parts)) == "UID=u1,STREET=1 Road,DC=com"


def test_parts_of_one_level_are_joined_by_a_plus():
    assert of([(NameOID.ORGANIZATION_NAME, "o")], [(NameOID.COMMON_NAME, "a"), (NameOID.USER_ID, "b")]) in (
        "CN=a+UID=b,O=o",
        "UID=b+CN=a,O=o",
    )


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a,b", "a\\,b"),
        ('=+<>#;"\\', '\\=\\+\\<\\>\\#\\;\\"\\\\'),
        (" a b ", "\\ a b\\ "),
        ("  ", "\\ \\ "),
        ("a\0b", "a\\00b"),
        ("\u5f20\u4e09", "\u5f20\u4e09"),
    ],
)
def test_what_has_a_meaning_is_escaped(value, written):
    assert of([(NameOID.COMMON_NAME, value)]) == f"CN={written}"


def test_an_address_is_a_number_and_hexadecimal():
    mail = x509.NameAttribute(NameOID.EMAIL_ADDRESS, "me@example.com", _ASN1Type.IA5String)
    assert of([mail], [(NameOID.COMMON_NAME, "me")]) == ("CN=me,1.2.840.113549.1.9.1=#160e" + b"me@example.com".hex())


def test_a_long_value_of_an_unknown_kind_is_whole():
    kind = x509.ObjectIdentifier("1.3.6.1.4.1.311.99999.1")
    value = "x" * 300
    assert of([x509.NameAttribute(kind, value)]) == f"{kind.dotted_string}=#0c82012c" + value.encode().hex()


def test_a_subject_may_be_empty():
    assert of() == ""


def test_what_is_no_certificate_is_an_error():
    with pytest.raises(ValueError):
        subject_of(b"\x30\x00")
