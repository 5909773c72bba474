import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A member by Kafka's own client: bootstrap servers, group, topic, mode, session time-out in milliseconds. What it says: see the
 * package.
 */
public final class Member implements ConsumerRebalanceListener {
  private final KafkaConsumer<byte[], byte[]> consumer;
  private final Set<Integer> begun = new HashSet<>();

  private Member(String bootstrap, String group, String mode, String session) {
    Map<String, Object> config = new HashMap<>();
    config.put("bootstrap.servers", bootstrap);
    config.put("group.id", group);
    config.put("client.id", "java");
    config.put("auto.offset.reset", "earliest");
    config.put("enable.auto.commit", false);
    config.put("max.poll.records", 50);
    config.put("max.poll.interval.ms", Math.max(15_000, Integer.parseInt(session)));
    config.put("reconnect.backoff.max.ms", 500);
    config.put("default.api.timeout.ms", 20_000);
    config.put("key.deserializer", ByteArrayDeserializer.class);
    config.put("value.deserializer", ByteArrayDeserializer.class);
    if (mode.equals("consumer")) {
      config.put("group.protocol", "consumer");
    } else {
      boolean eager = mode.equals("eager");
      config.put("partition.assignment.strategy", (eager ? RangeAssignor.class : CooperativeStickyAssignor.class).getName());
      config.put("session.timeout.ms", Integer.parseInt(session));
      config.put("heartbeat.interval.ms", 500);
    }
    consumer = new KafkaConsumer<>(config);
  }

  public static void main(String[] args) {
    Member member = new Member(args[0], args[1], args[3], args[4]);
    member.consumer.subscribe(List.of(args[2]), member);
    while (true) {
      member.turn();
    }
  }

  private static double now() {
    return System.nanoTime() / 1e9;
  }

  private static void say(String text) {
    System.out.println(text);
    System.out.flush();
  }

  private static String list(Collection<TopicPartition> places) {
    return places.stream().map(place -> String.valueOf(place.partition())).collect(Collectors.joining(","));
  }

  @Override
  public void onPartitionsAssigned(Collection<TopicPartition> places) {
    say("assigned " + now() + " " + list(places));
    places.forEach(place -> begun.remove(place.partition()));
  }

  @Override
  public void onPartitionsRevoked(Collection<TopicPartition> places) {
    say("lost " + list(places));
  }

  private void turn() {
    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
    try {
      ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
      for (TopicPartition place : records.partitions()) {
        List<ConsumerRecord<byte[], byte[]>> some = records.records(place);
        long first = some.get(0).offset();
        long last = some.get(some.size() - 1).offset();
        if (begun.add(place.partition())) {
          say("begin " + place.partition() + " " + first);
        }
        say("got " + place.partition() + " " + first + " " + last);
        offsets.put(place, new OffsetAndMetadata(last + 1));
      }
      if (offsets.isEmpty()) {
        return;
      }
      double asked = now();
      consumer.commitSync(offsets);
      offsets.forEach((place, offset) -> say("committed " + asked + " " + place.partition() + " " + offset.offset()));
    } catch (CommitFailedException | RebalanceInProgressException error) {
      say("refused " + error.getClass().getSimpleName());
    } catch (KafkaException error) {
      say("refused " + error.getClass().getSimpleName());
      if (error.getCause() instanceof InterruptedException) {
        throw error;
      }
    }
  }
}
