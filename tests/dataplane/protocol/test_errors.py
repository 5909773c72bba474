"""A refusal that is kept among thousands does not keep what it was raised from."""

import gc
import weakref

from dataplane.protocol.errors import ApiError, ErrorCode


class Request:
    """What a frame refers to."""


def test_a_kept_refusal_lets_its_frames_go():
    def refuse():
        request = Request()
        seen.append(weakref.ref(request))
        raise ApiError(ErrorCode.INVALID_REQUEST, "no")

    seen, refusals = [], []
    for _ in range(3):
        try:
            refuse()
        except ApiError as refusal:
            refusals.append(refusal.kept())
    gc.collect()
    assert [each() for each in seen] == [None] * 3
    assert {(each.code, each.message) for each in refusals} == {(ErrorCode.INVALID_REQUEST, "no")}
