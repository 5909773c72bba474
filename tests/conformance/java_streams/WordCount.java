import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Counts words exactly once: each word of `lines` adds a record to `counts`, with how often the word has come by then.
 *
 * <p>Arguments: bootstrap servers, application id, folder for state, replicas, topic of lines, topic of counts. Runs until it
 * is killed.
 */
public final class WordCount {
  private WordCount() {}

  public static void main(String[] arguments) throws Exception {
    Properties settings = new Properties();
    settings.put("bootstrap.servers", arguments[0]);
    settings.put("application.id", arguments[1]);
    settings.put("state.dir", arguments[2]);
    settings.put("replication.factor", arguments[3]);
    settings.put("processing.guarantee", "exactly_once_v2");
    settings.put("commit.interval.ms", "100");
    settings.put("statestore.cache.max.bytes", "0"); // each count is told, not only the last of many
    settings.put("auto.offset.reset", "earliest");
    settings.put("session.timeout.ms", "6000"); // how long the killed one is waited for
    settings.put("transaction.timeout.ms", "6000");
    settings.put("default.key.serde", Serdes.StringSerde.class.getName());
    settings.put("default.value.serde", Serdes.StringSerde.class.getName());
    StreamsBuilder builder = new StreamsBuilder();
    builder
        .<String, String>stream(arguments[4])
        .flatMapValues(line -> Arrays.asList(line.split(" ")))
        .groupBy((key, word) -> word)
        .count(Materialized.as("words"))
        .toStream()
        .mapValues(count -> Long.toString(count))
        .to(arguments[5], Produced.with(Serdes.String(), Serdes.String()));
    new KafkaStreams(builder.build(), settings).start();
    Thread.sleep(Long.MAX_VALUE);
  }
}
