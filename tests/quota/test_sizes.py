"""Sizes as tenants read them, of brokers and of the control plane alike."""

import pytest

from quota.contracts.instance import GIB, MIB
from quota.contracts.sizes import size_text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 MiB"),
        (500, "0 MiB"),
        (MIB // 100 + 1, "0.01 MiB"),
        (3 * MIB, "3 MiB"),
        (1_023 * MIB + MIB // 2, "1023.5 MiB"),
        (GIB, "1 GiB"),
        (10 * GIB, "10 GiB"),
        (10 * GIB + GIB // 3, "10.33 GiB"),
        (123_456 * GIB, "123456 GiB"),
    ],
)
def test_a_size_is_told_to_the_hundredth_without_zeroes_or_powers_of_ten(size, text):
    assert size_text(size) == text
