import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * What a Java application does with an instance: makes a topic, produces with acks=all and idempotence, reads with a
 * group of two members that share the partitions, commits. Prints what it saw as one JSON object.
 *
 * <p>Arguments: bootstrap servers, topic, number of partitions, number of messages; then settings of all clients, each
 * as name=value.
 */
public final class TenantClient {
  private static final String GROUP = "java-readers";
  private static final long PATIENCE_MS = 60_000;

  private final Map<String, Object> common = new HashMap<>();
  private final String topic;
  private final int partitions;
  private final int count;
  private final Set<String> seen = ConcurrentHashMap.newKeySet();
  private final AtomicInteger doubled = new AtomicInteger();
  private final AtomicInteger[] read = {new AtomicInteger(), new AtomicInteger()};
  private final int[] held = new int[2];
  private final CountDownLatch committed = new CountDownLatch(2);
  private volatile boolean shared;

  private TenantClient(String[] arguments) {
    common.put("bootstrap.servers", arguments[0]);
    topic = arguments[1];
    partitions = Integer.parseInt(arguments[2]);
    count = Integer.parseInt(arguments[3]);
    for (int i = 4; i < arguments.length; i++) {
      String[] setting = arguments[i].split("=", 2);
      common.put(setting[0], setting[1]);
    }
  }

  public static void main(String[] arguments) throws Exception {
    new TenantClient(arguments).run();
  }

  private void run() throws Exception {
    String cluster;
    Set<String> topics;
    Map<TopicPartition, OffsetAndMetadata> offsets;
    long produceMs;
    long consumeMs;
    try (Admin admin = Admin.create(common)) {
      admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 3))).all().get();
      cluster = admin.describeCluster().clusterId().get();
      long began = System.nanoTime();
      Thread[] members = {member(0), member(1)};
      awaitSharing();
      long producing = System.nanoTime();
      produce();
      produceMs = (System.nanoTime() - producing) / 1_000_000;
      for (Thread member : members) {
        member.join(PATIENCE_MS);
      }
      consumeMs = (System.nanoTime() - producing) / 1_000_000;
      topics = admin.listTopics().names().get();
      offsets = admin.listConsumerGroupOffsets(GROUP).partitionsToOffsetAndMetadata().get();
    }
    long sum = offsets.values().stream().mapToLong(OffsetAndMetadata::offset).sum();
    System.out.printf(
        "{\"cluster\": \"%s\", \"topics\": %d, \"produced\": %d, \"read\": [%d, %d], \"distinct\": %d,"
            + " \"doubled\": %d, \"held\": [%d, %d], \"committed\": %d, \"produce_ms\": %d, \"consume_ms\": %d}%n",
        cluster, topics.size(), count, read[0].get(), read[1].get(), seen.size(),
        doubled.get(), held[0], held[1], sum, produceMs, consumeMs);
  }

  private void produce() throws Exception {
    Map<String, Object> config = new HashMap<>(common);
    config.putAll(Map.of("acks", "all", "enable.idempotence", true, "linger.ms", 5, "compression.type", "lz4"));
    List<Future<RecordMetadata>> sent = new ArrayList<>();
    try (KafkaProducer<String, String> producer =
        new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
      for (int number = 0; number < count; number++) {
        sent.add(producer.send(new ProducerRecord<>(topic, "key-" + number, "value-" + number)));
      }
    }
    for (Future<RecordMetadata> one : sent) {
      one.get();
    }
  }

  private void awaitSharing() throws InterruptedException {
    long deadline = System.currentTimeMillis() + PATIENCE_MS;
    while (!shared && System.currentTimeMillis() < deadline) {
      Thread.sleep(20);
    }
  }

  private Thread member(int number) {
    Thread thread = new Thread(() -> consume(number), "member " + number);
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  private void consume(int number) {
    Map<String, Object> config = new HashMap<>(common);
    config.putAll(
        Map.of("group.id", GROUP, "auto.offset.reset", "earliest", "enable.auto.commit", false));
    if (!"consumer".equals(config.get("group.protocol"))) { // else the broker says it
      config.put("heartbeat.interval.ms", 500);
    }
    long deadline = System.currentTimeMillis() + PATIENCE_MS;
    try (KafkaConsumer<String, String> consumer =
        new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of(topic));
      while (seen.size() < count && System.currentTimeMillis() < deadline) {
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
          read[number].incrementAndGet();
          if (!seen.add(record.value())) {
            doubled.incrementAndGet();
          }
        }
        int now = consumer.assignment().size();
        if (!shared) {
          held[number] = now;
          shared = held[0] > 0 && held[1] > 0 && held[0] + held[1] == partitions;
        }
      }
      consumer.commitSync();
      committed.countDown();
      committed.await(PATIENCE_MS, TimeUnit.MILLISECONDS); // a member that leaves makes the other one's commit fail
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
