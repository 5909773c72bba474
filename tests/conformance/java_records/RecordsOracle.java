import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.requests.ProduceResponse.RecordError;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.RecordValidationException;

/**
 * What Kafka makes of record batches and message sets. Reads lines of words, answers each with a line: hex, records as
 * "offset timestamp key value" joined by commas (a null is "-"), or "error NAME".
 *
 * <pre>
 * write MAGIC CODEC BASE_OFFSET LOG_APPEND_TIME|-1 [TIMESTAMP KEY VALUE [HEADER]]...   one batch or set; key, value hex or -
 * read HEX                                                                            its records
 * down MAGIC FIRST_OFFSET HEX                                                         converted
 * append CODEC LOG_APPEND|CREATE NOW BEFORE_MAX AFTER_MAX COMPACTED HEX               as a leader stores it, from offset 0
 * </pre>
 */
public final class RecordsOracle {
    private static final HexFormat HEX = HexFormat.of();

    private RecordsOracle() {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            System.out.println(answer(words));
        }
    }

    private static String answer(String[] words) {
        try {
            return switch (words[0]) {
                case "write" -> write(words);
                case "read" -> read(records(words[1]));
                case "down" -> hex(records(words[3])
                    .downConvert(Byte.parseByte(words[1]), Long.parseLong(words[2]), Time.SYSTEM).records());
                case "append" -> append(words);
                default -> throw new IllegalStateException(words[0]);
            };
        } catch (RecordValidationException refused) {
            StringBuilder out = new StringBuilder("error " + Errors.forException(refused.invalidException()));
            for (RecordError error : refused.recordErrors()) {
                out.append(' ').append(error.batchIndex);
            }
            return out.toString();
        } catch (ApiException error) {
            return "error " + Errors.forException(error);
        } catch (RuntimeException error) {
            return "error " + error.getClass().getSimpleName();
        }
    }

    private static String write(String[] words) {
        byte magic = Byte.parseByte(words[1]);
        long base = Long.parseLong(words[3]);
        long appendTime = Long.parseLong(words[4]);
        TimestampType type = appendTime >= 0 ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
        MemoryRecordsBuilder builder = MemoryRecords.builder(
            ByteBuffer.allocate(1 << 20), magic, compression(words[2]), magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE : type,
            base, appendTime);
        long offset = base;
        for (int at = 5; at < words.length; at += 4) {
            Header[] headers = words[at + 3].equals("-")
                ? Record.EMPTY_HEADERS
                : new Header[] {new RecordHeader(words[at + 3], bytes(words[at + 2]))};
            builder.appendWithOffset(offset++, Long.parseLong(words[at]), bytes(words[at + 1]), bytes(words[at + 2]), headers);
        }
        return hex(builder.build());
    }

    private static String read(MemoryRecords records) {
        StringBuilder out = new StringBuilder();
        for (RecordBatch batch : records.batches()) {
            batch.ensureValid();
        }
        for (Record record : records.records()) {
            out.append(out.isEmpty() ? "" : ",").append(record.offset()).append(' ').append(record.timestamp());
            out.append(' ').append(text(record.key())).append(' ').append(text(record.value()));
        }
        return out.toString();
    }

    private static String append(String[] words) {
        MemoryRecords records = records(words[7]);
        CompressionType source = CompressionType.NONE;
        for (MutableRecordBatch batch : records.batches()) {
            batch.ensureValid();
            source = batch.compressionType() == CompressionType.NONE ? source : batch.compressionType();
        }
        Compression target = words[1].equals("producer") ? Compression.of(source).build() : compression(words[1]);
        LogValidator validator = new LogValidator(
            records, new TopicPartition("t", 0), fixed(Long.parseLong(words[3])), source, target,
            words[6].equals("true"), (byte) 2,
            words[2].equals("LOG_APPEND") ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME,
            Long.parseLong(words[4]), Long.parseLong(words[5]), 0, AppendOrigin.CLIENT, MetadataVersion.IBP_3_9_IV0);
        return hex(validator.validateMessagesAndAssignOffsets(
            PrimitiveRef.ofLong(0), new NoMetrics(), BufferSupplier.NO_CACHING).validatedRecords);
    }

    private static Time fixed(long now) {
        return new Time() {
            @Override
            public long milliseconds() {
                return now;
            }

            @Override
            public long nanoseconds() {
                return now * 1_000_000;
            }

            @Override
            public void sleep(long ms) {}

            @Override
            public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {}
        };
    }

    private static final class NoMetrics implements LogValidator.MetricsRecorder {
        public void recordInvalidMagic() {}

        public void recordInvalidOffset() {}

        public void recordInvalidSequence() {}

        public void recordInvalidChecksums() {}

        public void recordNoKeyCompactedTopic() {}
    }

    private static Compression compression(String name) {
        return Compression.of(CompressionType.forName(name)).build();
    }

    private static MemoryRecords records(String hex) {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(hex)));
    }

    private static String hex(org.apache.kafka.common.record.BaseRecords records) {
        ByteBuffer buffer = ((MemoryRecords) records).buffer().duplicate();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HEX.formatHex(bytes);
    }

    private static byte[] bytes(String word) {
        return word.equals("-") ? null : HEX.parseHex(word.substring(1));
    }

    private static String text(ByteBuffer value) {
        if (value == null) {
            return "-";
        }
        byte[] bytes = new byte[value.remaining()];
        value.duplicate().get(bytes);
        return "x" + HEX.formatHex(bytes);
    }
}
