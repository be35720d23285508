/** A Postern of several processes for the proofs, of this tree or of another (to compare with what was). */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawnPostern, ROOT, type SpawnedPostern } from '../../support/spawn-postern.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'

export interface ProvenCrew extends SpawnedPostern {
  readonly token: string
  /** Gives an order by the admin API; rejects after `ms`. */
  order(path: string, ms: number): Promise<unknown>
  workers(): readonly number[]
}

/** Answers what the demo's fund-list gets, `delay` milliseconds after it was asked. */
export async function startSlowUpstream(delay = 0): Promise<{ url: string; server: Server }> {
  const server = createServer((request, response) => {
    request.resume()
    setTimeout(() => {
      response.setHeader('Content-Type', 'application/json')
      response.end('{"FundSummaries":[],"TotalCount":0}')
    }, delay)
  })
  server.keepAliveTimeout = 60_000
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

export async function startProvenCrew(
  upstream: string,
  { root = ROOT, workers = 2, more = '' } = {},
): Promise<ProvenCrew> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-prove-'))
  const config = join(folder, 'postern.yaml')
  const text = `extends: ${join(root, 'config/upstream.yaml')}
workers: ${workers}
backends: { funds: { kind: http, target: ${upstream} } }
log: { calls: none }
${more}`
  writeFileSync(config, text)
  const spawned = await spawnPostern({ config, root })
  const adminToken = readFileSync(join(spawned.data, 'admin-token'), 'utf8').trim()
  const { access_token: token } = await issueToken(spawned, { scope: ALL_AT_ACME })
  return {
    ...spawned,
    token,
    order: async (path, ms) => {
      const response = await fetch(`${spawned.adminUrl}${path}`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${adminToken}` },
        signal: AbortSignal.timeout(ms),
      })
      return response.json()
    },
    workers: () => childrenOf(spawned.pid),
  }
}

export function childrenOf(pid: number): readonly number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return text.split(/\s+/).filter(Boolean).map(Number)
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return false
  }
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Ends a process that did not end by itself, and its workers. */
export function killAll(pid: number): void {
  const workers = isAlive(pid) ? childrenOf(pid) : []
  for (const each of [pid, ...workers]) if (isAlive(each)) process.kill(each, 'SIGKILL')
}
