// A client on franz-go with the verbs that the tests need. Records are lines of key, tab, value, on partition 0.
//
//	franz ADDRESS create TOPIC [key=value...]
//	franz ADDRESS produce TOPIC CODEC ACKS IDEMPOTENT < rows
//	franz ADDRESS consume TOPIC COUNT OFFSET       (OFFSET -1: from the end on)
//	franz ADDRESS admin TOPIC                      (what an administrator does, told as one line of JSON)
//	franz ADDRESS member TOPIC GROUP               (a member of a group, until SIGTERM)
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	timeout      = 30 * time.Second
	maxBatch     = 4 << 20
	maxBuffered  = 100_000
	endOfLog     = -1
	scannerBytes = 8 << 20
)

func main() {
	if os.Args[2] == "member" {
		if err := beMember(os.Args[1], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := run(ctx, os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, address, verb, topic string, rest []string) error {
	switch verb {
	case "create":
		return create(ctx, address, topic, rest)
	case "produce":
		return produce(ctx, address, topic, rest[0], rest[1], rest[2] == "true")
	case "consume":
		count, _ := strconv.Atoi(rest[0])
		offset, _ := strconv.ParseInt(rest[1], 10, 64)
		return consume(ctx, address, topic, count, offset)
	case "admin":
		return administer(ctx, address, topic)
	}
	return fmt.Errorf("no verb %q", verb)
}

func create(ctx context.Context, address, topic string, settings []string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		return err
	}
	defer client.Close()
	configs := map[string]*string{}
	for _, setting := range settings {
		key, value, _ := strings.Cut(setting, "=")
		configs[key] = kadm.StringPtr(value)
	}
	answer, err := kadm.NewClient(client).CreateTopic(ctx, 1, 1, configs, topic)
	return errors.Join(err, answer.Err)
}

func produce(ctx context.Context, address, topic, codec, acks string, idempotent bool) error {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	required := map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "-1": kgo.AllISRAcks()}
	options := []kgo.Opt{
		kgo.SeedBrokers(address), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[codec]), kgo.RequiredAcks(required[acks]),
		kgo.ProducerBatchMaxBytes(maxBatch), kgo.MaxBufferedRecords(maxBuffered),
	}
	if !idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	var failed error
	scanner := bufio.NewScanner(os.Stdin)
	scanner.Buffer(nil, scannerBytes)
	for scanner.Scan() {
		key, value, _ := strings.Cut(scanner.Text(), "\t")
		client.Produce(ctx, &kgo.Record{Key: []byte(key), Value: []byte(value)}, func(_ *kgo.Record, err error) {
			if err != nil && failed == nil {
				failed = err
			}
		})
	}
	return errors.Join(scanner.Err(), client.Flush(ctx), failed)
}

func consume(ctx context.Context, address, topic string, count int, offset int64) error {
	from := kgo.NewOffset().At(offset)
	if offset == endOfLog {
		from = kgo.NewOffset().AtEnd()
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(address),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: from}}),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for count > 0 {
		fetches := client.PollRecords(ctx, count)
		if err := fetches.Err(); err != nil {
			return err
		}
		for _, record := range fetches.Records() {
			fmt.Fprintf(out, "%s\t%s\n", record.Key, record.Value)
			count--
		}
	}
	return nil
}

// administer walks a topic through its life and reports what it saw at each step.
func administer(ctx context.Context, address, topic string) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(address), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	seen := map[string]any{}

	created, err := admin.CreateTopic(ctx, 2, 1, map[string]*string{"retention.ms": kadm.StringPtr("3600000")}, topic)
	seen["created"] = []any{name(err), created.NumPartitions, created.ReplicationFactor}
	_, err = admin.CreateTopic(ctx, 2, 1, nil, topic)
	seen["created again"] = name(err)
	_, err = admin.CreateTopic(ctx, 1, 3, nil, topic+"-three")
	seen["three copies"] = name(err)
	_, err = admin.CreateTopic(ctx, 1, 1, map[string]*string{"no.such.setting": kadm.StringPtr("1")}, topic+"-bad")
	seen["bad setting"] = name(err)

	base := time.UnixMilli(1_700_000_000_000)
	for n := range 10 {
		record := &kgo.Record{Value: []byte(strconv.Itoa(n)), Timestamp: base.Add(time.Duration(n) * time.Second)}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			return err
		}
	}
	starts, err := admin.ListStartOffsets(ctx, topic)
	seen["starts"] = offsets(starts, err)
	ends, err := admin.ListEndOffsets(ctx, topic)
	seen["ends"] = offsets(ends, err)
	after, err := admin.ListOffsetsAfterMilli(ctx, base.Add(4500*time.Millisecond).UnixMilli(), topic)
	seen["after 4.5 s"] = offsets(after, err)
	newest, err := admin.ListMaxTimestampOffsets(ctx, topic)
	seen["newest"] = offsets(newest, err)

	wanted := kadm.Offsets{}
	wanted.AddOffset(topic, 0, 3, -1)
	deleted, err := admin.DeleteRecords(ctx, wanted)
	row, _ := deleted.Lookup(topic, 0)
	seen["deleted to"] = []any{name(errors.Join(err, row.Err)), row.LowWatermark}
	starts, err = admin.ListStartOffsets(ctx, topic)
	seen["starts after"] = offsets(starts, err)

	grown, err := admin.CreatePartitions(ctx, 1, topic)
	seen["grown"] = name(errors.Join(err, grown[topic].Err))
	described, err := admin.ListTopics(ctx, topic)
	seen["partitions"] = []any{name(err), len(described[topic].Partitions)}

	_, err = admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "cleanup.policy", Value: kadm.StringPtr("compact")},
	}, topic)
	seen["altered"] = name(err)
	configs, err := admin.DescribeTopicConfigs(ctx, topic)
	seen["settings"] = settings(configs, err)

	groups, err := admin.OffsetForLeaderEpoch(ctx, epochs(topic))
	seen["epoch 0 ends"] = []any{name(err), groups[topic][0].EndOffset}

	gone, err := admin.DeleteTopics(ctx, topic)
	seen["gone"] = name(errors.Join(err, gone[topic].Err))
	gone, err = admin.DeleteTopics(ctx, topic)
	seen["gone again"] = name(errors.Join(err, gone[topic].Err))
	return json.NewEncoder(os.Stdout).Encode(seen)
}

// name returns the name of a Kafka error, "" for none.
func name(err error) string {
	var of *kerr.Error
	if errors.As(err, &of) {
		return of.Message
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func offsets(listed kadm.ListedOffsets, err error) any {
	if err = errors.Join(err, listed.Error()); err != nil {
		return name(err)
	}
	rows := map[string]int64{}
	listed.Each(func(row kadm.ListedOffset) { rows[strconv.Itoa(int(row.Partition))] = row.Offset })
	return rows
}

func settings(found kadm.ResourceConfigs, err error) any {
	if err != nil {
		return name(err)
	}
	rows := []string{}
	for _, resource := range found {
		for _, config := range resource.Configs {
			if config.Source.String() == "DYNAMIC_TOPIC_CONFIG" {
				rows = append(rows, config.Key+"="+config.MaybeValue())
			}
		}
	}
	sort.Strings(rows)
	return rows
}

func epochs(topic string) kadm.OffsetForLeaderEpochRequest {
	request := kadm.OffsetForLeaderEpochRequest{}
	request.Add(topic, 0, 0)
	return request
}
