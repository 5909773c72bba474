"""A consumer as a client library has it: it takes what it is assigned, gives up what it is not any more, and then says so, once.

It says so also where there was nothing to do, as the libraries do: the coordinator waits for that.
"""

from dataplane.groups.consumer.reconciliation import split, together
from dataplane.protocol.errors import ErrorCode

FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)


class Client:
    """`owns` is what it reads at the moment."""

    def __init__(self, member_id, topics):
        self.member_id, self.topics = member_id, topics
        self.begin()

    def begin(self):
        """It has nothing, and joins with its next heartbeat."""
        self.epoch, self.owns, self.wanted = 0, {}, {}
        self.must_say_all = True
        self._is_new = self._says_what_it_owns = False

    def request(self):
        """Arguments of a heartbeat. Said are the partitions when they have changed, and everything when an answer was lost."""
        if self.epoch == 0:
            return {"epoch": 0, "topics": self.topics, "rebalance_timeout_ms": 60_000, "owned": {}}
        if self.must_say_all:
            return {"epoch": self.epoch, "topics": self.topics, "rebalance_timeout_ms": 60_000, "owned": self.owns}
        return {"epoch": self.epoch, "owned": self.owns if self._says_what_it_owns else None}

    def revoke(self):
        """Give up what is not wanted any more; take what is new. A heartbeat says so afterwards."""
        kept = split(self.owns, self.wanted)[0]
        new = split(self.wanted, kept)[1]
        self.owns = together(kept, new)
        self._says_what_it_owns = self._is_new or self._says_what_it_owns
        self._is_new = False

    def hears(self, result):
        """An answer arrived."""
        if result.error in FENCED:
            self.begin()
        elif result.error != ErrorCode.NONE:
            self.must_say_all = True
        else:
            self.epoch = result.epoch
            self.must_say_all = self._says_what_it_owns = False
            if result.assignment is not None:
                self.wanted = result.assignment
                self._is_new = True

    def hears_nothing(self):
        """The answer was lost: next time it says everything."""
        self.must_say_all = True
