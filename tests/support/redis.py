"""A real Redis for a test: `RedisServer(tmp_path / "redis", free_port())`, its `url`; the rest is `StoreServer`."""

from controlplane.stack import redis
from tests.support.store import HOST, StoreServer


class RedisServer(StoreServer):
    """One server on loopback that keeps its append-only file in `directory`."""

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}/0"

    def prepare(self) -> list[str]:
        return redis.prepare(self.directory, self.port)

    def answers(self) -> bool:
        return redis.answers(HOST, self.port)
