/**
 * A service of two workers with all that a dashboard can show: two upstreams, of which one has a dead target and the other
 * no other, a report-only area, a client certificate, an audit trail. And a Prometheus that watches it.
 */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RULES_FOLDER } from './alert-rules.ts'
import { makeCertificate } from './certificates.ts'
import { type Ended, runVerb } from './command-line.ts'
import { freePort } from './free-port.ts'
import { postForm } from './oauth.ts'
import { type Prometheus, startPrometheus } from './prometheus.ts'
import { ROOT, spawnPostern, type SpawnedPostern, WITHOUT_WAITS } from './spawn-postern.ts'
import { answerJson, openUpstream, type Upstream } from './start-upstream.ts'
import { issueToken, MEMBER } from './tokens.ts'

export interface WatchedService {
  readonly service: SpawnedPostern
  readonly upstream: Upstream
  readonly prometheus: Prometheus
  /** Runs a command on the service. */
  postern(...args: string[]): Promise<Ended>
  close(): Promise<void>
}

export interface WatchedOptions {
  /** Changes the rules before Prometheus reads them. */
  readonly changeRules?: (text: string) => string
  /** More of the configuration, as YAML. */
  readonly more?: string
}

const world = (targets: readonly string[], dead: string, { certificate, key }: Certificate, more: string) => `
extends: ${join(ROOT, 'config/upstream.yaml')}
workers: 2
${WITHOUT_WAITS}
log: { calls: none }
backends:
  funds: # empty: removed
  registry: { kind: http, targets: [${targets.join(', ')}], ejection: { failures: 2, for: 1s } }
  members: { kind: http, target: 'https://${dead}', tls: { cert: ${certificate}, key: ${key} }, ejection: { failures: 2, for: 1s } }
areas:
  fund-data: { backend: registry }
  member-data: { backend: members, mode: report-only }
${more}`

type Certificate = ReturnType<typeof makeCertificate>

/** Everything ends by `close`. */
export async function startWatchedService(options: WatchedOptions = {}): Promise<WatchedService> {
  const { changeRules = (text: string): string => text, more = '' } = options
  const folder = mkdtempSync(join(tmpdir(), 'postern-watched-'))
  const upstream = await openUpstream(answerJson({ FundSummaries: [], TotalCount: 0 }))
  const dead = `127.0.0.1:${await freePort()}`
  const file = join(folder, 'postern.yaml')
  const certificate = makeCertificate(folder, 'postern')
  writeFileSync(file, world([upstream.url, `http://${dead}`], dead, certificate, more))
  const service = await spawnPostern({ config: file })
  const rules = readFileSync(join(RULES_FOLDER, 'rules.yaml'), 'utf8')
  const target = new URL(service.adminUrl).host
  const prometheus = await startPrometheus({
    folder: join(folder, 'prometheus'),
    target,
    rules: changeRules(rules),
  })
  const env = {
    POSTERN_CONFIG: file,
    POSTERN_DATA: service.data,
    POSTERN_ADMIN_PORT: target.split(':')[1] ?? '',
  }
  return {
    ...{ service, upstream, prometheus },
    postern: (...args) => runVerb(args, { env }),
    close: async () => {
      await prometheus.close()
      await service.stop()
      await upstream.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const SCOPE = 'openid offline_access fund.maintain business.fund.list business.fund.create target:b/ACME'

/** One round of calls: good ones, refused ones, a change, and calls that would be refused. */
export async function makeCalls({ baseUrl, authUrl }: SpawnedPostern): Promise<void> {
  const token = async (scope: string): Promise<Record<string, string>> => ({
    Authorization: `Bearer ${(await issueToken({ authUrl }, { scope })).access_token}`,
  })
  const [all, little] = await Promise.all([token(SCOPE), token('business.fund.list target:b/ACME')])
  const call = async (path: string, headers: Record<string, string>, body?: string): Promise<void> => {
    const method = body === undefined ? 'GET' : 'POST'
    const typed = { ...headers, ...(body !== undefined && { 'Content-Type': 'application/json' }) }
    const response = await fetch(`${baseUrl}/api/1.0${path}`, {
      method,
      headers: typed,
      ...(body && { body }),
    })
    await response.arrayBuffer()
  }
  const list = '/b/ACME/fund-data/fund-list'
  for (let times = 0; times < 6; times++) await call(list, all)
  await call('/b/ACME/fund-data/fund-create', all, '{"Code":"NEW1","Name":"New"}')
  await call('/f/ACME/SUPER1/fund-data/fund-detail', little)
  await call('/b/GLOBEX/fund-data/fund-list', all)
  await call(list, {})
  await call('/b/ACME/no/such', all)
  await call(`/f/ACME/SUPER1/member-data/member-detail/${MEMBER}`, little)
}

/** A wrong password, and a refresh token that is used once more when its successor has been used. */
export async function makeLogins({ authUrl }: SpawnedPostern): Promise<void> {
  const send = (params: Readonly<Record<string, string>>) =>
    postForm({ authUrl }, '/connect/token', { params })
  // Another name each time: after a few failures the logins of one are delayed.
  const username = `guess-${randomUUID()}`
  await send({ grant_type: 'password', username, password: 'wrong', scope: 'openid' })
  const { refresh_token: first = '' } = await issueToken({ authUrl }, { scope: SCOPE })
  const refresh = async (token: string): Promise<string> => {
    const { json } = await send({ grant_type: 'refresh_token', refresh_token: token })
    return (json as { readonly refresh_token?: string }).refresh_token ?? ''
  }
  await refresh(await refresh(first))
  await refresh(first)
}
