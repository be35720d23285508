/**
 * The thread that asks Postgres for `query` (postgres.ts), on connections that it keeps. One for a query each would cost more
 * than most queries: Postgres starts a process for it, and psql is one more.
 */
import { workerData } from 'node:worker_threads'
import pg from 'pg'
import { messageOf } from '../../src/kernel/thrown.ts'
import type { Asked, QueryThreadData } from './postgres.ts'

const { port, answered } = workerData as QueryThreadData
/** Milliseconds. A cluster that is frozen takes connections and answers nothing. */
const CONNECT_WITHIN = 10_000

const kept = new Map<string, pg.Client>()

async function connectedTo(url: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_WITHIN,
    // As Postgres has sent them, which is what psql prints.
    types: { getTypeParser: () => String },
  })
  const forget = (): void => {
    if (kept.get(url) === client) kept.delete(url)
  }
  client.on('error', forget)
  client.on('end', forget)
  await client.connect()
  kept.set(url, client)
  return client
}

/** One statement, or several. Its server may have ended since the one before, on a connection that was kept. */
async function send(url: string, sql: string): Promise<readonly pg.QueryArrayResult[]> {
  const old = kept.get(url)
  const client = old ?? (await connectedTo(url))
  try {
    const results = await client.query<unknown[]>({ text: sql, rowMode: 'array' })
    await client.query('DISCARD ALL')
    return [results].flat()
  } catch (thrown) {
    if (thrown instanceof pg.DatabaseError) throw thrown
    kept.delete(url)
    void client.end().catch(() => undefined)
    if (old !== undefined) return send(url, sql)
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
