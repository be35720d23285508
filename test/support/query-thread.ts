/**
 * The thread that asks Postgres for `query` (postgres.ts), on connections that it keeps. One for a query each would cost more
 * than most queries: Postgres starts a process for it, and psql is one more.
 */
import { workerData } from 'node:worker_threads'
import pg from 'pg'
import { messageOf } from '../../src/base/kernel/thrown.ts'
import type { Asked, QueryThreadData } from './postgres.ts'

const { port, answered } = workerData as QueryThreadData
/** Milliseconds. A cluster that is frozen takes connections and answers nothing. */
const CONNECT_WITHIN = 10_000

/** Locks and settings of a query end with it, as with a connection of its own. */
const CLEAN = 'DISCARD ALL'

const kept = new Map<string, pg.Client>()

async function connectedTo(url: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_WITHIN,
    // As Postgres has sent them, which is what psql prints.
    types: { getTypeParser: () => String },
  })
  const gone = (): void => {
    if (kept.get(url) === client) kept.delete(url)
  }
  client.on('error', gone)
  client.on('end', gone)
  await client.connect()
  kept.set(url, client)
  return client
}

/** A kept connection whose server has not ended since, or a new one. */
async function clientOf(url: string): Promise<pg.Client> {
  const old = kept.get(url)
  if (old === undefined) return connectedTo(url)
  try {
    // Asked before: a statement of the caller may be done twice if it is sent again.
    await old.query(CLEAN)
    return old
  } catch {
    forget(url, old)
    return connectedTo(url)
  }
}

function forget(url: string, client: pg.Client): void {
  kept.delete(url)
  void client.end().catch(() => undefined)
}

/** One statement, or several. */
async function send(url: string, sql: string): Promise<readonly pg.QueryArrayResult[]> {
  const client = await clientOf(url)
  try {
    const results = await client.query<unknown[]>({ text: sql, rowMode: 'array' })
    await client.query(CLEAN)
    return [results].flat()
  } catch (thrown) {
    // A transaction may be open on it.
    forget(url, client)
    throw thrown
  }
}

/** @returns the rows as lines, their columns separated by `|` */
async function ask({ url, sql }: Asked): Promise<string> {
  const results = await send(url, sql)
  return results.flatMap(({ rows }) => rows.map((row) => row.map((cell) => cell ?? '').join('|'))).join('\n')
}

port.on('message', (asked: Asked) => {
  void (async () => {
    try {
      port.postMessage({ printed: await ask(asked) })
    } catch (thrown) {
      port.postMessage({ failed: messageOf(thrown) })
    }
    Atomics.store(answered, 0, 1)
    Atomics.notify(answered, 0)
  })()
})
