import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.auth.SaslExtensionsCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Kafka's Java client; `tests.clients` says what it reads and answers. */
public final class JavaProgram {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int KEYS = 97;
  private static final long PAUSE_MS = 10;

  /** What became of a job; without words nothing has gone wrong. */
  private static final class Outcome {
    private final Set<String> words = new LinkedHashSet<>();
    private int sent;
    private int received;
    private int distinct;
  }

  /** What the client asks for tokens: always the one of its login's options. */
  public static final class Tokens implements AuthenticateCallbackHandler {
    private String value;

    @Override
    public void configure(Map<String, ?> config, String mechanism, List<AppConfigurationEntry> login) {
      value = (String) login.get(0).getOptions().get("token");
    }

    @Override
    public void handle(Callback[] asked) throws UnsupportedCallbackException {
      for (Callback one : asked) {
        if (one instanceof OAuthBearerTokenCallback) {
          ((OAuthBearerTokenCallback) one).token(new Token(value, System.currentTimeMillis()));
        } else if (!(one instanceof SaslExtensionsCallback)) {
          throw new UnsupportedCallbackException(one);
        }
      }
    }

    @Override
    public void close() {}
  }

  /** Good for an hour from `sinceMs`. */
  private static final class Token implements OAuthBearerToken {
    private final String value;
    private final long sinceMs;

    private Token(String value, long sinceMs) {
      this.value = value;
      this.sinceMs = sinceMs;
    }

    @Override
    public String value() {
      return value;
    }

    @Override
    public Set<String> scope() {
      return Set.of();
    }

    @Override
    public long lifetimeMs() {
      return sinceMs + 3_600_000;
    }

    @Override
    public String principalName() {
      return "alice";
    }

    @Override
    public Long startTimeMs() {
      return sinceMs;
    }
  }

  private JavaProgram() {}

  public static void main(String[] arguments) throws Exception {
    BufferedReader jobs = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = jobs.readLine(); line != null; line = jobs.readLine()) {
      JsonNode job = JSON.readTree(line);
      Outcome outcome = new Outcome();
      try {
        perform(job, outcome);
      } catch (Exception error) {
        outcome.words.add(wordsOf(error));
      }
      ObjectNode answer = JSON.createObjectNode();
      answer.put("name", job.get("name").asText());
      answer.put("ok", outcome.words.isEmpty());
      answer.put("words", String.join("; ", outcome.words));
      answer.put("sent", outcome.sent);
      answer.put("received", outcome.received);
      answer.put("distinct", outcome.distinct);
      System.out.println(JSON.writeValueAsString(answer));
      System.out.flush();
    }
  }

  private static void perform(JsonNode job, Outcome outcome) throws Exception {
    switch (job.get("do").asText()) {
      case "exchange" -> exchange(job, outcome);
      case "produce" -> send(job, 1, outcome);
      case "consume" -> consume(job, 1, outcome);
      case "steady" -> steady(job, outcome);
      default -> throw new IllegalArgumentException(job.get("do").asText());
    }
  }

  private static void exchange(JsonNode job, Outcome outcome) throws Exception {
    send(job, job.get("records").asInt(), outcome);
    if (outcome.words.isEmpty()) {
      consume(job, job.get("records").asInt(), outcome);
    }
  }

  private static void send(JsonNode job, int count, Outcome outcome) throws Exception {
    List<Future<RecordMetadata>> sending = new ArrayList<>();
    KafkaProducer<String, String> producer = producer(job);
    try {
      for (int number = 0; number < count; number++) {
        sending.add(producer.send(record(job, number)));
      }
      await(sending, job, outcome);
    } finally {
      producer.close(Duration.ofSeconds(1));
    }
  }

  private static void steady(JsonNode job, Outcome outcome) throws Exception {
    List<Future<RecordMetadata>> sending = new ArrayList<>();
    long end = System.nanoTime() + (long) (job.get("seconds").asDouble() * 1e9);
    try (KafkaProducer<String, String> producer = producer(job)) {
      while (System.nanoTime() < end) {
        sending.add(producer.send(record(job, sending.size())));
        Thread.sleep(PAUSE_MS);
      }
      await(sending, job, outcome);
    }
  }

  private static void await(List<Future<RecordMetadata>> sending, JsonNode job, Outcome outcome)
      throws InterruptedException {
    for (Future<RecordMetadata> one : sending) {
      try {
        one.get(limitMs(job), TimeUnit.MILLISECONDS);
        outcome.sent++;
      } catch (ExecutionException | TimeoutException error) {
        outcome.words.add(wordsOf(error));
      }
    }
  }

  private static void consume(JsonNode job, int count, Outcome outcome) {
    Map<String, Object> config = settings(job);
    config.putAll(
        Map.of("group.id", job.get("group").asText(), "auto.offset.reset", "earliest", "enable.auto.commit", false));
    Set<String> different = new HashSet<>();
    long end = System.nanoTime() + limitMs(job) * 1_000_000;
    try (KafkaConsumer<String, String> consumer =
        new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of(job.get("topic").asText()));
      while (outcome.received < count && System.nanoTime() < end) {
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
          outcome.received++;
          different.add(record.value());
        }
      }
      consumer.commitSync(Duration.ofSeconds(10));
    }
    outcome.distinct = different.size();
    if (outcome.received < count) {
      outcome.words.add("nothing has been said, and " + outcome.received + " records have been read");
    }
  }

  private static KafkaProducer<String, String> producer(JsonNode job) {
    Map<String, Object> config = settings(job);
    config.putAll(Map.of("acks", "all", "max.block.ms", limitMs(job)));
    return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
  }

  private static ProducerRecord<String, String> record(JsonNode job, int number) {
    return new ProducerRecord<>(job.get("topic").asText(), "k" + number % KEYS, "v" + number);
  }

  private static Map<String, Object> settings(JsonNode job) {
    Map<String, Object> config = new HashMap<>();
    config.put("bootstrap.servers", job.get("bootstrap").asText());
    config.put("security.protocol", job.get("protocol").asText());
    String mechanism = job.get("mechanism").asText();
    if (!mechanism.isEmpty()) {
      config.put("sasl.mechanism", mechanism);
      config.put("sasl.jaas.config", login(mechanism, job.get("user").asText(), job.get("password").asText()));
      if (mechanism.equals("OAUTHBEARER")) {
        config.put("sasl.login.callback.handler.class", Tokens.class.getName());
      }
    }
    if (!job.get("ca").asText().isEmpty()) {
      config.put("ssl.truststore.type", "PEM");
      config.put("ssl.truststore.location", job.get("ca").asText());
    }
    if (!job.get("keystore").asText().isEmpty()) {
      config.put("ssl.keystore.type", "PEM");
      config.put("ssl.keystore.location", job.get("keystore").asText());
    }
    return config;
  }

  private static String login(String mechanism, String user, String password) {
    if (mechanism.equals("OAUTHBEARER")) {
      return "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required token=\"" + password + "\";";
    }
    String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
    return String.format(
        "org.apache.kafka.common.security.%s required username=\"%s\" password=\"%s\";", module, user, password);
  }

  private static long limitMs(JsonNode job) {
    return (long) (job.get("limit_s").asDouble() * 1000);
  }

  /** An error and its causes. */
  private static String wordsOf(Throwable error) {
    List<String> words = new ArrayList<>();
    for (Throwable one = error; one != null; one = one.getCause()) {
      words.add(one.getClass().getSimpleName() + ": " + one.getMessage());
    }
    return String.join(", by ", words);
  }
}
