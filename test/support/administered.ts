/** The directory of a service, as its operators change it: by the admin API and by commands. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { auditRecords } from './audit-files.ts'
import { runVerb } from './command-line.ts'
import { DEMO } from './spawn-postern.ts'
import { postern, type StartOptions } from './start-postern.ts'

export interface Answered {
  readonly status: number
  readonly etag: string | null
  readonly location: string | null
  readonly text: string
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- whatever the API says; the tests judge it
  readonly body: any
}

export interface Sent {
  readonly body?: unknown
  readonly ifMatch?: string
  readonly token?: string
}

/** A service of one worker in this process, for one test. */
export async function administered(options: StartOptions = {}) {
  const service = await postern({ config: 'demo.yaml', ...options })
  const { adminUrl, data } = service
  const own = readFileSync(join(data, 'admin-token'), 'utf8').trim()
  const call = async (method: string, path: string, sent: Sent = {}): Promise<Answered> => {
    const { body, ifMatch, token = own } = sent
    const response = await fetch(`${adminUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(ifMatch !== undefined && { 'if-match': ifMatch }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const { headers, status } = response
    return {
      ...{ status, text, etag: headers.get('etag'), location: headers.get('location') },
      body: JSON.parse(text) as unknown,
    }
  }
  const env = { POSTERN_CONFIG: options.file ?? DEMO, POSTERN_DATA: data }
  /** Runs a command on the service's store; `input` stands on standard input. */
  const command = async (args: readonly string[], input = '') => {
    const { code, stdout, stderr } = await runVerb(args, { env, input, alone: true })
    return { code, stdout, stderr }
  }
  /** `event outcome operator` of the acts on the directory so far. */
  const acts = (): readonly string[] =>
    auditRecords({ data })
      .filter(({ event }) => /^(client|user|business|fund|role)\./.test(event))
      .map(({ event, outcome, actor }) => {
        const { operator, via } = actor as { operator?: string; via?: string }
        return `${event} ${String(outcome)} ${operator ?? '-'} ${via ?? '-'}`
      })
  return { service, call, command, acts, env }
}
