package main

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"sort"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	sessionTimeout    = 3 * time.Second
	heartbeatInterval = 300 * time.Millisecond
)

// memberSays prints a line of JSON for each thing that happens to a member of a group:
// {"assigned": [partitions]}, {"record": [partition, offset, value]}, {"committed": {partition: offset}}, {"closed": true}.
type memberSays struct {
	lock  sync.Mutex
	out   *json.Encoder
	owned map[int32]bool
}

func (says *memberSays) say(what string, value any) {
	says.lock.Lock()
	defer says.lock.Unlock()
	_ = says.out.Encode(map[string]any{what: value})
}

func (says *memberSays) change(topic string, partitions map[string][]int32, isOwned bool) []int32 {
	says.lock.Lock()
	defer says.lock.Unlock()
	for _, partition := range partitions[topic] {
		if isOwned {
			says.owned[partition] = true
		} else {
			delete(says.owned, partition)
		}
	}
	now := []int32{}
	for partition := range says.owned {
		now = append(now, partition)
	}
	sort.Slice(now, func(i, j int) bool { return now[i] < now[j] })
	return now
}

// beMember reads a topic as a member of a classic group until it gets SIGTERM, and then leaves.
func beMember(address, topic, group string) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	says := &memberSays{out: json.NewEncoder(os.Stdout), owned: map[int32]bool{}}
	assigned := func(_ context.Context, _ *kgo.Client, added map[string][]int32) {
		says.say("assigned", says.change(topic, added, true))
	}
	gone := func(_ context.Context, _ *kgo.Client, removed map[string][]int32) {
		says.change(topic, removed, false)
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(address), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.Balancers(kgo.RangeBalancer()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(sessionTimeout), kgo.HeartbeatInterval(heartbeatInterval),
		kgo.OnPartitionsAssigned(assigned), kgo.OnPartitionsRevoked(gone), kgo.OnPartitionsLost(gone),
	)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		records := client.PollFetches(ctx).Records()
		if len(records) == 0 {
			continue
		}
		positions := map[int32]int64{}
		for _, record := range records {
			says.say("record", []any{record.Partition, record.Offset, string(record.Value)})
			positions[record.Partition] = record.Offset + 1
		}
		if err := client.CommitRecords(ctx, records...); err != nil {
			says.say("failed", err.Error())
		} else {
			says.say("committed", positions)
		}
	}
	client.Close()
	says.say("closed", true)
	return nil
}
