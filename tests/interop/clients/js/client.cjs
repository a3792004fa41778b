// kafkajs in one conversation with a broker; prints what it saw as one line of JSON.
//
//   node client.cjs ADDRESS TOPIC
"use strict";

const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require("kafkajs");

const [address, topic] = process.argv.slice(2);
const FIRST_TIME = 1_700_000_000_000;
const DYNAMIC_TOPIC = 1;

const kafka = new Kafka({ brokers: [address], clientId: "interop", logLevel: logLevel.NOTHING, retry: { retries: 3 } });
const seen = {};

// The name of a broker's error, or the words of another one.
async function outcome(action) {
  try {
    return await action();
  } catch (error) {
    return error.type ?? error.errors?.[0]?.type ?? error.message;
  }
}

async function administer(admin) {
  const wanted = { topic, numPartitions: 2, configEntries: [{ name: "retention.ms", value: "3600000" }] };
  seen["created"] = await outcome(() => admin.createTopics({ topics: [wanted] }));
  seen["created again"] = await outcome(() => admin.createTopics({ topics: [wanted] }));
  const bad = { topic: `${topic}-bad`, configEntries: [{ name: "retention.ms", value: "abc" }] };
  seen["bad setting"] = await outcome(() => admin.createTopics({ topics: [bad] }));
  seen["listed"] = (await admin.listTopics()).includes(topic);
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
  seen["partitions"] = topics[0].partitions.map((row) => [row.partitionId, row.partitionErrorCode]).sort();
  const cluster = await admin.describeCluster();
  seen["brokers"] = cluster.brokers.length;
}

async function produce() {
  const producer = kafka.producer({ allowAutoTopicCreation: false });
  await producer.connect();
  const rounds = [
    { acks: -1, compression: CompressionTypes.None },
    { acks: 1, compression: CompressionTypes.GZIP },
    { acks: 0, compression: CompressionTypes.None },
    { acks: -1, compression: CompressionTypes.GZIP },
  ];
  seen["offsets"] = [];
  for (const [number, round] of rounds.entries()) {
    const messages = [0, 1, 2].map((n) => ({
      partition: 0,
      key: `k${n}`,
      value: `${number}.${n}`,
      headers: { h: `x${n}` },
      timestamp: String(FIRST_TIME + number * 1000 + n),
    }));
    const answer = await producer.send({ topic, messages, ...round });
    seen["offsets"].push(answer?.[0]?.baseOffset ?? null);
  }
  seen["missing topic"] = await outcome(() => producer.send({ topic: `${topic}-missing`, messages: [{ value: "v" }] }));
  await producer.disconnect();

  const careful = kafka.producer({ idempotent: true, maxInFlightRequests: 1, allowAutoTopicCreation: false });
  await careful.connect();
  for (const n of [0, 1]) {
    const [row] = await careful.send({ topic, messages: [{ partition: 1, value: `once ${n}` }] });
    seen[`idempotent ${n}`] = row.baseOffset;
  }
  await careful.disconnect();
}

async function consume() {
  const consumer = kafka.consumer({ groupId: `${topic}-group`, sessionTimeout: 10_000, rebalanceTimeout: 10_000 });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const got = { 0: [], 1: [] };
  await new Promise((resolve, reject) => {
    const eachMessage = async ({ partition, message }) => {
      const header = message.headers.h === undefined ? null : message.headers.h.toString();
      const row = [message.offset, message.key?.toString() ?? null, message.value.toString(), header];
      got[partition].push(row);
      if (got[0].length === 12 && got[1].length === 2) resolve();
    };
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    consumer.run({ eachMessage }).catch(reject);
  });
  await consumer.disconnect();
  seen["consumed"] = got;
}

async function finish(admin) {
  const flat = (rows) => rows.map((row) => [row.partition, row.offset]).sort();
  const ends = await admin.fetchTopicOffsets(topic);
  seen["bounds"] = ends.map((row) => [row.partition, row.low, row.high]).sort();
  seen["by time"] = flat(await admin.fetchTopicOffsetsByTimestamp(topic, FIRST_TIME + 2001));
  const committed = await admin.fetchOffsets({ groupId: `${topic}-group`, topics: [topic] });
  seen["committed"] = flat(committed[0].partitions);
  seen["groups"] = (await admin.describeGroups([`${topic}-group`])).groups.map((group) => [group.state, group.members.length]);
  seen["group gone"] = (await admin.deleteGroups([`${topic}-group`])).map((row) => row.errorCode ?? 0);

  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: "5" }] });
  seen["low after trimming"] = (await admin.fetchTopicOffsets(topic)).map((row) => [row.partition, row.low]).sort();
  seen["grown"] = await outcome(() => admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] }));
  seen["shrunk"] = await outcome(() => admin.createPartitions({ topicPartitions: [{ topic, count: 1 }] }));

  const resource = { type: ConfigResourceTypes.TOPIC, name: topic };
  const configEntries = [{ name: "cleanup.policy", value: "compact" }];
  await admin.alterConfigs({ validateOnly: false, resources: [{ ...resource, configEntries }] });
  const { resources } = await admin.describeConfigs({ includeSynonyms: false, resources: [resource] });
  const own = resources[0].configEntries.filter((row) => row.configSource === DYNAMIC_TOPIC);
  seen["settings"] = own.map((row) => `${row.configName}=${row.configValue}`).sort();

  seen["gone"] = await outcome(() => admin.deleteTopics({ topics: [topic] }));
  seen["gone again"] = await outcome(() => admin.deleteTopics({ topics: [topic] }));
}

async function main() {
  const admin = kafka.admin();
  await admin.connect();
  await administer(admin);
  await produce();
  await consume();
  await finish(admin);
  await admin.disconnect();
  console.log(JSON.stringify(seen));
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
