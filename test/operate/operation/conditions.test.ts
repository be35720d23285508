import { describe, expect, it, onTestFinished } from 'vitest'
import { NO_TRAIL } from '../../../src/base/contracts/records/audit.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { meantBy, overtaken } from '../../../src/operate/operation/conditions.ts'
import { startAdminListener } from '../../../src/operate/listener.ts'
import { describeAdminApi } from '../../../src/operate/openapi.ts'
import { Operators } from '../../../src/operate/operation/operators.ts'
import { PAGE_QUERY, pageOf } from '../../../src/operate/operation/paging.ts'
import {
  type AdminOperation,
  made,
  members,
  ok,
  type ServiceOperation,
  textSchema,
} from '../../../src/operate/operation/operation.ts'
import { Health } from '../../../src/base/kernel/health.ts'
import { keepEvents } from '../../support/listener.ts'

const TOKEN = 'a-token-of-some-length'

/** One thing with a version. */
function routesOf(): readonly AdminOperation[] {
  let version = 1
  const tag = (): string => `1-${version}`
  const common = { needs: 'view', summary: 'x' } as const
  const body = members({ name: textSchema('A name.', { type: ['string', 'null'] }) })
  const change: ServiceOperation['handle'] = (_control, { ifMatch, body }) => {
    if (meantBy({ ifMatch })?.(tag()) === false) return overtaken(tag())
    version += 1
    return { ...ok(body), tag: tag() }
  }
  return [
    {
      ...common,
      ...{ method: 'PATCH', path: '/thing', operationId: 'editThing', body, conditional: true },
      answers: { 200: ['Changed', body, ['ETag']] },
      handle: change,
    },
    {
      ...common,
      ...{ method: 'POST', path: '/things', operationId: 'addThing', body },
      answers: { 201: ['Made', body, ['ETag', 'Location']] },
      handle: (_control, { body, ifMatch }) => made({ ...body, ifMatch }, '/thing', tag()),
    },
    {
      ...common,
      ...{ method: 'GET', path: '/things', operationId: 'listThings', query: PAGE_QUERY },
      answers: { 200: ['A page', members({})] },
      handle: (_control, { query }) => ok(pageOf(query)),
    },
  ]
}

async function start() {
  const routes = routesOf()
  const admin = await startAdminListener({
    config: { listen: '127.0.0.1:0', tokens: [] },
    operators: new Operators(TOKEN, [], systemClock),
    health: new Health(),
    recorder: keepEvents(),
    metrics: () => Promise.resolve({ contentType: 'text/plain', text: Promise.resolve('') }),
    api: { audit: NO_TRAIL, routes, context: undefined as never },
  })
  onTestFinished(() => admin.close())
  return async (method: string, path: string, headers: Record<string, string> = {}, body?: object) => {
    const response = await fetch(`http://127.0.0.1:${admin.port}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${TOKEN}`,
        ...(body && { 'content-type': 'application/merge-patch+json' }),
        ...headers,
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as Record<string, unknown>,
    }
  }
}

describe('conditional requests of the admin API', () => {
  it('C11.5 change only the version that If-Match names; without it, the latest', async () => {
    const call = await start()
    const edit = async (ifMatch?: string) => {
      const headers = ifMatch === undefined ? {} : { 'if-match': ifMatch }
      const { status, headers: answered } = await call('PATCH', '/thing', headers, { name: null })
      return [status, answered.get('etag')]
    }
    expect(await edit('"1-1"')).toEqual([200, '"1-2"'])
    expect(await edit('"1-1"')).toEqual([412, '"1-2"'])
    expect(await edit('W/"1-2"')).toEqual([412, '"1-2"'])
    expect(await edit('"1-1", "1-2"')).toEqual([200, '"1-3"'])
    expect(await edit('*')).toEqual([200, '"1-4"'])
    expect(await edit()).toEqual([200, '"1-5"'])
    const told = await call('PATCH', '/thing', { 'if-match': '"1-1"' }, {})
    expect(told.body).toEqual({
      error: 'somebody else was faster: nothing has changed',
      problems: ['If-Match  the version now is "1-5": read it, and decide again'],
    })
  })

  it('C11.5 are 400 where If-Match cannot be read, and nothing changes', async () => {
    const call = await start()
    for (const header of ['1-1', '"1-1', '"a" "b"', '*, "1-1"', '']) {
      const { status, body } = await call('PATCH', '/thing', { 'if-match': header }, {})
      expect([header, status, (body['problems'] as string[])[0]]).toEqual([
        header,
        400,
        expect.stringMatching(/^If-Match {2}/),
      ])
    }
    expect((await call('PATCH', '/thing', { 'if-match': '"1-1"' }, {})).status).toBe(200)
  })

  it('C11.5 answer what was made with 201, its place and its version', async () => {
    const call = await start()
    const json = { 'content-type': 'application/json' }
    const made = await call('POST', '/things', json, { name: 'n' })
    expect([made.status, made.headers.get('location'), made.headers.get('etag')]).toEqual([
      201,
      '/thing',
      '"1-1"',
    ])
    expect(made.body).toEqual({ name: 'n' })
    const conditional = await call('POST', '/things', { ...json, 'if-match': '"1-1"' }, { name: 'n' })
    expect([conditional.status, (conditional.body['problems'] as string[])[0]]).toEqual([
      400,
      expect.stringMatching(/^If-Match {2}/),
    ])
  })

  it('C11.5 take a merge patch as JSON too, and only where something is edited', async () => {
    const call = await start()
    const type = (name: string) => ({ 'content-type': name })
    expect((await call('PATCH', '/thing', type('application/json'), { name: 'n' })).status).toBe(200)
    expect(
      (await call('PATCH', '/thing', type('application/merge-patch+json; charset=utf-8'), {})).status,
    ).toBe(200)
    expect((await call('PATCH', '/thing', type('application/xml'), {})).status).toBe(415)
    expect((await call('POST', '/things', type('application/merge-patch+json'), {})).status).toBe(415)
    expect((await call('PATCH', '/thing', {}, { other: 1 })).status).toBe(400)
  })

  it('C11.5 read pages whose size has a limit', async () => {
    const call = await start()
    expect((await call('GET', '/things?after=%C3%A9&limit=1000&prefix=%26')).body).toEqual({
      after: 'é',
      limit: 1000,
      prefix: '&',
    })
    for (const wrong of [
      'limit=0',
      'limit=1001',
      'limit=1e2',
      'limit=',
      'after=',
      'prefix=',
      'limit=1&limit=2',
      'x=1',
    ])
      expect([wrong, (await call('GET', `/things?${wrong}`)).status]).toEqual([wrong, 400])
  })

  it('C11.5 stand in the OpenAPI document: headers, 412, types of bodies', () => {
    const { paths } = describeAdminApi(routesOf(), '1')
    expect(paths).toMatchObject({
      '/thing': {
        patch: {
          parameters: [{ name: 'If-Match', in: 'header', required: false }],
          requestBody: { content: { 'application/merge-patch+json': {}, 'application/json': {} } },
          responses: { 200: { headers: { ETag: {} } }, 412: { headers: { ETag: {} } } },
        },
      },
      '/things': {
        post: { responses: { 201: { headers: { ETag: {}, Location: {} } } } },
        get: { parameters: [{ name: 'limit' }, { name: 'after' }, { name: 'prefix' }] },
      },
    })
    expect(paths).not.toHaveProperty(['/things', 'post', 'responses', '412'])
    expect(paths).not.toHaveProperty([
      '/things',
      'post',
      'requestBody',
      'content',
      'application/merge-patch+json',
    ])
  })
})
