import { describe, expect, it } from 'vitest'
import { NO_TRAIL } from '../../../src/base/contracts/records/audit.ts'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'
import type { ServiceContext } from '../../../src/operate/operation/context.ts'
import { issueTestToken } from '../../../src/operate/explain/issue-test-token.ts'
import { WorkerRequestError } from '../../../src/base/contracts/processes/open-requests.ts'
import { SETTINGS } from '../../../src/serve/start/settings.ts'

const WISH = { client: undefined, user: 'alice', target: undefined, scope: undefined }
const OPERATOR = { operator: 'admin', via: '127.0.0.1', channel: 'admin' } as const

const read = (file: string): Configuration => {
  const { configuration } = SETTINGS.read(file, { POSTERN_PORT: '8080' })
  if (configuration === undefined) throw new Error(`${file} cannot be read`)
  return configuration
}

const DEMO = read('config/demo.yaml')
const served = (server: Partial<Configuration['server']>): Configuration => ({
  ...DEMO,
  server: { ...DEMO.server, ...server },
})

type Issue = ServiceContext['pool']['issueTestToken']

const issueBy = (configuration: Configuration, issue: Issue) => {
  const service: Partial<ServiceContext> = {
    pool: { port: 8080, issueTestToken: issue } as ServiceContext['pool'],
    audit: NO_TRAIL,
    recorder: { note: () => undefined },
    configuration: () => configuration,
  }
  return issueTestToken(WISH, service as ServiceContext, OPERATOR)
}

const unasked: Issue = () => Promise.reject(new Error('no process is to be asked'))

describe('C11.5.7 test tokens', () => {
  it.each([
    [
      'the listener',
      served({ listen: '0.0.0.0:8080' }),
      /^server\.listen: only a service that is on loopback/,
    ],
    ['the API', served({ baseUrl: 'https://api.example.com' }), /^server\.baseUrl: /],
    ['the issuer', served({ authUrl: 'https://login.example.com' }), /^server\.authUrl: /],
    [
      'all of them',
      served({ listen: '[::]:80', authUrl: 'https://a.example' }),
      /^server\.listen, server\.auth/,
    ],
    ['a sidecar', read('config/sidecar.yaml'), /^a sidecar issues no tokens/],
  ])('C11.5.7 are refused off loopback, and no process is asked: %s', async (_what, configuration, why) => {
    expect(await issueBy(configuration, unasked)).toEqual({
      outcome: 'closed',
      why: expect.stringMatching(why),
    })
  })

  it('C11.5.7 are 503 where no process answers, or none can reach the directory', async () => {
    const gone: Issue = () => Promise.reject(new WorkerRequestError('gone', 'no worker'))
    await expect(issueBy(DEMO, gone)).rejects.toMatchObject({ statusCode: 503 })
    const unreachable: Issue = () =>
      Promise.resolve({ outcome: 'refused', reason: 'identity_unavailable', why: 'the store' })
    await expect(issueBy(DEMO, unreachable)).rejects.toMatchObject({ code: 'identity_unavailable' })
  })
})
