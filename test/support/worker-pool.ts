import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { forgetRecords } from './audit-files.ts'
import { anewForEachTest, atEnd } from './shared.ts'
import { configFiles } from './config-files.ts'
import { ROOT, spawnPostern, type SpawnedPostern, type SpawnOptions } from './spawn-postern.ts'
import { ALL_AT_ACME, issueToken } from './tokens.ts'

/** A Postern with worker processes, and what tests do to it. */
export interface StartedPool extends SpawnedPostern {
  /** Its configuration file. */
  readonly file: string
  /** Replaces the configuration, in one step; the service sees for itself. */
  write(text: string): void
  /** Gives an order by the admin API. Rejects on anything but 200. */
  order(method: string, path: string, body?: object): Promise<Record<string, unknown>>
  /** A call of ACME's fund-list; its status and body. */
  call(token: string): Promise<{ readonly status: number; readonly body: string }>
  token(): Promise<string>
  /** Process ids of its workers. */
  workers(): readonly number[]
  /** Log lines so far, parsed. */
  log(): Record<string, unknown>[]
}

export const UPSTREAM_WORLD = join(ROOT, 'test/support/upstream.yaml')

/** The demo world before an upstream, with some more YAML. A call stays open as long as its test needs on a busy machine. */
export const poolConfig = (upstream: string, more = ''): string =>
  `extends: ${UPSTREAM_WORLD}
workers: 2
backends: { funds: { kind: http, target: ${upstream}, timeouts: { firstByte: 2m } } }
${more}`

/** Spawned on free ports, ended with the test. */
export async function startPool(
  text: string,
  options: Pick<SpawnOptions, 'environment' | 'descriptors' | 'node' | 'withoutSettings'> = {},
): Promise<StartedPool> {
  const at = configFiles({ 'postern.yaml': text })
  const file = at('postern.yaml')
  const spawned = await spawnPostern({ ...options, config: file })
  atEnd(async () => {
    await spawned.stop()
  })
  const data = options.environment?.['POSTERN_DATA'] ?? spawned.data
  anewForEachTest(() => forgetRecords({ data }))
  const adminToken = readFileSync(join(data, 'admin-token'), 'utf8').trim()
  return {
    ...spawned,
    data,
    file,
    write: (next) => writeFileSync(file, next),
    order: async (method, path, body) => {
      const response = await fetch(`${spawned.adminUrl}${path}`, {
        method,
        headers: {
          Authorization: `Bearer ${adminToken}`,
          ...(body && { 'Content-Type': 'application/json' }),
        },
        ...(body && { body: JSON.stringify(body) }),
      })
      const answer = (await response.json()) as Record<string, unknown>
      if (!response.ok) throw new Error(`${response.status} ${JSON.stringify(answer)}`)
      return answer
    },
    call: async (token) => {
      // A connection of its own, so that all workers take part.
      const response = await fetch(`${spawned.baseUrl}/api/1.0/b/ACME/fund-data/fund-list`, {
        headers: { Authorization: `Bearer ${token}`, Connection: 'close' },
      })
      return { status: response.status, body: await response.text() }
    },
    token: async () => (await issueToken(spawned, { scope: ALL_AT_ACME })).access_token,
    workers: () => childrenOf(spawned.pid),
    log: () =>
      spawned
        .output()
        .split('\n')
        .filter((line) => line.startsWith('{') && line.endsWith('}'))
        .map((line) => JSON.parse(line)),
  }
}

export const childrenOf = (pid: number): readonly number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(/\s+/).filter(Boolean).map(Number)

export interface Load {
  /** Statuses and how often each was answered; `failed` where there was no answer. */
  readonly counts: Readonly<Record<string, number>>
  /** What each answer said, with the time it was asked for. */
  readonly answers: readonly { readonly askedAt: number; readonly status: number; readonly body: string }[]
  /** Calls that broke without an answer. */
  readonly broken: readonly unknown[]
  stop(): Promise<void>
}

/** Calls at a bounded rate (a second) until stopped, from a few callers. */
export function startLoad(call: () => Promise<{ status: number; body: string }>, rate: number): Load {
  const callers = 16
  const pause = (1000 * callers) / rate
  const answers: { askedAt: number; status: number; body: string }[] = []
  const broken: unknown[] = []
  const counts: Record<string, number> = {}
  let stopped = false
  const count = (key: string): void => void (counts[key] = (counts[key] ?? 0) + 1)
  const one = async (): Promise<void> => {
    const askedAt = performance.now()
    try {
      const answer = await call()
      answers.push({ askedAt, ...answer })
      count(String(answer.status))
    } catch (error) {
      broken.push(error)
      count('failed')
    }
  }
  const caller = async (): Promise<void> => {
    while (!stopped) {
      const began = performance.now()
      await one()
      const left = pause - (performance.now() - began)
      if (left > 0) await new Promise((resolve) => setTimeout(resolve, left))
    }
  }
  const running = Promise.all(Array.from({ length: callers }, caller))
  return {
    counts,
    answers,
    broken,
    stop: async () => {
      stopped = true
      await running
    },
  }
}
