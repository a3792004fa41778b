import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs Kafka's command line tools one after the other in one process, since a process of its own for each takes a second.
 * A line of standard input is a command, its words and the tool's class in front of them separated by tabs. For each it
 * prints what the tool printed, and then a line with a form feed and the exit code.
 */
public final class ToolRunner {
    private static final String END = "\f";

    private ToolRunner() {}

    public static void main(String[] none) throws Exception {
        PrintStream out = System.out;
        Exit.setExitProcedure((code, message) -> {
            throw new Ended(code);
        });
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            PrintStream catching = new PrintStream(printed, true, StandardCharsets.UTF_8);
            System.setOut(catching);
            System.setErr(catching);
            int code = run(line.split("\t"));
            catching.flush();
            out.write(printed.toByteArray());
            out.print("\n" + END + code + "\n");
            out.flush();
        }
    }

    private static int run(String[] words) throws ReflectiveOperationException {
        try {
            Class.forName(words[0])
                .getMethod("main", String[].class)
                .invoke(null, (Object) Arrays.copyOfRange(words, 1, words.length));
            return 0;
        } catch (InvocationTargetException failed) {
            if (failed.getCause() instanceof Ended ended) {
                return ended.code;
            }
            failed.getCause().printStackTrace();
            return 1;
        }
    }

    /** In place of the end of the process. */
    private static final class Ended extends Error {
        private final int code;

        private Ended(int code) {
            super(null, null, false, false);
            this.code = code;
        }
    }
}
