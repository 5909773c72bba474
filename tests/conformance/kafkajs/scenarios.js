// What an application does with kafkajs, one line of JSON per scenario: {"test": …, "outcome": …, "seconds": …, "remark": …}.
//
//   node scenarios.js BOOTSTRAP REPLICAS [PART-OF-A-NAME]          (NODE_PATH: where kafkajs and its codecs are)
'use strict'

const crypto = require('crypto')
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = require('kafkajs')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
CompressionCodecs[CompressionTypes.LZ4] = new (require('kafkajs-lz4'))().codec

const [bootstrap, replicas, only] = [process.argv[2], Number(process.argv[3]), process.argv[4] || '']
const LIMIT_MS = 60000
const kafka = new Kafka({ clientId: 'conformance', brokers: bootstrap.split(','), logLevel: logLevel.NOTHING })
const run = crypto.randomBytes(4).toString('hex')

const name = (suffix) => `kjs-${run}-${suffix}`
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

function check(condition, sentence) {
  if (!condition) throw new Error(sentence)
}

function equal(found, expected, what) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)]
  check(a === b, `${what}: ${a} instead of ${b}`)
}

async function until(condition, what, limitMs = 30000) {
  const end = Date.now() + limitMs
  while (!(await condition())) {
    check(Date.now() < end, `waited for ${what}`)
    await sleep(50)
  }
}

async function withAdmin(body) {
  const admin = kafka.admin()
  await admin.connect()
  try {
    return await body(admin)
  } finally {
    await admin.disconnect()
  }
}

async function topic(suffix, numPartitions = 1, configEntries = []) {
  const made = name(suffix)
  await withAdmin((admin) =>
    admin.createTopics({
      waitForLeaders: true,
      topics: [{ topic: made, numPartitions, replicationFactor: replicas, configEntries }],
    })
  )
  return made
}

async function produce(to, messages, settings = {}, sendSettings = {}) {
  const producer = kafka.producer({ allowAutoTopicCreation: false, ...settings })
  await producer.connect()
  try {
    return await producer.send({ topic: to, messages, ...sendSettings })
  } finally {
    await producer.disconnect()
  }
}

// A member of a group that keeps what it sees; `member.stop()` when done.
async function member(groupId, topics, settings = {}, onMessage = async () => {}) {
  const consumer = kafka.consumer({ groupId, sessionTimeout: 10000, rebalanceTimeout: 10000, heartbeatInterval: 500, maxWaitTimeInMs: 200, ...settings })
  const seen = []
  let assignment = null
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    assignment = payload.memberAssignment
  })
  await consumer.connect()
  await consumer.subscribe({ topics, fromBeginning: true })
  await consumer.run({
    partitionsConsumedConcurrently: 3,
    eachMessage: async (event) => {
      seen.push({ partition: event.partition, ...event.message })
      await onMessage(event)
    },
  })
  return { consumer, seen, partitions: () => Object.values(assignment || {}).flat().length, stop: () => consumer.disconnect() }
}

const many = (count, partitions = 1) =>
  [...Array(count).keys()].map((n) => ({ key: `k${n}`, value: `v${n}`, partition: n % partitions }))
const values = (messages) => messages.map((m) => (m.value === null ? null : m.value.toString())).sort()

const scenarios = {
  async produce_and_consume() {
    const t = await topic('pc', 3)
    const sent = await produce(t, many(90, 3), {}, { acks: -1 })
    equal(sent.map((s) => s.errorCode), [0, 0, 0], 'errors')
    const reader = await member(name('pc'), [t])
    await until(() => reader.seen.length >= 90, '90 messages')
    await reader.stop()
    equal(values(reader.seen), many(90).map((m) => m.value).sort(), 'values')
    for (const p of [0, 1, 2]) {
      const offsets = reader.seen.filter((m) => m.partition === p).map((m) => Number(m.offset))
      equal(offsets, [...Array(30).keys()], `offsets of partition ${p}`)
    }
  },

  async keys_headers_nulls_and_empty_values() {
    const t = await topic('khn')
    await produce(t, [
      { key: null, value: 'a', headers: { one: 'x', two: ['y', 'z'] } },
      { key: '', value: '' },
      { key: 'gone', value: null },
    ])
    const reader = await member(name('khn'), [t])
    await until(() => reader.seen.length >= 3, '3 messages')
    await reader.stop()
    const [first, second, third] = reader.seen
    equal(first.key, null, 'no key')
    equal([first.headers.one.toString(), first.headers.two.map(String)], ['x', ['y', 'z']], 'headers')
    equal([second.key.toString(), second.value.toString()], ['', ''], 'empty key and value')
    equal([third.key.toString(), third.value], ['gone', null], 'null as a value')
  },

  async acks_of_all_kinds() {
    const t = await topic('acks')
    for (const acks of [0, 1, -1]) await produce(t, [{ value: `acks ${acks}` }], {}, { acks })
    const reader = await member(name('acks'), [t])
    await until(() => reader.seen.length >= 3, '3 messages')
    await reader.stop()
  },

  async messages_with_the_same_key_share_a_partition() {
    const t = await topic('key', 5)
    const messages = [...Array(100).keys()].map((n) => ({ key: `k${n % 7}`, value: `v${n}` }))
    await produce(t, messages)
    const reader = await member(name('key'), [t])
    await until(() => reader.seen.length >= 100, '100 messages')
    await reader.stop()
    for (let k = 0; k < 7; k++) {
      const mine = reader.seen.filter((m) => m.key.toString() === `k${k}`)
      equal(new Set(mine.map((m) => m.partition)).size, 1, `partitions of key ${k}`)
      const order = mine.map((m) => Number(m.value.toString().slice(1)))
      equal(order, [...order].sort((a, b) => a - b), `order of key ${k}`)
    }
  },

  async compression_gzip() {
    await compressed(CompressionTypes.GZIP)
  },
  async compression_snappy() {
    await compressed(CompressionTypes.Snappy)
  },
  async compression_lz4() {
    await compressed(CompressionTypes.LZ4)
  },

  async an_idempotent_producer() {
    const t = await topic('idem')
    const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
    await producer.connect()
    const offsets = []
    for (let n = 0; n < 20; n++) {
      const [sent] = await producer.send({ topic: t, messages: [{ key: 'k', value: `v${n}` }] })
      offsets.push(Number(sent.baseOffset))
    }
    await producer.disconnect()
    equal(offsets, [...Array(20).keys()], 'offsets')
  },

  async timestamps_come_back() {
    const t = await topic('time')
    const base = Date.now() - 60000
    await produce(t, [0, 1, 2].map((n) => ({ value: `${n}`, timestamp: String(base + n * 1000) })))
    const reader = await member(name('time'), [t])
    await until(() => reader.seen.length >= 3, '3 messages')
    await reader.stop()
    equal(reader.seen.map((m) => Number(m.timestamp) - base), [0, 1000, 2000], 'timestamps')
    const found = await withAdmin((admin) => admin.fetchTopicOffsetsByTimestamp(t, base + 500))
    equal(found, [{ partition: 0, offset: '1' }], 'the offset of a time')
    const late = await withAdmin((admin) => admin.fetchTopicOffsetsByTimestamp(t, base + 50000))
    equal(late, [{ partition: 0, offset: '3' }], 'the offset of a time after the last')
  },

  async append_time() {
    const t = await topic('append', 1, [{ name: 'message.timestamp.type', value: 'LogAppendTime' }])
    const before = Date.now()
    await produce(t, [{ value: 'x', timestamp: '1000' }])
    const reader = await member(name('append'), [t])
    await until(() => reader.seen.length >= 1, 'a message')
    await reader.stop()
    check(Number(reader.seen[0].timestamp) >= before - 1000, `the broker's time, not ${reader.seen[0].timestamp}`)
  },

  async two_members_share_and_one_takes_over() {
    const [t, group] = [await topic('share', 4), name('share')]
    const first = await member(group, [t])
    await until(() => first.partitions() === 4, 'the first to have all')
    const second = await member(group, [t])
    await until(() => first.partitions() === 2 && second.partitions() === 2, 'two each')
    await produce(t, many(40, 4))
    await until(() => first.seen.length + second.seen.length >= 40, '40 messages')
    check(first.seen.length && second.seen.length, 'both have read')
    await second.stop()
    await until(() => first.partitions() === 4, 'the first to have all again')
    await produce(t, many(40, 4))
    await until(() => first.seen.length + second.seen.length >= 80, '80 messages')
    await first.stop()
  },

  async five_members_of_a_group() {
    const [t, group] = [await topic('five', 5), name('five')]
    const members = await Promise.all([...Array(5).keys()].map(() => member(group, [t])))
    await until(() => members.every((m) => m.partitions() === 1), 'one each', 45000)
    await produce(t, many(100, 5))
    await until(() => members.reduce((sum, m) => sum + m.seen.length, 0) >= 100, '100 messages')
    await Promise.all(members.map((m) => m.stop()))
    equal(values(members.flatMap((m) => m.seen)), many(100).map((m) => m.value).sort(), 'each once')
  },

  async committed_offsets_are_where_the_next_begins() {
    const [t, group] = [await topic('resume'), name('resume')]
    await produce(t, many(10))
    const first = await member(group, [t], {})
    await until(() => first.seen.length >= 10, '10 messages')
    await first.consumer.commitOffsets([{ topic: t, partition: 0, offset: '6', metadata: 'here' }])
    await first.consumer.stop()
    const kept = await withAdmin((admin) => admin.fetchOffsets({ groupId: group, topics: [t] }))
    check(Number(kept[0].partitions[0].offset) >= 6, 'an offset is kept')
    await first.stop()
    await withAdmin((admin) => admin.setOffsets({ groupId: group, topic: t, partitions: [{ partition: 0, offset: '6' }] }))
    const second = await member(group, [t])
    await until(() => second.seen.length >= 4, '4 messages')
    await sleep(300)
    await second.stop()
    equal(second.seen.map((m) => Number(m.offset)), [6, 7, 8, 9], 'offsets')
  },

  async seek() {
    const [t, group] = [await topic('seek'), name('seek')]
    await produce(t, many(10))
    const reader = await member(group, [t])
    await until(() => reader.seen.length >= 10, '10 messages')
    reader.consumer.seek({ topic: t, partition: 0, offset: '7' })
    await until(() => reader.seen.length >= 13, '3 more')
    await reader.stop()
    equal(reader.seen.slice(10).map((m) => Number(m.offset)), [7, 8, 9], 'offsets')
  },

  async pause_and_resume() {
    const [t, group] = [await topic('pause'), name('pause')]
    await produce(t, many(5))
    const reader = await member(group, [t])
    await until(() => reader.seen.length >= 5, '5 messages')
    reader.consumer.pause([{ topic: t }])
    await produce(t, many(5))
    await sleep(1500)
    equal(reader.seen.length, 5, 'messages while it pauses')
    reader.consumer.resume([{ topic: t }])
    await until(() => reader.seen.length >= 10, '5 more')
    await reader.stop()
  },

  async admin_create_list_describe_delete() {
    const t = await topic('admin', 3, [{ name: 'retention.ms', value: '3600000' }])
    await withAdmin(async (admin) => {
      check((await admin.listTopics()).includes(t), 'it is listed')
      const { topics } = await admin.fetchTopicMetadata({ topics: [t] })
      equal(topics[0].partitions.map((p) => p.partitionId).sort(), [0, 1, 2], 'partitions')
      equal(topics[0].partitions.every((p) => p.isr.length === replicas), true, 'all in sync')
      const described = await admin.describeConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: t, configNames: ['retention.ms'] }] })
      equal(described.resources[0].configEntries.map((e) => [e.configName, e.configValue]), [['retention.ms', '3600000']], 'configs')
      equal(await admin.createTopics({ topics: [{ topic: t, numPartitions: 3 }] }), false, 'made again')
      await admin.deleteTopics({ topics: [t] })
      await until(async () => !(await admin.listTopics()).includes(t), 'it to be gone')
    })
  },

  async admin_partitions_and_configs() {
    const t = await topic('alter', 1)
    await withAdmin(async (admin) => {
      await admin.createPartitions({ topicPartitions: [{ topic: t, count: 3 }] })
      await until(async () => (await admin.fetchTopicMetadata({ topics: [t] })).topics[0].partitions.length === 3, 'three partitions')
      await admin.alterConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: t, configEntries: [{ name: 'retention.ms', value: '7200000' }] }] })
      await until(async () => {
        const found = await admin.describeConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: t, configNames: ['retention.ms'] }] })
        return found.resources[0].configEntries[0].configValue === '7200000'
      }, 'the new value')
    })
  },

  async admin_cluster() {
    const found = await withAdmin((admin) => admin.describeCluster())
    check(found.brokers.length === bootstrap.split(',').length, `brokers: ${found.brokers.length}`)
    check(found.brokers.some((b) => b.nodeId === found.controller), 'the controller is one of them')
  },

  async admin_groups() {
    const [t, group] = [await topic('groups', 2), name('groups')]
    const reader = await member(group, [t])
    await until(() => reader.partitions() === 2, 'a member')
    await withAdmin(async (admin) => {
      check((await admin.listGroups()).groups.some((g) => g.groupId === group), 'it is listed')
      const { groups } = await admin.describeGroups([group])
      equal([groups[0].state, groups[0].members.length, groups[0].protocolType], ['Stable', 1, 'consumer'], 'description')
      const refused = await admin.deleteGroups([group]).then(() => null, (error) => error)
      check(refused !== null, 'a group with members is not deleted')
      await reader.stop()
      await until(async () => (await admin.describeGroups([group])).groups[0].state === 'Empty', 'it to be empty')
      await admin.deleteGroups([group])
      check(!(await admin.listGroups()).groups.some((g) => g.groupId === group), 'it is gone')
    })
  },

  async admin_offsets() {
    const t = await topic('offsets')
    await produce(t, many(8))
    await withAdmin(async (admin) => {
      equal(await admin.fetchTopicOffsets(t), [{ partition: 0, offset: '8', high: '8', low: '0' }], 'offsets')
      await admin.deleteTopicRecords({ topic: t, partitions: [{ partition: 0, offset: '3' }] })
      equal((await admin.fetchTopicOffsets(t))[0].low, '3', 'the first offset after deletion')
    })
  },

  async a_missing_topic_is_an_error() {
    const failed = await produce(name('no such'.replace(' ', '-')), [{ value: 'x' }], { retry: { retries: 1 }, allowAutoTopicCreation: false }).then(
      () => null,
      (error) => error
    )
    // Kafka and we may create it (auto-creation is on in these suites): then there is no error.
    check(failed === null || /topic|partition/i.test(failed.message), `a sensible error, not ${failed}`)
  },

  async a_message_that_is_too_large() {
    const t = await topic('large', 1, [{ name: 'max.message.bytes', value: '1000' }])
    const failed = await produce(t, [{ value: 'x'.repeat(5000) }], { retry: { retries: 0 } }).then(() => null, (error) => error)
    check(failed !== null && /too large|larger|MESSAGE_TOO_LARGE/i.test(`${failed.type} ${failed.message}`), `refused, not ${failed}`)
    await produce(t, [{ value: 'small' }])
  },

  async transactions() {
    const t = await topic('txn')
    const producer = kafka.producer({ transactionalId: name('txn'), idempotent: true, maxInFlightRequests: 1, retry: { retries: 2 } })
    await producer.connect()
    try {
      const kept = await producer.transaction()
      await kept.send({ topic: t, messages: [{ value: 'kept' }] })
      await kept.commit()
      const dropped = await producer.transaction()
      await dropped.send({ topic: t, messages: [{ value: 'dropped' }] })
      await dropped.abort()
    } finally {
      await producer.disconnect()
    }
    await produce(t, [{ value: 'last' }])
    const reader = await member(name('txn'), [t])
    await until(() => reader.seen.some((m) => m.value.toString() === 'last'), 'the last message')
    await reader.stop()
    equal(values(reader.seen), ['kept', 'last'], 'committed values')
  },
}

async function compressed(codec) {
  const t = await topic(`codec-${codec}`)
  await produce(t, many(200), {}, { compression: codec })
  const reader = await member(name(`codec-${codec}`), [t])
  await until(() => reader.seen.length >= 200, '200 messages')
  await reader.stop()
  equal(values(reader.seen), many(200).map((m) => m.value).sort(), 'values')
}

async function main() {
  for (const [test, body] of Object.entries(scenarios)) {
    if (!test.includes(only)) continue
    const began = Date.now()
    let [outcome, remark, timer] = ['pass', '', null]
    const limit = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error('timeout')), LIMIT_MS)
    })
    try {
      await Promise.race([body(), limit])
    } catch (error) {
      outcome = error.message === 'timeout' ? 'timeout' : 'fail'
      remark = `${error.name}: ${error.message}`.slice(0, 400)
    }
    clearTimeout(timer)
    console.log(JSON.stringify({ test, outcome, seconds: (Date.now() - began) / 1000, remark }))
  }
  process.exit(0)
}

main()
