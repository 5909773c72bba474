// kafkajs; `tests.clients` says what it reads and answers.          (NODE_PATH: where kafkajs is)
'use strict'

const fs = require('fs')
const readline = require('readline')
const { Kafka, logLevel } = require('kafkajs')

const KEYS = 97
const PAUSE_MS = 10
const MOST_LOGGED = 6
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const wordsOf = (error) => [error.name, error.type, error.message, error.cause && error.cause.message].filter(Boolean).join(': ')
const message = (number) => ({ key: `k${number % KEYS}`, value: `v${number}` })

// What the client logs of errors goes to `logged`.
function client(job, logged) {
  const read = (path) => fs.readFileSync(path, 'utf-8')
  const shown = job.certificate ? { cert: read(job.certificate), key: read(job.key) } : {}
  return new Kafka({
    clientId: 'clients',
    brokers: job.bootstrap.split(','),
    ssl: job.ca ? { ca: [read(job.ca)], ...shown } : undefined,
    sasl: job.mechanism
      ? {
          mechanism: job.mechanism.toLowerCase(),
          username: job.user,
          password: job.password,
          oauthBearerProvider: async () => ({ value: job.password }),
        }
      : undefined,
    reauthenticationThreshold: Math.round(job.lifetime_ms / 4), // its default, 10 s, is for lifetimes of hours
    authenticationTimeout: 10000,
    connectionTimeout: 10000,
    retry: { retries: 3 },
    logLevel: logLevel.ERROR,
    logCreator: () => ({ log }) => {
      const said = [log.message, log.error].filter(Boolean).join(': ')
      if (!logged.includes(said)) logged.push(said)
    },
  })
}

async function withProducer(job, logged, body) {
  const producer = client(job, logged).producer({ allowAutoTopicCreation: false, idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  try {
    return await body((messages) => producer.send({ topic: job.topic, acks: -1, messages }))
  } finally {
    await producer.disconnect()
  }
}

// Reads in the group until `count` records are there, and commits behind each partition's last one.
async function consume(job, logged, count) {
  const consumer = client(job, logged).consumer({ groupId: job.group, allowAutoTopicCreation: false, maxWaitTimeInMs: 200 })
  const values = []
  const next = new Map()
  let failed = null
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    failed = payload.error
  })
  await consumer.connect()
  try {
    await consumer.subscribe({ topics: [job.topic], fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message: one }) => {
        values.push(one.value.toString())
        next.set(partition, String(BigInt(one.offset) + 1n))
      },
    })
    const end = Date.now() + job.limit_s * 1000
    while (values.length < count && failed === null && Date.now() < end) await sleep(20)
    if (failed !== null) throw failed
    if (values.length < count) throw new Error(`nothing has been said, and ${values.length} records have been read`)
    await consumer.commitOffsets([...next].map(([partition, offset]) => ({ topic: job.topic, partition, offset })))
  } finally {
    await consumer.disconnect()
  }
  return { received: values.length, distinct: new Set(values).size }
}

const does = {
  async exchange(job, logged) {
    await withProducer(job, logged, (send) => send([...Array(job.records).keys()].map(message)))
    return { sent: job.records, ...(await consume(job, logged, job.records)) }
  },

  async produce(job, logged) {
    await withProducer(job, logged, (send) => send([message(0)]))
    return { sent: 1 }
  },

  async consume(job, logged) {
    return consume(job, logged, 1)
  },

  async steady(job, logged) {
    const end = Date.now() + job.seconds * 1000
    let sent = 0
    await withProducer(job, logged, async (send) => {
      for (; Date.now() < end; sent++) {
        await send([message(sent)])
        await sleep(PAUSE_MS)
      }
    })
    return { sent }
  },
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const job = JSON.parse(line)
    const logged = []
    let answer = { ok: true, words: '' }
    try {
      answer = { ...answer, ...(await does[job.do](job, logged)) }
    } catch (error) {
      answer = { ok: false, words: wordsOf(error) }
    }
    answer.words = [answer.words, ...logged.slice(-MOST_LOGGED).map((one) => `log: ${one}`)].filter(Boolean).join('; ')
    console.log(JSON.stringify({ name: job.name, ...answer }))
  }
  process.exit(0) // a client that could not connect leaves timers behind
}

main()
