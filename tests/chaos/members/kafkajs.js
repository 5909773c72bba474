// A member by kafkajs: BOOTSTRAP GROUP TOPIC MODE SESSION_MS. What it says: see the package. It has the eager protocol alone.
'use strict'

const { Kafka, AssignerProtocol, logLevel } = require('kafkajs')

const [bootstrap, groupId, topic, , session] = process.argv.slice(2)
const now = () => Number(process.hrtime.bigint()) / 1e9
const say = (...words) => console.log(words.join(' '))

// By the name and the metadata of Kafka's range assignor, so that one group has all three clients.
const range = ({ cluster }) => ({
  name: 'range',
  version: 0,
  async assign({ members }) {
    const partitions = cluster.findTopicPartitionMetadata(topic).map((found) => found.partitionId).sort((a, b) => a - b)
    const names = members.map((member) => member.memberId).sort()
    const share = Math.floor(partitions.length / names.length)
    const more = partitions.length % names.length
    return names.map((memberId, at) => {
      const first = at * share + Math.min(at, more)
      const some = partitions.slice(first, first + share + (at < more ? 1 : 0))
      const assignment = { [topic]: some }
      return { memberId, memberAssignment: AssignerProtocol.MemberAssignment.encode({ version: 0, assignment }) }
    })
  },
  protocol: ({ topics }) => ({
    name: 'range',
    metadata: AssignerProtocol.MemberMetadata.encode({ version: 0, topics }),
  }),
})

const kafka = new Kafka({
  clientId: 'kafkajs',
  brokers: bootstrap.split(','),
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 100, maxRetryTime: 1000, retries: 1000 },
})
const consumer = kafka.consumer({
  groupId,
  partitionAssigners: [range],
  sessionTimeout: Number(session),
  rebalanceTimeout: Math.max(15000, Number(session)),
  heartbeatInterval: 500,
  maxWaitTimeInMs: 100,
})
let held = []
const begun = new Set()

consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
  if (held.length) say('lost', held.join(','))
  held = payload.memberAssignment[topic] || []
  begun.clear()
  say('assigned', now(), held.join(','))
})
consumer.on(consumer.events.REBALANCING, () => {
  if (held.length) say('lost', held.join(','))
  held = []
})
consumer.on(consumer.events.CRASH, ({ payload }) => {
  if (!payload.restart) process.exit(1)
})

async function eachBatch({ batch, resolveOffset, heartbeat, isRunning, isStale }) {
  const { partition, messages } = batch
  if (!isRunning() || isStale() || !messages.length) return
  const some = messages.slice(0, 50)
  const [first, last] = [some[0].offset, some[some.length - 1].offset]
  if (!begun.has(partition)) {
    begun.add(partition)
    say('begin', partition, first)
  }
  say('got', partition, first, last)
  const asked = now()
  try {
    await consumer.commitOffsets([{ topic, partition, offset: String(Number(last) + 1) }])
    say('committed', asked, partition, Number(last) + 1)
  } catch (error) {
    say('refused', error.type || error.name)
    throw error
  }
  resolveOffset(last)
  await heartbeat()
}

async function main() {
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, partitionsConsumedConcurrently: 1, eachBatch })
}

main().catch((error) => {
  say('refused', error.name)
  process.exit(1)
})
