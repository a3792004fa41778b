import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * One member of a classic group: GroupMember ADDRESS GROUP TOPIC. Prints a line of JSON for each thing that happens:
 * {"assigned": [partitions]}, {"record": [partition, offset, value]}, {"committed": {partition: offset}}, {"closed": true}.
 */
public final class GroupMember {
    private static final Duration POLL = Duration.ofMillis(100);

    private GroupMember() {}

    public static void main(String[] words) {
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings(words[0], words[1]));
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                main.join();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }));
        consumer.subscribe(List.of(words[2]), new Listener());
        try (consumer) {
            while (true) {
                readAndCommit(consumer);
            }
        } catch (WakeupException stopped) {
            // by the signal that ends it
        }
        say("closed", "true");
    }

    private static void readAndCommit(KafkaConsumer<String, String> consumer) {
        TreeMap<Integer, Long> positions = new TreeMap<>();
        for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
            say("record", "[" + record.partition() + ", " + record.offset() + ", \"" + record.value() + "\"]");
            positions.put(record.partition(), record.offset() + 1);
        }
        if (positions.isEmpty()) {
            return;
        }
        try {
            consumer.commitSync();
        } catch (WakeupException stopped) {
            throw stopped;
        } catch (KafkaException failed) {
            say("failed", "true");
            return;
        }
        say("committed", positions.entrySet().stream()
            .map(entry -> "\"" + entry.getKey() + "\": " + entry.getValue())
            .collect(Collectors.joining(", ", "{", "}")));
    }

    private static void say(String what, String json) {
        System.out.println("{\"" + what + "\": " + json + "}");
    }

    private static Properties settings(String address, String group) {
        Properties settings = new Properties();
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, address);
        settings.put(ConsumerConfig.GROUP_ID_CONFIG, group);
        settings.put(ConsumerConfig.GROUP_PROTOCOL_CONFIG, "classic");
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        settings.put(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, 3000);
        settings.put(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, 300);
        settings.put(ConsumerConfig.PARTITION_ASSIGNMENT_STRATEGY_CONFIG, List.of(RangeAssignor.class));
        settings.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, StringDeserializer.class);
        settings.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, StringDeserializer.class);
        return settings;
    }

    /** Says what it owns. */
    private static final class Listener implements ConsumerRebalanceListener {
        private final TreeSet<Integer> owned = new TreeSet<>();

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> added) {
            added.forEach(one -> owned.add(one.partition()));
            say("assigned", owned.toString());
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
            revoked.forEach(one -> owned.remove(one.partition()));
        }
    }
}
