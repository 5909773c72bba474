"""One broker: the rooms, wired. No decisions here.

Start: read the logs, connect to ZooKeeper, register, run for controller, listen. The internal listener opens before the
registration, so that whoever finds the broker can reach it; tenants' listeners follow their specs. Stop: the other way
round, leaderships given away first (controlled shutdown) so that clients do not notice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dataplane.admission import Admission
from dataplane.auditing.auditing import Auditing
from dataplane.auditing.topics import AuditTopics
from dataplane.cluster.broker_settings import Layers
from dataplane.cluster.membership import Membership
from dataplane.cluster.metadata import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Metadata
from dataplane.cluster.paths import LOG_DIR_EVENT_PREFIX, BrokerAddress, log_dir_event_json
from dataplane.cluster.topic_configs import TopicConfigs
from dataplane.cluster.topic_settings import min_insync_replicas
from dataplane.cluster.watching import RETRY_S
from dataplane.config import BrokerConfig
from dataplane.controller.controller import Controller, Rules
from dataplane.coordination.log import ReplicatedLog
from dataplane.decoded import Decoded
from dataplane.departure import leave
from dataplane.doors import Doors, Listener, TlsClient, ZooKeeperError
from dataplane.flow.facts import FlowFacts
from dataplane.flow.loop_times import LoopTimes
from dataplane.flow.master import MasterFollower
from dataplane.flow.windows import RequestWindows
from dataplane.groups.coordinator import GroupCoordinator
from dataplane.groups.settings import group_settings
from dataplane.groups.topics import ClusterTopics
from dataplane.internal_topics import InternalTopics
from dataplane.metering.instances import ServedInstances
from dataplane.metering.meter import Meter
from dataplane.metering.publisher import Publisher
from dataplane.peers.internal_tls import InternalTls
from dataplane.peers.outbound import Peers
from dataplane.replication.isr import ALTER_PARTITION_VERSION
from dataplane.replication.manager import Replicas
from dataplane.replication.serving.follower_fetches import ReplicaFetches
from dataplane.replication.serving.session_cache import FetchSessions
from dataplane.slices import Slices
from dataplane.storage.manager import LogManager
from dataplane.tasks import Future, Task, sleep
from dataplane.tenancy.certificates import Certificates
from dataplane.tenancy.gate import Gate
from dataplane.tenancy.instance import Instance
from dataplane.tenancy.logins import Logins
from dataplane.tenancy.proxies import Proxies
from dataplane.tenancy.registry import Registry
from dataplane.throttle.debt_queue import DebtQueues
from dataplane.transactions.coordinator import TransactionCoordinator
from dataplane.transactions.limits import UNLIMITED, Allowed
from dataplane.transactions.producer_ids import ProducerIds
from dataplane.transactions.settings import transaction_settings
from dataplane.transactions.verification import Verifier
from quota.agent.agent import Agent
from quota.contracts import identity
from quota.tls.current import Current

Log = Callable[[str], None]

_USAGE_TIMEOUT_S = 1.0


class Broker:
    """See the file's text. Handlers see it as `handlers.context.BrokerRooms`."""

    def __init__(self, config: BrokerConfig, doors: Doors, log: Log) -> None:
        self.config, self.doors, self.log = config, doors, log  # the settings in it may change: see `layers`
        boot = f"{doors.random.getrandbits(64):016x}"
        self._wire_cluster()
        self._wire_data(boot)
        self._wire_groups()
        self._wire_transactions()
        self._wire_tenants(boot)
        self._listener: Listener | None = None
        doors.zookeeper.on_session(self._on_session)

    def _wire_cluster(self) -> None:
        """What it knows of the other brokers, and the ways to them."""
        config, doors = self.config, self.doors
        host, port = config.advertised_internal or config.internal
        self.metadata = Metadata()
        self.membership = Membership(
            doors,
            BrokerAddress(config.id, host, port, config.rack, is_plaintext=config.internal_security.takes_plaintext),
            config.session_timeout_ms / 1000,
            whole_since=lambda: self.logs.unclean_loss.since,
        )
        self.topic_configs = TopicConfigs(doors)
        self.layers = Layers(config.settings)
        self.topic_configs.on_broker_change(self._settings_changed)
        own = identity.broker(config.id)
        credential = config.keys.own(own) or ""
        self.internal_tls = self._internal_tls()
        # Answers of one connection keep the order of its requests. So what waits long has a connection of its own: a
        # new topic waits until brokers have done what the controller ordered, a produce at acks=all for its ISR; markers wait
        # for theirs, and whole transactions for them. A produce waits for the answer whether it may begin.
        self.peers, self.orders, self.patient_peers, self.marker_peers, self.verifying_peers = (
            Peers(doors.loop, own.name, credential, self._address_of, self._tls_to) for _ in range(5)
        )
        self.controller = Controller(doors, config.id, self.orders.call, self._rules_of_the_controller())
        self.topic_configs.on_change(self.controller.topic_config_changed)
        self.topic_configs.on_notifications(self.controller.notifications_seen)
        self.internal_topics = InternalTopics(self)

    def _wire_data(self, boot: str) -> None:
        """Logs, the replicas kept in them, and what reads them."""
        config, doors = self.config, self.doors
        self.logs = LogManager(doors.files, doors.clock, doors.background, config, doors.loop.call_later)
        self.logs.on_directory_failure(self._directory_failed)
        self.membership.on_registered(self.logs.unclean_loss.registered)
        self.publisher = Publisher(doors.loop, self.metadata, self.patient_peers, self.ensure_internal_topic)
        self.meter = Meter(config, doors, boot, self.publisher, self.log)
        self.replicas = Replicas(
            config,
            doors,
            self.logs,
            self.metadata,
            self.topic_configs,
            self.peers,
            broker_epoch=lambda: self.membership.broker_epoch,
            alter_partition=self._alter_partition,
            meter=self.meter,
        )
        self.replicas.roles.on_broken(self._replicas_lost)
        self.replica_fetches = ReplicaFetches(self.replicas)
        self.fetch_sessions = FetchSessions(doors.clock, doors.random, config.settings)
        self.decoded = Decoded()
        self.slices = Slices(doors.loop, doors.background, doors.loop.worked_for, doors.loop.share_of)

    def _wire_groups(self) -> None:
        """Groups."""
        self.groups = GroupCoordinator(
            self.doors.loop,
            ReplicatedLog(self.replicas, OFFSETS_TOPIC),
            self.doors.random,
            group_settings(self.config.settings),
            self._offsets_partitions,
            self.doors.background,
            ClusterTopics(self.metadata),
        )
        self.replicas.roles.on_leadership(self.groups.on_leadership)
        self.metadata.on_deleted(self.groups.partitions_deleted)

    def _wire_transactions(self) -> None:
        """Transactions, and what numbers producers."""
        self.producer_ids = ProducerIds(self.doors.zookeeper, self.config.id)
        self.transactions = TransactionCoordinator(
            self.doors.loop,
            ReplicatedLog(self.replicas, TRANSACTIONS_TOPIC),
            transaction_settings(self.config.settings),
            self._transactions_partitions,
            self.doors.background,
            self.producer_ids,
            self.metadata,
            self.marker_peers.call,
            self._transactions_allowed,
        )
        self.replicas.roles.on_leadership(self.transactions.on_leadership)
        self.metadata.on_updated(self.transactions.on_metadata)
        self.verifier = Verifier(
            lambda: self.config.settings,
            self.doors.loop,
            self.replicas.registry,
            self.metadata,
            self.verifying_peers.call,
        )

    def _wire_tenants(self, boot: str) -> None:
        """Instances, their connections, and the quota that they have of this broker."""
        config, doors = self.config, self.doors
        self.agent = Agent(
            broker=config.id, boot=boot, now=doors.clock.monotonic(), period_ms=config.settings.quota_report_period_ms
        )
        self.debt_queues = DebtQueues(doors.loop)
        self.gate = Gate(self.agent, doors.loop, self.debt_queues, config.settings.group_bytes_per_s_per_instance)
        self.logins = Logins(doors, config.keys.secret, lambda: self.config.settings.connections_max_reauth_ms)
        self.auditing = Auditing(
            doors,
            config.id,
            AuditTopics(doors.loop, self.metadata, self.patient_peers, self.ensure_internal_topic),
            tells_changes=config.settings.changes_topic_enable,
        )
        self.admission = Admission(self, self.internal_tls)
        self.logins.on_outcome = self.admission.logged_in
        secrets = (config.keys.secret, *config.keys.accepted)  # those in ZooKeeper may be sealed with an earlier one
        certificates = Certificates(secrets, doors.background, lambda: self.config.settings.tls_handshakes_per_s)
        self.registry = Registry(
            doors,
            config.id,
            boot,
            self.admission.tenant,
            self._instance_changed,
            certificates,
            Proxies(config.proxy_peers),
            self.slices,
            self.admission.wait_s,
        )
        self.served = ServedInstances(self.registry, doors.loop)
        self.meter.instances.source = self.served
        loop_times = LoopTimes(doors.loop.worked_s, doors.clock.monotonic)
        self.facts = FlowFacts(
            config.id,
            self.registry,
            self.replicas,
            self.metadata,
            self.groups,
            doors.loop,
            self.transactions,
            forgotten_producers=self.logs.producer_budgets.forgotten,
            refused_sessions=self.fetch_sessions.refused,
            failed_logins=self._failed_logins,
            refused_in_transactions=lambda: self.transactions.refusals + self.groups.refusals,
            times=loop_times,
        )
        self.request_windows = RequestWindows(
            self.registry.all,
            doors.clock.now_ms,
            lambda name: self.agent.carried_bytes(name, doors.clock.monotonic()),
            loop_times,
            self.meter.moved,
        )
        self.master = MasterFollower(
            doors,
            self.agent,
            config.id,
            "" if not config.internal_security.takes_plaintext else config.keys.own(identity.broker(config.id)) or "",
            self.facts,
            self.log,
            self.facts.take_load,
            self.facts.absent,
            self.request_windows.report_steps,
            self.internal_tls,
        )

    # --- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> Future[None]:
        """Resolved when the broker is registered and serves; fails with what is in the way."""
        return Task(self._start(), "start")

    async def _start(self) -> None:
        began = self.doors.clock.monotonic()
        if self.config.internal_authentication == "none":
            self.log("WARNING: internal_authentication is none: whoever reaches the internal listener may do anything")
        self.logs.open_all()
        self.meter.open([path for path, error in self.logs.directories() if error is None])
        tls = self.internal_tls
        if tls is not None:
            tls.start()
        self._listener = self.doors.loop.listen(*self.config.internal, self.admission.internal, tls=tls is not None)
        await self.membership.start()
        await self.topic_configs.start()
        self.replicas.start()
        self.groups.start()
        self.controller.start()
        self.registry.start()
        self.master.start()
        self.meter.start()
        self.admission.start()
        Task(self.publisher.prepare(), "usage topic")
        self.log(f"broker {self.config.id} is up after {self.doors.clock.monotonic() - began:.2f} s")

    def stop(self) -> Future[None]:
        """Give leaderships away, close everything. Resolved when nothing is left open."""
        return Task(self._stop(), "stop")

    async def _stop(self) -> None:
        await leave(self)
        for instance in self.registry.all():
            for connection in instance.connections:
                connection.tell_traffic()
        self.registry.let_go()  # what they have used is told as well
        await self.meter.stop(_USAGE_TIMEOUT_S)
        self.admission.stop()
        self.auditing.stop()
        self.publisher.close()
        self.master.stop()
        self.registry.close()
        self.controller.stop()
        self.groups.stop()
        self.transactions.stop()
        await self.replicas.stop()
        self.membership.stop()
        self.topic_configs.stop()
        if self._listener is not None:
            self._listener.close()
        for peers in (self.peers, self.orders, self.patient_peers, self.marker_peers, self.verifying_peers):
            peers.close()
        if self.internal_tls is not None:
            self.internal_tls.stop()
        self.logs.close()
        self.doors.zookeeper.close()

    # --- what rooms need of each other ----------------------------------------------------------------------------------

    def _call(self, broker_id: int, request: Any, version: int, timeout_s: float = 30.0) -> Future[Any]:
        """Ask another broker, or this one, over its internal listener."""
        return self.peers.call(broker_id, request, version, timeout_s)

    def _address_of(self, broker_id: int) -> tuple[str, int] | None:
        broker = self.metadata.brokers.get(broker_id)
        if broker is None:  # the controller knows a new broker before anybody's metadata do
            known = self.controller.broker_address(broker_id)
            return None if known is None else (known.host, known.port)
        return broker.host, broker.port

    def _internal_tls(self) -> InternalTls | None:
        """Raises OSError, ValueError where there should be TLS and its files cannot be used; `config.load` has looked."""
        config = self.config
        if not config.internal_security.has_tls:
            return None
        own = identity.broker(config.id)
        current = Current(config.tls_folder, own, self.doors.files.read_file, config.tls_identities)
        return InternalTls(current, self.doors, config.internal_security, self.log)

    def _tls_to(self, broker_id: int) -> TlsClient | None:
        tls = self.internal_tls
        if tls is None or not tls.security.connects_with_tls:
            return None
        return tls.client(identity.broker(broker_id))

    def _alter_partition(self, request: Any) -> Future[Any]:
        return self._call(self.metadata.controller_id, request, ALTER_PARTITION_VERSION)

    def _offsets_partitions(self) -> int:
        return len(self.metadata.partitions(OFFSETS_TOPIC)) or self.config.settings.offsets_topic_num_partitions

    def _transactions_partitions(self) -> int:
        settings = self.config.settings
        return len(self.metadata.partitions(TRANSACTIONS_TOPIC)) or settings.transaction_state_log_num_partitions

    def _transactions_allowed(self, key: str) -> Allowed:
        """What an instance may have of transactions, and what it has on other brokers."""
        instance = self.registry.by_key(key)
        if instance is None:
            return UNLIMITED
        limits = instance.spec.limits
        is_open, ids = self.agent.transactions_elsewhere(instance.spec.id)
        return Allowed(limits.open_transactions, limits.transactional_ids, limits.transaction_timeout_ms, is_open, ids)

    def _directory_failed(self, path: str, error: str, keys: list[tuple[str, int]]) -> None:
        self.log(f"data directory {path} is OFFLINE until the next start, with {len(keys)} replicas: {error}")
        self._replicas_lost()

    def _replicas_lost(self) -> None:
        if self._listener is not None:  # else the controller asks anyway, when we are registered
            Task(self._tell_of_lost_replicas(), "lost replicas")

    async def _tell_of_lost_replicas(self) -> None:
        """The controller elects other leaders. A new session needs no telling: it begins with all our replicas."""
        event = log_dir_event_json(self.config.id)
        while True:
            try:
                await self.doors.zookeeper.create(LOG_DIR_EVENT_PREFIX, event, sequential=True, parents=True)
            except ZooKeeperError:
                await sleep(self.doors.loop, RETRY_S)
            else:
                return

    def ensure_internal_topic(self, name: str) -> Future[None]:
        """Create a topic of the cluster's own if it is missing; resolved when this broker knows it."""
        return self.internal_topics.ensure(name)

    def create_topic_automatically(self, physical: str) -> None:
        """A client named a topic that does not exist, in an instance that allows it to come into being."""
        self.internal_topics.create_for_tenant(physical)

    def _failed_logins(self) -> dict[str, int]:
        failed = {account: failed for account, (_, failed) in self.logins.outcomes().items() if failed}
        strangers = self.admission.strangers.failed
        return {**failed, "": strangers} if strangers else failed

    def _settings_changed(self) -> None:
        """Somebody has set something for this broker, or for all, while they run."""
        self.layers = replace(
            self.layers,
            all_brokers=self.topic_configs.of_broker(None),
            this_broker=self.topic_configs.of_broker(self.config.id),
        )
        self.config = replace(self.config, settings=self.layers.effective)
        self.replicas.configuration.take_settings(self.config)
        self.slices.run("", self.replicas.configuration.all_anew())
        self.controller.take_rules(self._rules_of_the_controller())

    def _rules_of_the_controller(self) -> Rules:
        settings = self.config.settings
        return Rules(
            partitions=settings.num_partitions,
            replication_factor=settings.default_replication_factor,
            unclean_election=settings.unclean_leader_election_enable,
            rebalance_interval_s=settings.leader_imbalance_check_interval_ms / 1000,
            min_insync_replicas=lambda topic: min_insync_replicas(self.topic_configs.get(topic), self.config.settings),
        )

    def _instance_changed(self, instance: Instance, present: bool) -> None:
        if present:
            self.gate.configure(instance)
            self.replicas.configuration.take_largest_batch(
                instance.names.key, instance.spec.topic_defaults.max_message_bytes
            )
        else:
            self._meter_last(instance)
            self.gate.remove(instance)
            self.logins.forget(instance.names.key)
            self.auditing.forget(instance)
            self.replicas.configuration.take_largest_batch(instance.names.key, None)
            self.fetch_sessions.drop(instance.names.key)
            self.logs.producer_budgets.drop(instance.names.key)

    def _meter_last(self, instance: Instance) -> None:
        """What an instance that goes has used, before the loop and its buckets forget it."""
        for connection in instance.connections:  # they are being closed, and hear of it at the end of the turn
            connection.tell_traffic()
        self.meter.instances.gone(instance.spec.id, self.served.reading(instance), instance.user_traffic)

    def _on_session(self, state: str) -> None:
        if state == "connected" and self._listener is not None:
            self.registry.start()
            self.master.follow()
