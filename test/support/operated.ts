/** A service as its operators see it: by the admin API and by commands. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { forgetRecords } from './audit-files.ts'
import { anewForEachTest, atEnd } from './shared.ts'
import { configFiles } from './config-files.ts'
import { runVerb } from './command-line.ts'
import { ENDS_AT_ONCE, KEEPS_NOTHING, ROOT, spawnPostern, WITHOUT_WAITS } from './spawn-postern.ts'
import { postern, type StartOptions } from './start-postern.ts'

export interface AdminAnswered {
  readonly status: number
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- whatever the API says; the tests judge it
  readonly body: any
}

interface Service {
  readonly data: string
  readonly adminUrl: string
  readonly baseUrl: string
  readonly authUrl: string
}

export interface Operated extends Service {
  /** Calls the admin API, with the token `admin` unless another is given. */
  admin(method: string, path: string, body?: unknown, token?: string): Promise<AdminAnswered>
  /** Runs a command on the service. */
  postern(
    ...args: string[]
  ): Promise<{ readonly code: number | null; readonly out: string; readonly err: string }>
  ownToken(): string
}

const BASE = join(ROOT, 'test/support/upstream.yaml')

function operate(service: Service, file: string): Operated {
  const { data, adminUrl, baseUrl, authUrl } = service
  const ownToken = (): string => readFileSync(join(data, 'admin-token'), 'utf8').trim()
  // Not the port of the admin listener: commands find it where the service has announced it.
  const env = { POSTERN_CONFIG: file, POSTERN_DATA: data }
  return {
    ...{ data, adminUrl, baseUrl, authUrl, ownToken },
    admin: async (method, path, body, token = ownToken()) => {
      const headers = {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      }
      const sent = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) }
      const response = await fetch(`${adminUrl}${path}`, sent)
      return { status: response.status, body: await response.json() }
    },
    postern: async (...args) => {
      const { code, stdout: out, stderr: err } = await runVerb(args, { env })
      return { code, out, err }
    },
  }
}

/** A service of one worker in this process, for one test. */
export async function operatedHere(options: StartOptions = {}) {
  const service = await postern({ config: 'upstream.yaml', ...options })
  return { ...operate(service, BASE), service }
}

async function spawned(config: string, environment: Record<string, string>): Promise<Service> {
  const service = await spawnPostern({ config, environment })
  atEnd(async () => {
    await service.stop()
  })
  anewForEachTest(() => forgetRecords(service))
  return service
}

/** Settings without a trail, or without a trail and the file of a store, which several workers need. */
const KEEPING = {
  nothing: `${ENDS_AT_ONCE}\n${KEEPS_NOTHING}`,
  store: `${ENDS_AT_ONCE}\naudit: { enabled: false }\nstore: { kind: sqlite, deadline: 10s }`,
  both: WITHOUT_WAITS,
}

/** A service on a file, for one test: in this process with one worker, else in processes of its own. */
export async function operated(
  workers: number,
  changes = '',
  environment: Record<string, string> = {},
  keeps: keyof typeof KEEPING = 'both',
) {
  const text = (more: string): string => `extends: ${BASE}\nworkers: ${workers}\n${KEEPING[keeps]}\n${more}\n`
  const file = configFiles({ 'a.yaml': text(changes) })('a.yaml')
  const service = workers === 1 ? await postern({ file, environment }) : await spawned(file, environment)
  return {
    ...operate(service, file),
    file,
    /** Writes other changes in place of those that are served. */
    write: (more: string): void => writeFileSync(file, text(more)),
    /** Writes this in place of the whole file. */
    overwrite: (whole: string): void => writeFileSync(file, whole),
  }
}
