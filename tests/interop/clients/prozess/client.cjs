// Produces and consumes with prozess, a client of Kafka 0.7: client.cjs HOST PORT TOPIC. Prints what it saw as JSON.
'use strict';

const { Consumer, Producer } = require('prozess');

const [host, port, topic] = [process.argv[2], Number(process.argv[3]), process.argv[4]];
const WANTED = ['one', 'two', 'three'];
const seen = {};

function call(object, method, ...words) {
  return new Promise((resolve, reject) => {
    object[method](...words, (error, answer) => (error ? reject(error) : resolve(answer)));
  });
}

async function consume(offset) {
  const consumer = new Consumer({ host, port, topic, partition: 0, offset });
  await call(consumer, 'connect');
  return consumer;
}

async function main() {
  const producer = new Producer(topic, { host, port });
  producer.on('error', (error) => { throw error; });
  producer.connect();
  await call(producer, 'send', WANTED);

  const consumer = await consume(0);
  const payloads = [];
  while (payloads.length < WANTED.length) {
    for (const message of await call(consumer, 'consume')) {
      payloads.push(message.payload.toString());
    }
  }
  seen.payloads = payloads;
  seen.next = consumer.offset.toString();
  seen.latest = (await call(consumer, 'getLatestOffset')).toString();

  const lost = await consume(999999);
  seen.lost = await call(lost, 'consume').then(() => 'no error', (error) => String(error.message || error));
  console.log(JSON.stringify(seen));
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
