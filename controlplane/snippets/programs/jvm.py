"""Kafka's own client: properties and a program that reads them, its tools, Spring Boot. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.snippets.programs.way import (
    AUTHORITY,
    BEARER,
    BOTH,
    CLIENT,
    GROUP,
    PASSWORD,
    SECRET,
    TOKENS,
    USER,
    File,
)

if TYPE_CHECKING:
    from controlplane.snippets.programs.way import Way

_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_FILE = "client.properties"
_KAFKA, _SLF4J, _EXEC, _SPRING_BOOT = "3.9.2", "1.7.36", "3.5.0", "4.0.7"
"""Versions: of the client that brokers are tested with, of its logging, of the plugin that runs a program, of Spring Boot."""

_JAVA = """\
bootstrap.servers={bootstrap}
{security}acks=all
key.serializer=org.apache.kafka.common.serialization.StringSerializer
value.serializer=org.apache.kafka.common.serialization.StringSerializer
group.id=my-group
auto.offset.reset=earliest
key.deserializer=org.apache.kafka.common.serialization.StringDeserializer
value.deserializer=org.apache.kafka.common.serialization.StringDeserializer
"""

_MAIN = """\
import java.io.FileInputStream;
import java.io.InputStream;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

public class Main {
    public static void main(String[] arguments) throws Exception {
        System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "warn");
        Properties properties = new Properties();
        try (InputStream file = new FileInputStream("client.properties")) {
            properties.load(file);
        }
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties)) {
            producer.send(new ProducerRecord<>("%(topic)s", "hello")).get(); // throws what went wrong
        }
        // Read from the beginning, and go on reading.
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties)) {
            consumer.subscribe(List.of("%(topic)s"));
            while (true) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
                    System.out.println(record.value());
                }
            }
        }
    }
}
"""

_JAVA_POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId>
  <artifactId>main</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.source>11</maven.compiler.source>
    <maven.compiler.target>11</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-clients</artifactId>
      <version>{_KAFKA}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-simple</artifactId>
      <version>{_SLF4J}</version>
    </dependency>
  </dependencies>
  <build>
    <plugins>
      <plugin>
        <groupId>org.codehaus.mojo</groupId>
        <artifactId>exec-maven-plugin</artifactId>
        <version>{_EXEC}</version>
        <configuration>
          <mainClass>Main</mainClass>
        </configuration>
      </plugin>
    </plugins>
  </build>
</project>
"""

_APPLICATION = """\
package example;

import java.util.concurrent.TimeUnit;
import org.springframework.boot.ApplicationRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.core.KafkaTemplate;

@SpringBootApplication
public class Application {
    public static void main(String[] arguments) {
        SpringApplication.run(Application.class, arguments);
    }

    @Bean
    ApplicationRunner writer(KafkaTemplate<String, String> template) {
        return arguments -> template.sendDefault("hello").get(60, TimeUnit.SECONDS); // throws what went wrong
    }

    @KafkaListener(topics = "${spring.kafka.template.default-topic}")
    void read(String value) {
        System.out.println(value);
    }
}
"""

_SPRING_POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <parent>
    <groupId>org.springframework.boot</groupId>
    <artifactId>spring-boot-starter-parent</artifactId>
    <version>{_SPRING_BOOT}</version>
  </parent>
  <groupId>example</groupId>
  <artifactId>application</artifactId>
  <version>1</version>
  <properties>
    <java.version>17</java.version>
  </properties>
  <dependencies>
    <dependency>
      <groupId>org.springframework.boot</groupId>
      <artifactId>spring-boot-starter-kafka</artifactId>
    </dependency>
  </dependencies>
  <build>
    <plugins>
      <plugin>
        <groupId>org.springframework.boot</groupId>
        <artifactId>spring-boot-maven-plugin</artifactId>
      </plugin>
    </plugins>
  </build>
</project>
"""

_SPRING = """\
# src/main/resources/application.properties
spring.kafka.bootstrap-servers={bootstrap}
{security}spring.kafka.producer.acks=all
spring.kafka.consumer.group-id=my-group
spring.kafka.consumer.auto-offset-reset=earliest
spring.kafka.template.default-topic={topic}
"""

_TOOLS = """\
{file}# write a record
echo hello | bin/kafka-console-producer.sh --bootstrap-server {bootstrap}{producer} --topic {topic}
# read from the beginning, and go on reading
bin/kafka-console-consumer.sh --bootstrap-server {bootstrap}{consumer} --topic {topic} --group {group} --from-beginning
"""


def java(way: Way) -> str:
    """Of a producer and a consumer."""
    return _JAVA.format(bootstrap=way.bootstrap, security=_lines(way) or "security.protocol=PLAINTEXT\n")


def java_files(way: Way) -> tuple[File, ...]:
    """A program that writes a record and goes on reading, and what Maven makes of it."""
    return File("src/main/java/Main.java", _MAIN % {"topic": way.topic}), File("pom.xml", _JAVA_POM)


def spring(way: Way) -> str:
    """What spring-kafka's template and listeners are made with: names that it has none of its own for go to the client."""
    return _SPRING.format(bootstrap=way.bootstrap, security=_lines(way, "spring.kafka.properties."), topic=way.topic)


def spring_files(_way: Way) -> tuple[File, ...]:
    """An application that writes a record and goes on reading, and what Maven makes of it. The topic is in the properties."""
    return File("src/main/java/example/Application.java", _APPLICATION), File("pom.xml", _SPRING_POM)


def tools(way: Way) -> str:
    """Commands of a shell, in the folder of Kafka."""
    lines = _lines(way)
    return _TOOLS.format(
        bootstrap=way.bootstrap,
        topic=way.topic,
        group=GROUP,
        file=f"cat > {_FILE} <<'END'\n{lines}END\n" if lines else "",
        producer=f" --producer.config {_FILE}" if lines else "",
        consumer=f" --consumer.config {_FILE}" if lines else "",
    )


def _lines(way: Way, prefix: str = "") -> str:
    """None where nobody logs in and there is no TLS."""
    if way.security == "plaintext":
        return ""
    return "".join(f"{prefix}{name}={value}\n" for name, value in _properties(way).items())


def _properties(way: Way) -> dict[str, str]:
    found = {"security.protocol": way.security.upper()}
    if way.mechanism:
        found |= {"sasl.mechanism": way.mechanism, "sasl.jaas.config": _jaas(way.mechanism)}
    if way.mechanism == BEARER:
        found |= {"sasl.oauthbearer.token.endpoint.url": TOKENS}
        found["sasl.login.callback.handler.class"] = (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
        )
    if way.is_tls:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": AUTHORITY}
    if way.shows:
        found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": BOTH}
    return found


def _jaas(mechanism: str) -> str:
    if mechanism == BEARER:
        return f'{_OAUTH_MODULE} required clientId="{CLIENT}" clientSecret="{SECRET}";'
    module = _PLAIN_MODULE if mechanism == "PLAIN" else _SCRAM_MODULE
    return f'{module} required username="{USER}" password="{PASSWORD}";'
