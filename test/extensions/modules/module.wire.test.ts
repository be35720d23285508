import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'
import { configFiles } from '../../support/config-files.ts'
import { lint, readDescription } from '../../support/openapi.ts'
import { bearer, expectFault, send, type Sent } from '../../support/requests.ts'
import { spawnPostern } from '../../support/spawn-postern.ts'
import { startPostern, type StartedPostern } from '../../support/start-postern.ts'
import { ALL_AT_ACME, issueToken, MEMBER } from '../../support/tokens.ts'
import { SETTINGS } from '../../support/settings.ts'
import { moduleAt, withBackends } from '../../support/over-module.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const CREATE = '/api/1.0/b/ACME/fund-data/fund-create'
const SUPER1 = '/api/1.0/f/ACME/SUPER1'
const DETAIL = `${SUPER1}/fund-data/fund-detail`
const MEMBER_DETAIL = `${SUPER1}/member-data/member-detail/${MEMBER}`

/** In front of a module: the example, or what a test puts in its place. */
async function inFrontOf(
  file: string | undefined,
  options: Record<string, unknown>,
): Promise<StartedPostern> {
  const change = (loaded: Configuration): Configuration => {
    const example = moduleAt(loaded, 'funds')
    const given = { ...(example.options as object), ...options }
    return withBackends(loaded, {
      funds: { ...example, ...(file !== undefined && { file }), options: given },
    })
  }
  return startPostern({ config: 'examples/sqlite.yaml', keeps: 'nothing', change })
}

const asAlice = async (gateway: StartedPostern) => {
  const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  return (target: string, { headers, ...more }: Partial<Sent> = {}) =>
    send(gateway, { target, ...more, headers: { ...bearer(access_token), ...headers } })
}
type Ask = Awaited<ReturnType<typeof asAlice>>

const post = (ask: Ask, target: string, value: object) =>
  ask(target, {
    method: 'POST',
    body: JSON.stringify(value),
    headers: { 'Content-Type': 'application/json' },
  })

describe('C8.1: the example of a module, a SQLite file', () => {
  let gateway: StartedPostern
  let demo: StartedPostern
  let ask: Ask
  let askDemo: Ask

  beforeAll(async () => {
    demo = await startPostern({ keeps: 'nothing' })
    gateway = await inFrontOf(undefined, { database: join(demo.data, 'funds.db') })
    ask = await asAlice(gateway)
    askDemo = await asAlice(demo)
  })

  it('C11.3 redocly finds nothing wrong with its OpenAPI document', async () => {
    expect(await lint(await readDescription(gateway))).toEqual([])
  })
  afterAll(() => Promise.all([gateway.close(), demo.close()]))

  it('C8.1 can be served as it is shipped', async () => {
    const file = new URL('../../../config/examples/sqlite.yaml', import.meta.url).pathname
    expect((await SETTINGS.check(file, {})).list).toEqual([])
  })

  it.each([
    ['fund-list', LIST],
    ['fund-detail', DETAIL],
    ['member-list', `${SUPER1}/member-data/member-list`],
    ['member-detail', MEMBER_DETAIL],
  ])('answers %s as the memory backend does, in JSON and XML', async (_action, target) => {
    for (const type of ['application/json', 'application/xml']) {
      const headers = { Accept: type }
      const [one, other] = [await ask(target, { headers }), await askDemo(target, { headers })]
      expect(one.status, one.body).toBe(200)
      expect(one.body).toBe(other.body)
    }
  })

  it('C7.3 knows versions of an action', async () => {
    const headers = { Accept: 'application/vnd.postern.action.v2+json' }
    expect((await ask(MEMBER_DETAIL, { headers })).body).toContain('CommunicationPreferences')
    expect((await ask(MEMBER_DETAIL)).body).not.toContain('CommunicationPreferences')
  })

  it('C10 writes: what one call changed, the next one reads, also after a restart', async () => {
    const database = join(demo.data, 'restarted.db')
    const first = await inFrontOf(undefined, { database })
    const askFirst = await asAlice(first)
    expect((await post(askFirst, CREATE, { Code: 'NEW1', Name: 'New' })).status).toBe(200)
    expect((await askFirst('/api/1.0/f/ACME/NEW1/fund-data/fund-detail')).body).toContain('"Name":"New"')
    expect((await post(askFirst, DETAIL, { ContactDetails: { Phone: '1' } })).status).toBe(200)
    await first.close()
    const second = await inFrontOf(undefined, { database })
    const askSecond = await asAlice(second)
    expect((await askSecond(LIST)).body).toContain('NEW1')
    expect((await askSecond(DETAIL)).body).toContain('"Phone":"1"')
    await second.close()
  })

  it('C8.4 tells its own errors, in the format that was asked for', async () => {
    const { status, body } = await post(ask, CREATE, { Code: 'SUPER1', Name: 'Again' })
    expect([status, JSON.parse(body)]).toEqual([
      400,
      { Errors: [{ Code: 'API_BAD_REQUEST', Message: 'Code is taken.' }], Data: {} },
    ])
  })
})

const BUGGY = `
  const bugs = {
    NaN: () => ({ body: { kind: 'value', value: { a: NaN } } }),
    header: () => ({ headers: { ETag: '"1"\\r\\nX-Evil: 1' } }),
    nothing: () => undefined,
    throws: () => { throw new Error('the password is hunter2') },
    rejects: async () => { throw null },
    status: () => ({ status: 888 }),
    circle: () => { const a = {}; a.a = a; return { body: { kind: 'value', value: a } } },
    fine: () => ({ body: { kind: 'value', value: { Fine: true } } }),
  }
  export default () => ({ answer: ({ query }) => bugs[query.get('bug')]() })`

describe('C8.4: a module with bugs', () => {
  it('is a 500 to its client each time, with nothing of it told, and the gateway lives on', async () => {
    const gateway = await inFrontOf(configFiles({ 'buggy.mjs': BUGGY })('buggy.mjs'), {})
    const ask = await asAlice(gateway)
    for (const bug of ['NaN', 'header', 'nothing', 'throws', 'rejects', 'status', 'circle']) {
      const answer = await ask(`${LIST}?bug=${bug}`)
      expectFault(answer, 'upstream_broken')
      expect(JSON.stringify(answer)).not.toMatch(/hunter2|x-evil/i)
    }
    expect((await ask(`${LIST}?bug=fine`)).body).toBe('{"Errors":[],"Data":{"Fine":true}}')
    expect(gateway.logLines().join('')).toContain('hunter2')
    await gateway.close()
  })

  it('that cannot be used ends the start with its name and the reason', async () => {
    const files = configFiles({
      'broken.ts': `export default () => { throw new Error('no such table: funds') }`,
    })
    writeFileSync(
      files('broken.yaml'),
      `extends: ${new URL('../../../config/examples/sqlite.yaml', import.meta.url).pathname}
backends:
  funds: { file: ${files('broken.ts')} }
`,
    )
    await expect(spawnPostern({ config: files('broken.yaml') })).rejects.toThrow(
      /backends\.funds\.file\s.*no such table: funds/s,
    )
  })
})
