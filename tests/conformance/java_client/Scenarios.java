import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.GroupNotEmptyException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * What an application does with the Java client; one line of JSON per scenario on standard output.
 *
 * <p>Arguments: bootstrap servers, replicas, part of a scenario's name.
 */
public final class Scenarios {
  private static final long LIMIT_S = 90;
  private static final long PATIENCE_MS = 30_000;

  private interface Body {
    void run() throws Exception;
  }

  private final String bootstrap;
  private final short replicas;
  private final String run = UUID.randomUUID().toString().substring(0, 8);
  private final Map<String, Body> all = new LinkedHashMap<>();

  private Scenarios(String bootstrap, short replicas) {
    this.bootstrap = bootstrap;
    this.replicas = replicas;
    all.put("produce_and_consume", this::produceAndConsume);
    for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
      all.put("compression_" + codec, () -> compression(codec));
    }
    all.put("headers_nulls_and_empty_values", this::headers);
    all.put("acks_of_all_kinds", this::acks);
    all.put("an_idempotent_producer_keeps_order", this::idempotent);
    all.put("a_record_that_is_too_large", this::tooLarge);
    all.put("offsets_for_times", this::times);
    all.put("append_time", this::appendTime);
    all.put("seek_beginning_end_and_between", this::seek);
    all.put("pause_and_resume", this::pause);
    all.put("three_members_share_and_one_leaves", () -> group(Map.of()));
    all.put(
        "three_cooperative_members",
        () -> group(Map.of("partition.assignment.strategy", CooperativeStickyAssignor.class.getName())));
    all.put("a_static_member_comes_back", this::staticMember);
    all.put("commits_with_metadata", this::commits);
    all.put("a_pattern_finds_new_topics", this::pattern);
    all.put("admin_topics", this::adminTopics);
    all.put("admin_partitions", this::adminPartitions);
    all.put("admin_configs", this::adminConfigs);
    all.put("admin_groups", this::adminGroups);
    all.put("admin_offsets_and_deleted_records", this::adminOffsets);
    all.put("admin_cluster", this::adminCluster);
    all.put("admin_log_dirs", this::adminLogDirs);
    all.put("admin_producers", this::adminProducers);
    all.put("transactions", this::transactions);
  }

  public static void main(String[] arguments) throws Exception {
    Scenarios scenarios = new Scenarios(arguments[0], Short.parseShort(arguments[1]));
    String only = arguments.length > 2 ? arguments[2] : "";
    ExecutorService threads = Executors.newCachedThreadPool();
    for (Map.Entry<String, Body> entry : scenarios.all.entrySet()) {
      if (entry.getKey().contains(only)) {
        scenarios.one(threads, entry.getKey(), entry.getValue());
      }
    }
    System.exit(0);
  }

  private void one(ExecutorService threads, String test, Body body) throws Exception {
    long began = System.nanoTime();
    String outcome = "pass";
    String remark = "";
    Future<?> future =
        threads.submit(
            () -> {
              body.run();
              return null;
            });
    try {
      future.get(LIMIT_S, TimeUnit.SECONDS);
    } catch (TimeoutException error) {
      future.cancel(true);
      outcome = "timeout";
    } catch (ExecutionException error) {
      outcome = "fail";
      remark = error.getCause().toString();
    }
    double seconds = (System.nanoTime() - began) / 1e9;
    String safe = remark.replaceAll("[\"\\\\\\p{Cntrl}]", " ");
    System.out.printf(
        "{\"test\": \"%s\", \"outcome\": \"%s\", \"seconds\": %.1f, \"remark\": \"%s\"}%n",
        test, outcome, seconds, safe.substring(0, Math.min(400, safe.length())));
  }

  // --- scenarios ---------------------------------------------------------------------------------

  private void produceAndConsume() throws Exception {
    String topic = topic("pc", 3);
    produce(topic, 300, 3, Map.of());
    List<ConsumerRecord<String, String>> found = read(topic, 3, 300);
    check(distinct(found) == 300, "distinct values: " + distinct(found));
    Map<Integer, Long> next = new HashMap<>();
    for (ConsumerRecord<String, String> record : found) {
      long expected = next.getOrDefault(record.partition(), 0L);
      check(record.offset() == expected, "offset " + record.offset() + " instead of " + expected);
      next.put(record.partition(), expected + 1);
    }
  }

  private void compression(String codec) throws Exception {
    String topic = topic("codec-" + codec, 1);
    produce(topic, 500, 1, Map.of("compression.type", codec, "linger.ms", "20"));
    check(distinct(read(topic, 1, 500)) == 500, "500 values");
  }

  private void headers() throws Exception {
    String topic = topic("headers", 1);
    try (KafkaProducer<String, String> producer = producer(Map.of())) {
      ProducerRecord<String, String> first = new ProducerRecord<>(topic, null, "a");
      first.headers().add(new RecordHeader("one", "x".getBytes())).add(new RecordHeader("none", (byte[]) null));
      producer.send(first).get();
      producer.send(new ProducerRecord<>(topic, "", "")).get();
      producer.send(new ProducerRecord<>(topic, "gone", null)).get();
    }
    List<ConsumerRecord<String, String>> found = read(topic, 1, 3);
    check(found.get(0).key() == null && new String(found.get(0).headers().lastHeader("one").value()).equals("x"), "header");
    check(found.get(0).headers().lastHeader("none").value() == null, "a header without a value");
    check(found.get(1).key().isEmpty() && found.get(1).value().isEmpty(), "empty key and value");
    check(found.get(2).value() == null, "null as a value");
  }

  private void acks() throws Exception {
    String topic = topic("acks", 1);
    for (String acks : List.of("0", "1", "all")) {
      produce(topic, 10, 1, Map.of("acks", acks, "enable.idempotence", "false"));
    }
    read(topic, 1, 30);
  }

  private void idempotent() throws Exception {
    String topic = topic("idempotent", 1);
    produce(topic, 5_000, 1, Map.of("enable.idempotence", "true", "batch.size", "500"));
    List<ConsumerRecord<String, String>> found = read(topic, 1, 5_000);
    for (int n = 0; n < 5_000; n++) {
      check(found.get(n).value().equals("v" + n), "record " + n + " is " + found.get(n).value());
    }
  }

  private void tooLarge() throws Exception {
    String topic = topic("large", 1, Map.of("max.message.bytes", "1000"));
    try (KafkaProducer<String, String> producer = producer(Map.of())) {
      Exception refused = failure(producer.send(new ProducerRecord<>(topic, "x".repeat(5_000))));
      check(refused instanceof RecordTooLargeException, "refused, not " + refused);
      producer.send(new ProducerRecord<>(topic, "small")).get();
    }
  }

  private void times() throws Exception {
    String topic = topic("times", 1);
    long base = System.currentTimeMillis() - 60_000;
    try (KafkaProducer<String, String> producer = producer(Map.of())) {
      for (int n = 0; n < 10; n++) {
        producer.send(new ProducerRecord<>(topic, 0, base + n * 1_000L, "k", "v" + n)).get();
      }
    }
    TopicPartition partition = new TopicPartition(topic, 0);
    try (KafkaConsumer<String, String> consumer = consumer("", Map.of())) {
      OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, base + 3_500)).get(partition);
      check(found.offset() == 4 && found.timestamp() == base + 4_000, "found " + found);
      check(consumer.offsetsForTimes(Map.of(partition, base + 60_000)).get(partition) == null, "nothing later");
    }
    try (Admin admin = admin()) {
      long newest = admin.listOffsets(Map.of(partition, OffsetSpec.maxTimestamp())).partitionResult(partition).get().offset();
      check(newest == 9, "the newest record is at " + newest);
    }
  }

  private void appendTime() throws Exception {
    String topic = topic("append", 1, Map.of("message.timestamp.type", "LogAppendTime"));
    long before = System.currentTimeMillis();
    try (KafkaProducer<String, String> producer = producer(Map.of())) {
      RecordMetadata sent = producer.send(new ProducerRecord<>(topic, 0, 1_000L, "k", "v")).get();
      check(sent.timestamp() >= before - 1_000, "the broker's time, not " + sent.timestamp());
    }
    check(read(topic, 1, 1).get(0).timestamp() >= before - 1_000, "the broker's time, read");
  }

  private void seek() throws Exception {
    String topic = topic("seek", 1);
    produce(topic, 20, 1, Map.of());
    TopicPartition partition = new TopicPartition(topic, 0);
    try (KafkaConsumer<String, String> consumer = consumer("", Map.of())) {
      consumer.assign(List.of(partition));
      consumer.seek(partition, 13);
      check(poll(consumer, 7).get(0).offset() == 13, "from 13");
      consumer.seekToBeginning(List.of(partition));
      check(consumer.position(partition) == 0 && poll(consumer, 20).get(0).offset() == 0, "from the beginning");
      consumer.seekToEnd(List.of(partition));
      check(consumer.position(partition) == 20, "the end");
      check(consumer.beginningOffsets(List.of(partition)).get(partition) == 0, "beginning offset");
      check(consumer.endOffsets(List.of(partition)).get(partition) == 20, "end offset");
      consumer.seek(partition, 500);
      check(poll(consumer, 20).get(0).offset() == 0, "out of range: reset to the earliest");
    }
  }

  private void pause() throws Exception {
    String topic = topic("pause", 2);
    produce(topic, 20, 2, Map.of());
    List<TopicPartition> both = List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
    try (KafkaConsumer<String, String> consumer = consumer("", Map.of())) {
      consumer.assign(both);
      consumer.pause(both.subList(0, 1));
      check(poll(consumer, 10).stream().allMatch(record -> record.partition() == 1), "only the other");
      check(consumer.poll(Duration.ofMillis(500)).isEmpty(), "nothing more");
      consumer.resume(both);
      check(poll(consumer, 10).stream().allMatch(record -> record.partition() == 0), "then the rest");
    }
  }

  private void group(Map<String, String> settings) throws Exception {
    String topic = topic("group" + settings.size(), 6);
    String group = name("group" + settings.size());
    List<Member> members = new ArrayList<>();
    for (int n = 0; n < 3; n++) {
      members.add(new Member(group, List.of(topic), settings));
    }
    await(() -> members.stream().allMatch(member -> member.held == 2), "two partitions each");
    produce(topic, 300, 6, Map.of());
    await(() -> members.stream().mapToInt(member -> member.seen.size()).sum() >= 300, "300 records");
    check(members.stream().allMatch(member -> !member.seen.isEmpty()), "all have read");
    members.get(2).close();
    await(() -> members.get(0).held == 3 && members.get(1).held == 3, "three partitions each");
    produce(topic, 300, 6, Map.of());
    await(() -> members.stream().mapToInt(member -> member.seen.size()).sum() >= 600, "600 records");
    for (Member member : members) {
      member.close();
    }
    Set<String> places = new HashSet<>();
    for (Member member : members) {
      member.seen.forEach(record -> places.add(record.partition() + "@" + record.offset()));
    }
    check(places.size() == 600, "distinct records: " + places.size());
  }

  private void staticMember() throws Exception {
    String topic = topic("static", 4);
    String group = name("static");
    Map<String, String> first = Map.of("group.instance.id", "one");
    Member stays = new Member(group, List.of(topic), Map.of("group.instance.id", "two"));
    Member goes = new Member(group, List.of(topic), first);
    await(() -> stays.held == 2 && goes.held == 2, "two partitions each");
    goes.close();
    int rebalances = stays.rebalances;
    Member back = new Member(group, List.of(topic), first);
    await(() -> back.held == 2, "its partitions again");
    check(stays.held == 2 && stays.rebalances == rebalances, "no rebalance for the other");
    back.close();
    stays.close();
  }

  private void commits() throws Exception {
    String topic = topic("commits", 1);
    String group = name("commits");
    produce(topic, 10, 1, Map.of());
    TopicPartition partition = new TopicPartition(topic, 0);
    try (KafkaConsumer<String, String> consumer = consumer(group, Map.of())) {
      consumer.assign(List.of(partition));
      consumer.commitSync(Map.of(partition, new OffsetAndMetadata(6, "here")));
      OffsetAndMetadata found = consumer.committed(Set.of(partition)).get(partition);
      check(found.offset() == 6 && found.metadata().equals("here"), "committed " + found);
    }
    try (KafkaConsumer<String, String> consumer = consumer(group, Map.of())) {
      consumer.assign(List.of(partition));
      check(poll(consumer, 4).get(0).offset() == 6, "begins at 6");
    }
  }

  private void pattern() throws Exception {
    String group = name("pattern");
    String first = topic("pattern-a", 1);
    Map<String, String> settings = Map.of("metadata.max.age.ms", "500");
    Member member = new Member(group, java.util.regex.Pattern.compile(name("pattern-") + ".*"), settings);
    await(() -> member.held == 1, "the first topic");
    String second = topic("pattern-b", 2);
    await(() -> member.held == 3, "the second topic too");
    produce(first, 5, 1, Map.of());
    produce(second, 5, 2, Map.of());
    await(() -> member.seen.size() >= 10, "10 records");
    member.close();
  }

  private void adminTopics() throws Exception {
    String topic = topic("admin", 3);
    try (Admin admin = admin()) {
      check(admin.listTopics().names().get().contains(topic), "it is listed");
      var described = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
      check(described.partitions().size() == 3 && !described.isInternal(), "description " + described);
      check(!described.topicId().equals(org.apache.kafka.common.Uuid.ZERO_UUID), "it has an id");
      check(described.partitions().stream().allMatch(p -> p.isr().size() == replicas), "all in sync");
      Exception again = failure(admin.createTopics(List.of(new NewTopic(topic, 1, replicas))).all());
      check(again instanceof TopicExistsException, "made again: " + again);
      var byId = admin.describeTopics(org.apache.kafka.common.TopicCollection.ofTopicIds(List.of(described.topicId())));
      check(byId.allTopicIds().get().get(described.topicId()).name().equals(topic), "by id");
      admin.deleteTopics(List.of(topic)).all().get();
      await(() -> !names(admin).contains(topic), "it to be gone");
      Exception gone = failure(admin.deleteTopics(List.of(topic)).all());
      check(gone instanceof UnknownTopicOrPartitionException, "deleted again: " + gone);
    }
  }

  private void adminPartitions() throws Exception {
    String topic = topic("grow", 1);
    try (Admin admin = admin()) {
      admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(4))).all().get();
      await(() -> partitions(admin, topic) == 4, "four partitions");
      produce(topic, 40, 4, Map.of());
      read(topic, 4, 40);
      check(failure(admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(2))).all()) != null, "not fewer");
    }
  }

  private void adminConfigs() throws Exception {
    String topic = topic("configs", 1);
    ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
    try (Admin admin = admin()) {
      var set = new AlterConfigOp(new ConfigEntry("retention.ms", "7200000"), AlterConfigOp.OpType.SET);
      admin.incrementalAlterConfigs(Map.of(resource, List.of(set))).all().get();
      await(() -> config(admin, resource, "retention.ms").value().equals("7200000"), "the new value");
      ConfigEntry entry = config(admin, resource, "retention.ms");
      check(entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG, "source " + entry.source());
      var delete = new AlterConfigOp(new ConfigEntry("retention.ms", null), AlterConfigOp.OpType.DELETE);
      admin.incrementalAlterConfigs(Map.of(resource, List.of(delete))).all().get();
      await(() -> config(admin, resource, "retention.ms").isDefault(), "the default");
      var append = new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact"), AlterConfigOp.OpType.APPEND);
      admin.incrementalAlterConfigs(Map.of(resource, List.of(append))).all().get();
      await(() -> config(admin, resource, "cleanup.policy").value().equals("delete,compact"), "both policies");
      var bad = new AlterConfigOp(new ConfigEntry("retention.ms", "soon"), AlterConfigOp.OpType.SET);
      check(failure(admin.incrementalAlterConfigs(Map.of(resource, List.of(bad))).all()) != null, "a bad value");
    }
  }

  private void adminGroups() throws Exception {
    String topic = topic("groups", 2);
    String group = name("groups");
    Member member = new Member(group, List.of(topic), Map.of());
    await(() -> member.held == 2, "a member");
    try (Admin admin = admin()) {
      check(admin.listConsumerGroups().all().get().stream().anyMatch(g -> g.groupId().equals(group)), "it is listed");
      var described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
      check(described.members().size() == 1 && described.state().toString().equals("Stable"), "it is " + described);
      Exception refused = failure(admin.deleteConsumerGroups(List.of(group)).all());
      check(refused instanceof GroupNotEmptyException, "with members: " + refused);
      member.close();
      TopicPartition partition = new TopicPartition(topic, 0);
      await(() -> empty(admin, group), "it to be empty");
      admin.alterConsumerGroupOffsets(group, Map.of(partition, new OffsetAndMetadata(0))).all().get();
      admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all().get();
      check(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(partition) == null, "no offset");
      admin.deleteConsumerGroups(List.of(group)).all().get();
      check(admin.listConsumerGroups().all().get().stream().noneMatch(g -> g.groupId().equals(group)), "it is gone");
    }
  }

  private void adminOffsets() throws Exception {
    String topic = topic("offsets", 1);
    produce(topic, 10, 1, Map.of());
    TopicPartition partition = new TopicPartition(topic, 0);
    try (Admin admin = admin()) {
      check(offset(admin, partition, OffsetSpec.latest()) == 10, "latest");
      check(offset(admin, partition, OffsetSpec.earliest()) == 0, "earliest");
      long low = admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(4))).lowWatermarks().get(partition).get().lowWatermark();
      check(low == 4 && offset(admin, partition, OffsetSpec.earliest()) == 4, "earliest after deletion");
    }
    check(read(topic, 1, 6).get(0).offset() == 4, "read from 4");
  }

  private void adminCluster() throws Exception {
    try (Admin admin = admin()) {
      var cluster = admin.describeCluster();
      check(cluster.nodes().get().size() == bootstrap.split(",").length, "nodes");
      check(cluster.controller().get() != null && !cluster.clusterId().get().isEmpty(), "controller and id");
      String broker = cluster.nodes().get().iterator().next().idString();
      ConfigResource resource = new ConfigResource(ConfigResource.Type.BROKER, broker);
      check(config(admin, resource, "num.partitions") != null, "a broker's configuration");
    }
  }

  private void adminLogDirs() throws Exception {
    String topic = topic("dirs", 1);
    produce(topic, 10, 1, Map.of());
    try (Admin admin = admin()) {
      List<Integer> brokers = admin.describeCluster().nodes().get().stream().map(node -> node.id()).toList();
      long held =
          admin.describeLogDirs(brokers).allDescriptions().get().values().stream()
              .flatMap(dirs -> dirs.values().stream())
              .filter(dir -> dir.replicaInfos().containsKey(new TopicPartition(topic, 0)))
              .count();
      check(held == replicas, "replicas on disks: " + held);
    }
  }

  private void adminProducers() throws Exception {
    String topic = topic("producers", 1);
    produce(topic, 10, 1, Map.of("enable.idempotence", "true"));
    TopicPartition partition = new TopicPartition(topic, 0);
    try (Admin admin = admin()) {
      var states = admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers();
      check(states.size() == 1 && states.get(0).lastSequence() == 9, "producers " + states);
    }
  }

  private void transactions() throws Exception {
    String topic = topic("txn", 1);
    Map<String, String> settings = Map.of("transactional.id", name("txn"), "max.block.ms", "10000");
    try (KafkaProducer<String, String> producer = producer(settings)) {
      producer.initTransactions();
      producer.beginTransaction();
      producer.send(new ProducerRecord<>(topic, "dropped"));
      producer.abortTransaction();
      producer.beginTransaction();
      producer.send(new ProducerRecord<>(topic, "kept"));
      producer.commitTransaction();
    }
    try (KafkaConsumer<String, String> consumer = consumer("", Map.of("isolation.level", "read_committed"))) {
      consumer.assign(List.of(new TopicPartition(topic, 0)));
      check(poll(consumer, 1).get(0).value().equals("kept"), "only what was committed");
    }
  }

  // --- means --------------------------------------------------------------------------------------

  /** A member of a group in a thread of its own, which keeps what it sees. */
  private final class Member {
    final List<ConsumerRecord<String, String>> seen = new CopyOnWriteArrayList<>();
    volatile int held;
    volatile int rebalances;
    private final KafkaConsumer<String, String> consumer;
    private final Thread thread;

    Member(String group, List<String> topics, Map<String, String> settings) {
      consumer = consumer(group, settings);
      consumer.subscribe(topics, listener());
      thread = begin();
    }

    Member(String group, java.util.regex.Pattern topics, Map<String, String> settings) {
      consumer = consumer(group, settings);
      consumer.subscribe(topics, listener());
      thread = begin();
    }

    private org.apache.kafka.clients.consumer.ConsumerRebalanceListener listener() {
      return new org.apache.kafka.clients.consumer.ConsumerRebalanceListener() {
        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {}

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
          rebalances++;
        }
      };
    }

    private Thread begin() {
      Thread begun =
          new Thread(
              () -> {
                try {
                  while (true) {
                    consumer.poll(Duration.ofMillis(100)).forEach(seen::add);
                    held = consumer.assignment().size();
                  }
                } catch (WakeupException stop) {
                  consumer.close(Duration.ofSeconds(5));
                }
              });
      begun.setDaemon(true);
      begun.start();
      return begun;
    }

    void close() throws InterruptedException {
      consumer.wakeup();
      thread.join(10_000);
      held = 0;
    }
  }

  private String name(String suffix) {
    return "java-" + run + "-" + suffix;
  }

  private String topic(String suffix, int partitions) throws Exception {
    return topic(suffix, partitions, Map.of());
  }

  private String topic(String suffix, int partitions, Map<String, String> configs) throws Exception {
    String made = name(suffix);
    try (Admin admin = admin()) {
      admin.createTopics(List.of(new NewTopic(made, partitions, replicas).configs(configs))).all().get();
      await(() -> partitions(admin, made) == partitions, "the new topic");
    }
    return made;
  }

  private void produce(String topic, int count, int partitions, Map<String, String> settings) throws Exception {
    List<Future<RecordMetadata>> sent = new ArrayList<>();
    try (KafkaProducer<String, String> producer = producer(settings)) {
      for (int n = 0; n < count; n++) {
        sent.add(producer.send(new ProducerRecord<>(topic, n % partitions, "k" + n, "v" + n)));
      }
      for (Future<RecordMetadata> future : sent) {
        future.get();
      }
    }
  }

  private List<ConsumerRecord<String, String>> read(String topic, int partitions, int count) {
    List<TopicPartition> all = new ArrayList<>();
    for (int n = 0; n < partitions; n++) {
      all.add(new TopicPartition(topic, n));
    }
    try (KafkaConsumer<String, String> consumer = consumer("", Map.of())) {
      consumer.assign(all);
      return poll(consumer, count);
    }
  }

  private List<ConsumerRecord<String, String>> poll(KafkaConsumer<String, String> consumer, int count) {
    List<ConsumerRecord<String, String>> found = new ArrayList<>();
    long end = System.currentTimeMillis() + PATIENCE_MS;
    while (found.size() < count) {
      check(System.currentTimeMillis() < end, "read " + found.size() + " of " + count);
      consumer.poll(Duration.ofMillis(200)).forEach(found::add);
    }
    return found;
  }

  private KafkaProducer<String, String> producer(Map<String, String> settings) {
    return new KafkaProducer<>(with(settings), new StringSerializer(), new StringSerializer());
  }

  private KafkaConsumer<String, String> consumer(String group, Map<String, String> settings) {
    Map<String, Object> all = with(settings);
    all.putIfAbsent("auto.offset.reset", "earliest");
    all.put("session.timeout.ms", "10000");
    all.put("heartbeat.interval.ms", "500");
    if (!group.isEmpty()) {
      all.put("group.id", group);
    } else {
      all.put("enable.auto.commit", "false");
    }
    return new KafkaConsumer<>(all, new StringDeserializer(), new StringDeserializer());
  }

  private Admin admin() {
    return Admin.create(with(Map.of()));
  }

  private Map<String, Object> with(Map<String, String> settings) {
    Map<String, Object> all = new HashMap<>(settings);
    all.put("bootstrap.servers", bootstrap);
    return all;
  }

  private static Set<String> names(Admin admin) {
    return quietly(() -> admin.listTopics().names().get());
  }

  private static int partitions(Admin admin, String topic) {
    try {
      return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
    } catch (Exception notYet) {
      return 0;
    }
  }

  private static boolean empty(Admin admin, String group) {
    return quietly(() -> admin.describeConsumerGroups(List.of(group)).all().get()).get(group).members().isEmpty();
  }

  private static ConfigEntry config(Admin admin, ConfigResource resource, String name) {
    return quietly(() -> admin.describeConfigs(List.of(resource)).all().get()).get(resource).get(name);
  }

  private static long offset(Admin admin, TopicPartition partition, OffsetSpec spec) {
    return quietly(() -> admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get()).offset();
  }

  private static <T> T quietly(java.util.concurrent.Callable<T> call) {
    try {
      return call.call();
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  private static Exception failure(java.util.concurrent.Future<?> future) throws Exception {
    try {
      future.get();
      return null;
    } catch (ExecutionException error) {
      return (Exception) error.getCause();
    }
  }

  private static Exception failure(org.apache.kafka.common.KafkaFuture<?> future) throws Exception {
    try {
      future.get();
      return null;
    } catch (ExecutionException error) {
      return (Exception) error.getCause();
    }
  }

  private static int distinct(List<ConsumerRecord<String, String>> records) {
    Set<String> values = new HashSet<>();
    records.forEach(record -> values.add(record.value()));
    return values.size();
  }

  private static void await(BooleanSupplier condition, String what) {
    long end = System.currentTimeMillis() + PATIENCE_MS;
    while (!condition.getAsBoolean()) {
      check(System.currentTimeMillis() < end, "waited for " + what);
      try {
        Thread.sleep(50);
      } catch (InterruptedException error) {
        throw new IllegalStateException(error);
      }
    }
  }

  private static void check(boolean condition, String sentence) {
    if (!condition) {
      throw new IllegalStateException(sentence);
    }
  }
}
