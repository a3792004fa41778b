import io.jafka.admin.AdminOperation;
import io.jafka.api.FetchRequest;
import io.jafka.api.MultiFetchResponse;
import io.jafka.consumer.SimpleConsumer;
import io.jafka.message.ByteBufferMessageSet;
import io.jafka.message.CompressionCodec;
import io.jafka.message.Message;
import io.jafka.message.MessageAndOffset;
import io.jafka.producer.SyncProducer;
import io.jafka.producer.SyncProducerConfig;
import io.jafka.utils.Utils;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;

/** Jafka's own client against a broker under test: JafkaClient HOST PORT TOPIC PASSWORD. Prints what it saw, a line each. */
public final class JafkaClient {
    private JafkaClient() {}

    public static void main(String[] words) throws Exception {
        String host = words[0];
        int port = Integer.parseInt(words[1]);
        String topic = words[2];
        Properties properties = new Properties();
        properties.setProperty("host", host);
        properties.setProperty("port", words[1]);

        AdminOperation admin = new AdminOperation(host, port);
        System.out.println("created " + admin.createPartitions(topic, 2, true));

        SyncProducer producer = new SyncProducer(new SyncProducerConfig(properties));
        producer.send(topic, 0, new ByteBufferMessageSet(message("one"), message("two")));
        producer.send(topic, 0, new ByteBufferMessageSet(CompressionCodec.GZIPCompressionCodec, message("packed1"), message("packed2")));
        producer.send(topic, 1, new ByteBufferMessageSet(message("other")));

        SimpleConsumer consumer = new SimpleConsumer(host, port);
        List<String> first = fetch(consumer, topic, 0, 4);
        System.out.println("fetched " + first);
        System.out.println("fetched " + fetch(consumer, topic, 1, 1));

        List<String> several = new ArrayList<>();
        MultiFetchResponse responses =
            consumer.multifetch(Arrays.asList(new FetchRequest(topic, 0, 0L), new FetchRequest(topic, 1, 0L)));
        for (ByteBufferMessageSet set : responses) {
            several.add(String.valueOf(text(set)));
        }
        System.out.println("multifetched " + several);
        System.out.println("earliest " + Arrays.toString(consumer.getOffsetsBefore(topic, 0, -2, 5)));
        System.out.println("latest of 1 " + Arrays.toString(consumer.getOffsetsBefore(topic, 1, -1, 5)));
        System.out.println("latest " + consumer.getLatestOffset(topic, 1));
        System.out.println("error beyond the end " + consumer.fetch(new FetchRequest(topic, 1, 999L)).getErrorCode());
        System.out.println("refused " + admin.deleteTopic(topic, "wrong"));
        System.out.println("deleted " + admin.deleteTopic(topic, words[3]));
        System.out.println("deleted again " + admin.deleteTopic(topic, words[3]));
        consumer.close();
        producer.close();
        admin.close();
    }

    private static Message message(String text) {
        return new Message(text.getBytes());
    }

    /** Fetches from the beginning until so many messages are there: nothing tells when they are flushed. */
    private static List<String> fetch(SimpleConsumer consumer, String topic, int partition, int count) throws Exception {
        List<String> found = new ArrayList<>();
        for (int attempt = 0; attempt < 200 && found.size() < count; attempt++) {
            found = text(consumer.fetch(new FetchRequest(topic, partition, 0L)));
            Thread.sleep(20);
        }
        return found;
    }

    private static List<String> text(ByteBufferMessageSet set) {
        List<String> found = new ArrayList<>();
        for (MessageAndOffset message : set) {
            found.add(Utils.toString(message.message.payload(), "UTF-8"));
        }
        return found;
    }
}
