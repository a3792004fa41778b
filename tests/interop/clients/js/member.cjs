// One kafkajs consumer as a member of a group; prints a line of JSON for each thing that happens:
// {"assigned": [partitions]}, {"record": [partition, offset, value]}, {"committed": {partition: offset}}, {"closed": true}.
//
//   node member.cjs ADDRESS GROUP TOPIC
"use strict";

const { Kafka, PartitionAssigners, logLevel } = require("kafkajs");

const [address, groupId, topic] = process.argv.slice(2);
const SESSION_TIMEOUT_MS = 3_000;
const HEARTBEAT_INTERVAL_MS = 300;
const POLL_MS = 100;

const kafka = new Kafka({
  brokers: [address],
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 100, maxRetryTime: 1_000, retries: 30 },
});

// The name that other libraries have in common; how its leader shares out is its own matter.
const range = (facts) => ({ ...PartitionAssigners.roundRobin(facts), name: "range" });

const consumer = kafka.consumer({
  groupId,
  sessionTimeout: SESSION_TIMEOUT_MS,
  heartbeatInterval: HEARTBEAT_INTERVAL_MS,
  maxWaitTimeInMs: POLL_MS,
  partitionAssigners: [range],
});

function say(what) {
  console.log(JSON.stringify(what));
}

async function eachBatch({ batch, resolveOffset, heartbeat }) {
  for (const { offset, value } of batch.messages) {
    say({ record: [batch.partition, Number(offset), value.toString()] });
  }
  const next = String(Number(batch.lastOffset()) + 1);
  await consumer.commitOffsets([{ topic, partition: batch.partition, offset: next }]);
  say({ committed: { [batch.partition]: Number(next) } });
  resolveOffset(batch.lastOffset());
  await heartbeat();
}

consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
  say({ assigned: [...(payload.memberAssignment[topic] ?? [])].sort((a, b) => a - b) });
});

// Some errors end it for good; an application starts it again.
consumer.on(consumer.events.CRASH, ({ payload }) => {
  console.error(payload.error);
  if (!payload.restart) main().catch(giveUp);
});

function giveUp(error) {
  console.error(error);
  process.exit(1);
}

async function main() {
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({ autoCommit: false, eachBatch });
}

process.on("SIGTERM", async () => {
  await consumer.disconnect();
  say({ closed: true });
  process.exit(0);
});

main().catch(giveUp);
