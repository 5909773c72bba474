import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * What Kafka writes for a message: reads lines {"message", "version", "value"}, answers each with a line of hex,
 * or with "-" where this Kafka does not have the version, or the message.
 *
 * <p>The value is Kafka's own JSON for the message. It is turned into an object, back into JSON, and the two must be
 * equal: a misspelt field, which the converters would overlook, ends the program instead of giving wrong golden bytes.
 */
public final class Oracle {
    private static final String[] PACKAGES = {
        "org.apache.kafka.common.message.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.transaction.generated."
    };
    private static final ObjectMapper JSON = new ObjectMapper();

    private Oracle() {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = JSON.readTree(line);
            out.println(answer(asked.get("message").asText(), (short) asked.get("version").asInt(), asked.get("value")));
        }
        out.flush();
    }

    private static String answer(String name, short version, JsonNode value) throws Exception {
        Class<?> converter = converter(name);
        if (converter == null) {
            return "-";
        }
        Method read = converter.getMethod("read", JsonNode.class, short.class);
        Message blank = (Message) read.getReturnType().getConstructor().newInstance();
        if (version < blank.lowestSupportedVersion() || version > blank.highestSupportedVersion()) {
            return "-";
        }
        Message message = (Message) read.invoke(null, value, version);
        refuseMisunderstanding(converter, message, version, value);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException(name + " wrote less than its size");
        }
        return HexFormat.of().formatHex(buffer.array());
    }

    /** Requests, answers and headers are called ...Data in Java, records of internal topics are not. */
    private static Class<?> converter(String name) {
        for (String prefix : PACKAGES) {
            for (String suffix : new String[] {"Data", ""}) {
                try {
                    return Class.forName(prefix + name + suffix + "JsonConverter");
                } catch (ClassNotFoundException elsewhere) {
                    continue;
                }
            }
        }
        return null;
    }

    private static void refuseMisunderstanding(Class<?> converter, Message message, short version, JsonNode value)
            throws Exception {
        Method write = converter.getMethod("write", message.getClass(), short.class);
        JsonNode written = JSON.readTree(write.invoke(null, message, version).toString());
        JsonNode expected = value.deepCopy();
        emptyRecords(expected);
        if (!written.equals(expected)) {
            throw new IllegalStateException("asked\n" + expected + "\nunderstood\n" + written);
        }
    }

    /** Kafka's converters read record bytes, but write none of them. */
    private static void emptyRecords(JsonNode node) {
        if (node instanceof ObjectNode object && object.path("records").isTextual()) {
            object.put("records", "");
        }
        node.forEach(Oracle::emptyRecords);
    }
}
