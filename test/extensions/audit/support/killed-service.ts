/** A service that is killed with all its processes (`kill -9`) under load, and what its trail has of what it answered. */
import { readFileSync, rmSync, mkdtempSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { verifyTrail } from '../../../../src/extensions/audit/read/verify.ts'
import { openIntents, readTrail } from './audit-chain.ts'
import { ROOT, spawnPostern, type SpawnedPostern, WITHOUT_WAITS } from '../../../support/spawn-postern.ts'
import { ALL_AT_ACME, issueToken } from '../../../support/tokens.ts'

export interface KillOptions {
  readonly workers: number
  /** Callers that change data, each one call after another. */
  readonly callers?: number
  /** Answers until the kill. */
  readonly answers?: number
}

/** What was lost; each list is empty in a trail that keeps its promise. Request ids, but for `acts`. */
export interface KillReport {
  readonly answered: number
  /** Answered changes without an intent or without an outcome. */
  readonly changes: readonly string[]
  /** Changes that the upstream received without an intent. */
  readonly received: readonly string[]
  /** Administrative acts that were answered, without a record. */
  readonly acts: readonly string[]
  /** Intents without outcome of calls that were answered. */
  readonly answeredOpen: readonly string[]
  /** What `postern audit verify` finds: a kill must not look like tampering (C12.4.6). */
  readonly findings: readonly string[]
  /** Intents without outcome: what was under way. */
  readonly open: number
}

interface Seen {
  readonly changes: string[]
  readonly acts: string[]
  readonly received: string[]
}

/** Answers every request, and remembers its id. */
export async function startWitness(received: string[]) {
  const server = createServer((request, response) => {
    request.resume()
    if (request.method === 'POST') received.push(String(request.headers['x-request-id']))
    response.setHeader('Content-Type', 'application/json').end('{"Code":"NEW1"}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

const json = { 'Content-Type': 'application/json' }

/** One change after another, until the service is dead. */
async function change({ baseUrl }: SpawnedPostern, token: string, seen: Seen): Promise<void> {
  const headers = { ...json, Authorization: `Bearer ${token}` }
  const body = '{"Code":"NEW1","Name":"A fund"}'
  for (;;) {
    const response = await fetch(`${baseUrl}/api/1.0/b/ACME/fund-data/fund-create`, {
      method: 'POST',
      headers,
      body,
    })
    if (response.status === 200) seen.changes.push(response.headers.get('x-request-id') ?? '')
    await response.arrayBuffer()
  }
}

/** One order after another: a token that nobody has is revoked. */
async function order({ adminUrl, data }: SpawnedPostern, seen: Seen): Promise<void> {
  const token = readFileSync(join(data, 'admin-token'), 'utf8').trim()
  const headers = { ...json, Authorization: `Bearer ${token}` }
  for (let count = 0; ; count += 1) {
    const jti = `nobodys-token-${count}`
    const body = JSON.stringify({ jti, force: true })
    const response = await fetch(`${adminUrl}/revoke`, { method: 'POST', headers, body })
    await response.arrayBuffer()
    if (response.status === 200) seen.acts.push(jti)
  }
}

function reportOf(folder: string, { changes, acts, received }: Seen): KillReport {
  const records = readTrail(folder)
  const idsOf = (event: string): ReadonlySet<string | undefined> =>
    new Set(records.filter((record) => record.event === event).map(({ requestId }) => requestId))
  const [intended, settled] = [idsOf('call.intended'), idsOf('call.settled')]
  const ordered = JSON.stringify(records.filter(({ event }) => event === 'revocation.ordered'))
  const open = new Set(openIntents(folder).map(({ requestId }) => requestId))
  return {
    answered: changes.length + acts.length,
    changes: changes.filter((id) => !intended.has(id) || !settled.has(id)),
    received: received.filter((id) => !intended.has(id)),
    acts: acts.filter((jti) => !ordered.includes(`"${jti}"`)),
    answeredOpen: changes.filter((id) => open.has(id)),
    findings: verifyTrail({ folder }).findings.map(({ file, what }) => `${file}: ${what}`),
    open: open.size,
  }
}

/** Kills a service of its own under load. Rejects if the trail that it leaves is not whole. */
export async function killUnderLoad({
  workers,
  callers = 8,
  answers = 200,
}: KillOptions): Promise<KillReport> {
  const seen: Seen = { changes: [], acts: [], received: [] }
  const { url, server } = await startWitness(seen.received)
  const folder = mkdtempSync(join(tmpdir(), 'postern-killed-'))
  const config = join(folder, 'postern.yaml')
  writeFileSync(
    config,
    `extends: ${join(ROOT, 'config/upstream.yaml')}\nworkers: ${workers}\n${WITHOUT_WAITS}\n`,
  )
  const service = await spawnPostern({ config, detached: true, environment: { UPSTREAM_URL: url } })
  try {
    const { access_token: token } = await issueToken(service, { scope: ALL_AT_ACME })
    const dead = [
      ...Array.from({ length: callers }, () => change(service, token, seen)),
      order(service, seen),
    ]
    const ended = Promise.allSettled(dead)
    while (seen.changes.length < answers) await new Promise((resolve) => setTimeout(resolve, 1))
    process.kill(-service.pid, 'SIGKILL')
    await ended
    return reportOf(join(service.data, 'audit'), seen)
  } finally {
    server.closeAllConnections()
    server.close()
    await service.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}
