import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Moves records from one topic to another by transactions, of which every third is aborted and made again:
 * BOOTSTRAP SOURCE TARGET TRANSACTIONAL_ID TRANSACTIONS. Prints as JSON the producer's id and epoch afterwards, as its
 * coordinator has them, what is committed in the target, and how long the transactions took.
 */
public final class Mover {
  private static final int RECORDS = 5;
  private static final String GROUP = "movers";

  public static void main(String[] arguments) throws Exception {
    String bootstrap = arguments[0];
    String source = arguments[1];
    String target = arguments[2];
    String id = arguments[3];
    int transactions = Integer.parseInt(arguments[4]);
    int began;
    int ended;
    long took;
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        KafkaProducer<String, String> producer = producer(bootstrap, id);
        KafkaConsumer<String, String> consumer = consumer(bootstrap, GROUP, RECORDS)) {
      producer.initTransactions();
      began = epoch(admin, id);
      consumer.subscribe(List.of(source));
      long start = System.nanoTime();
      for (int number = 0; number < transactions; ) {
        ConsumerRecords<String, String> records = consumer.poll(Duration.ofSeconds(1));
        if (!records.isEmpty()) {
          move(records, target, producer, consumer, number % 3 == 2);
          number++;
        }
      }
      took = (System.nanoTime() - start) / 1_000_000;
      ended = epoch(admin, id);
    }
    System.out.printf(
        "{\"began\": %d, \"ended\": %d, \"ms\": %d, \"values\": %s}%n", began, ended, took, committed(bootstrap, target));
  }

  private static void move(
      ConsumerRecords<String, String> records,
      String target,
      KafkaProducer<String, String> producer,
      KafkaConsumer<String, String> consumer,
      boolean isAborted) {
    Map<TopicPartition, OffsetAndMetadata> behind = new HashMap<>();
    Map<TopicPartition, Long> first = new HashMap<>();
    producer.beginTransaction();
    for (ConsumerRecord<String, String> record : records) {
      TopicPartition place = new TopicPartition(record.topic(), record.partition());
      first.putIfAbsent(place, record.offset());
      behind.put(place, new OffsetAndMetadata(record.offset() + 1));
      producer.send(new ProducerRecord<>(target, record.partition(), record.key(), record.value()));
    }
    producer.sendOffsetsToTransaction(behind, consumer.groupMetadata());
    if (isAborted) {
      producer.abortTransaction();
      first.forEach(consumer::seek);
    } else {
      producer.commitTransaction();
    }
  }

  private static int epoch(Admin admin, String id) throws Exception {
    return admin.describeTransactions(Set.of(id)).description(id).get().producerEpoch();
  }

  private static List<String> committed(String bootstrap, String target) {
    List<String> values = new ArrayList<>();
    try (KafkaConsumer<String, String> consumer = consumer(bootstrap, "reader", 500)) {
      List<TopicPartition> places =
          consumer.partitionsFor(target).stream().map(p -> new TopicPartition(p.topic(), p.partition())).toList();
      consumer.assign(places);
      consumer.seekToBeginning(places);
      Map<TopicPartition, Long> ends = consumer.endOffsets(places);
      while (places.stream().anyMatch(place -> consumer.position(place) < ends.get(place))) {
        consumer.poll(Duration.ofMillis(200)).forEach(record -> values.add("\"" + record.value() + "\""));
      }
    }
    return values;
  }

  private static KafkaProducer<String, String> producer(String bootstrap, String id) {
    Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "transactional.id", id, "max.block.ms", "30000");
    return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
  }

  private static KafkaConsumer<String, String> consumer(String bootstrap, String group, int records) {
    Map<String, Object> settings =
        Map.of(
            "bootstrap.servers", bootstrap,
            "group.id", group,
            "auto.offset.reset", "earliest",
            "enable.auto.commit", "false",
            "isolation.level", "read_committed",
            "max.poll.records", Integer.toString(records));
    return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
  }

  private Mover() {}
}
