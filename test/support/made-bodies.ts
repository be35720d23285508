import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import type { RawResponse } from './raw-http.ts'
import { bearer, send, type Sent } from './requests.ts'
import { startPostern, type StartedPostern, type StartOptions } from './start-postern.ts'
import { openUpstream, type ReceivedRequest, type Upstream } from './start-upstream.ts'
import { ALL_AT_ACME, issueToken } from './tokens.ts'
import { SETTINGS } from '../../src/serve/start/settings.ts'

const UPSTREAM = fileURLToPath(new URL('../../config/upstream.yaml', import.meta.url))

/**
 * Reads actions of the area fund-data that are written as YAML: the sections of their methods, by name.
 */
function readActions(
  operations: Readonly<Record<string, string>>,
  environment: Readonly<Record<string, string>> = {},
): Configuration['actions'] {
  const actions = Object.entries(operations).map(
    ([action, methods]) =>
      `  - { level: business, area: fund-data, action: '${action}', methods: ${methods.trim().replaceAll('\n', '\n    ')} }`,
  )
  const folder = mkdtempSync(join(tmpdir(), 'postern-actions-'))
  const file = join(folder, 'actions.yaml')
  try {
    writeFileSync(file, `extends: ${UPSTREAM}\nactions:\n${actions.join('\n')}\n`)
    const { configuration, problems } = SETTINGS.read(file, {
      UPSTREAM_URL: 'http://127.0.0.1:1',
      POSTERN_DATA: '/nowhere',
      ...environment,
    })
    if (configuration === undefined) throw new Error(JSON.stringify(problems.list, null, 2))
    return configuration.actions
  } finally {
    rmSync(folder, { recursive: true })
  }
}

export const JSON_TYPE = 'application/json'
export const XML_TYPE = 'application/xml'
export const FORM_TYPE = 'application/x-www-form-urlencoded'

export interface Outcome {
  readonly answer: RawResponse
  /** What the upstream got. */
  readonly sent: readonly ReceivedRequest[]
  /** Their bodies. */
  readonly bodies: readonly string[]
}

/** A Postern whose area fund-data has further actions, and the service behind it. Whoever opens it closes it. */
export class MadeBodies {
  readonly gateway: StartedPostern
  readonly upstream: Upstream
  readonly #token: string

  private constructor(gateway: StartedPostern, upstream: Upstream, token: string) {
    this.gateway = gateway
    this.upstream = upstream
    this.#token = token
  }

  /** @param actions sections of methods, as YAML */
  static async open(
    actions: Readonly<Record<string, string>>,
    { change = (loaded) => loaded, environment = {} }: Pick<StartOptions, 'change' | 'environment'> = {},
  ): Promise<MadeBodies> {
    const upstream = await openUpstream()
    const gateway = await startPostern({
      config: 'upstream.yaml',
      keeps: 'trail',
      environment: { UPSTREAM_URL: upstream.url, ...environment },
      change: (loaded) =>
        change({ ...loaded, actions: [...loaded.actions, ...readActions(actions, environment)] }),
    })
    const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
    return new MadeBodies(gateway, upstream, access_token)
  }

  /** A POST to an action of ACME, unless `more` says otherwise. */
  async call(
    action: string,
    body: string | Buffer = '',
    type = JSON_TYPE,
    more: Partial<Sent> = {},
  ): Promise<Outcome> {
    const before = this.upstream.requests.length
    const answer = await send(this.gateway, {
      method: 'POST',
      target: `/api/1.0/b/ACME/fund-data/${action}`,
      body,
      ...more,
      headers: {
        ...bearer(this.#token),
        ...(body.length === 0 ? {} : { 'Content-Type': type }),
        ...more.headers,
      },
    })
    const sent = this.upstream.requests.slice(before)
    return { answer, sent, bodies: sent.map((request) => request.body.toString()) }
  }

  async close(): Promise<void> {
    await this.gateway.close()
    await this.upstream.close()
  }
}
