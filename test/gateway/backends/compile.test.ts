import { describe, expect, it, onTestFinished } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import type { Call } from '../../../src/base/contracts/calls/backend.ts'
import type { BusinessValues } from '../../../src/base/contracts/people/places.ts'
import { compileAuthorization } from '../../../src/gateway/backends/forward/auth/compile.ts'
import { credentialsFor } from '../../../src/gateway/backends/forward/auth/credentials.ts'
import { TokenSources } from '../../../src/gateway/backends/forward/auth/token-credentials.ts'
import type { AuthConfig } from '../../../src/gateway/backends/forward/schema/schema.ts'
import { type CallOverrides, makeCall } from '../../support/calls.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { startUpstream } from '../../support/start-upstream.ts'
import { grantEach, oauth2 } from '../../support/token-endpoint.ts'

const valued = (texts: Readonly<Record<string, string>>): BusinessValues => ({ texts, secrets: new Set() })

const callOf = (
  business: string,
  texts: Readonly<Record<string, string>>,
  others: CallOverrides = {},
): Call => makeCall({ business, values: valued(texts), ...others })

function compile(auth: AuthConfig) {
  const clock = movableClock()
  const told: unknown[] = []
  const sources = new TokenSources(clock, (...args) => void told.push(args))
  onTestFinished(() => sources.close())
  const problems = new Problems()
  const { credentials } = compileAuthorization({ auth }, ['backends', 'erp'], problems, sources)
  const lineOf = async (call: Call): Promise<string> => {
    if (credentials === undefined) throw new Error(problems.list.map(({ message }) => message).join())
    return (await credentialsFor(call, credentials)).line.trimEnd()
  }
  return { clock, told, credentials, lineOf, problems: problems.list }
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')

describe('C8.7 credentials with placeholders', () => {
  it.each<[string, AuthConfig, string]>([
    [
      'basic',
      { basic: { user: '{business.user}', password: '{business.key}' } },
      `authorization: Basic ${base64('ann:k"1\\ é')}`,
    ],
    ['bearer', { bearer: '{business.key}' }, 'authorization: Bearer k"1\\ é'],
    [
      'header',
      { header: { name: 'X-Key', value: 'Key {business.user}, "{business.key}"' } },
      'x-key: Key ann, "k"1\\ é"',
    ],
  ])('C8.7 %s: any text of the business arrives as it is', async (_kind, auth, line) => {
    const { lineOf } = compile(auth)
    const sent = await lineOf(callOf('ACME', { user: 'ann', key: 'k"1\\ é' }))
    expect(Buffer.from(sent, 'latin1').toString()).toBe(line)
  })

  it('C8.7 doubled braces are braces, and stand for no value', async () => {
    const { lineOf } = compile({ header: { name: 'X-Key', value: 'a{{business.key}}' } })
    expect(await lineOf(callOf('ACME', { key: 'secret' }))).toBe('x-key: a{business.key}')
  })

  it('C8.7 a value with placeholders in it is text', async () => {
    const { lineOf } = compile({ header: { name: 'X-Key', value: '{business.key}' } })
    expect(await lineOf(callOf('ACME', { key: '{business}{{${x}' }))).toBe('x-key: {business}{{${x}')
  })

  it.each(['a\r\nX-Evil: 1', 'a\nb', 'a\0b', 'a\rb', '', ' a', 'a ', '\ud800'])(
    'C8.7 a value that a header cannot hold is 500 and is not told: %j',
    async (key) => {
      for (const auth of [
        { bearer: '{business.key}' },
        { header: { name: 'X-Key', value: '{business.key}' } },
      ]) {
        const { lineOf } = compile(auth)
        await expect(lineOf(callOf('ACME', { key }))).rejects.toMatchObject({
          code: 'unsendable_value',
          message: expect.not.stringContaining('Evil') as string,
        })
      }
    },
  )

  it('C8.7 a user with a colon, or a control character, is 500', async () => {
    const { lineOf } = compile({ basic: { user: '{business.user}', password: '{business.key}' } })
    for (const texts of [
      { user: 'a:b', key: 'k' },
      { user: 'a', key: 'k\n' },
      { user: 'a\0', key: 'k' },
    ])
      await expect(lineOf(callOf('ACME', texts))).rejects.toMatchObject({ code: 'unsendable_value' })
    expect(await lineOf(callOf('ACME', { user: 'a', key: 'k:l' }))).toContain(base64('a:k:l'))
  })

  it('C8.7 a value that the business lacks is 500, and no credential is left out', async () => {
    const { lineOf } = compile({ basic: { user: 'u', password: 'p{business.key}' } })
    await expect(lineOf(callOf('ACME', {}))).rejects.toMatchObject({ row: { status: 500 } })
  })

  it('C8.7 a client’s own text that a header cannot hold is the client’s mistake', async () => {
    const { lineOf } = compile({ header: { name: 'X-Key', value: '{key}' } })
    await expect(lineOf(callOf('ACME', {}, { params: { key: 'a\nb' } }))).rejects.toMatchObject({
      code: 'unsendable_argument',
    })
  })
})

const TEMPLATED = { clientId: '{business.id}', clientSecret: '{business.key}' }

describe('C8.7 tokens for credentials with placeholders', () => {
  it('C8.7 belong to the credentials of one business: no other one gets its token', async () => {
    const endpoint = await startUpstream(grantEach())
    const { lineOf } = compile(oauth2(endpoint.url, TEMPLATED))
    const acme = callOf('ACME', { id: 'a', key: '1' })
    const first = await lineOf(acme)
    expect(await lineOf(callOf('HOOLI', { id: 'h', key: '1' }))).not.toBe(first)
    expect(await lineOf(callOf('INITECH', { id: 'a', key: '2' }))).not.toBe(first)
    expect(await lineOf(acme)).toBe(first)
    expect(endpoint.requests.map(({ headers }) => headers['authorization']?.[0])).toEqual(
      ['a:1', 'h:1', 'a:2'].map((pair) => `Basic ${base64(pair)}`),
    )
  })

  it('C8.7 are not confused by texts that look like one another when they are joined', async () => {
    const endpoint = await startUpstream(grantEach())
    const { lineOf } = compile(oauth2(endpoint.url, TEMPLATED))
    const one = await lineOf(callOf('ACME', { id: 'a","clientSecret":"b', key: 'c' }))
    expect(await lineOf(callOf('ACME', { id: 'a', key: 'b","clientSecret":"c' }))).not.toBe(one)
  })

  it('C8.7 that cannot be had for one business harm no other one, and the log names the business', async () => {
    const endpoint = await startUpstream((connection) => {
      const isAcmes = connection.request.headers['authorization']?.[0] === `Basic ${base64('a:1')}`
      if (isAcmes) connection.respond({ status: 401 })
      else grantEach()(connection)
    })
    const { lineOf, told } = compile(oauth2(endpoint.url, TEMPLATED))
    const acme = callOf('ACME', { id: 'a', key: '1' })
    await expect(lineOf(acme)).rejects.toMatchObject({ code: 'upstream_token_unavailable' })
    await expect(lineOf(acme)).rejects.toMatchObject({ code: 'upstream_token_unavailable' })
    await lineOf(callOf('HOOLI', { id: 'h', key: '1' }))
    expect(endpoint.requests).toHaveLength(2)
    expect(told).toEqual([['it answered 401', 'ACME']])
  })

  it('C8.7 that the upstream refuses are thrown away for that business alone', async () => {
    const endpoint = await startUpstream(grantEach())
    const { credentials, lineOf } = compile(oauth2(endpoint.url, TEMPLATED))
    const [acme, hooli] = [callOf('ACME', { id: 'a', key: '1' }), callOf('HOOLI', { id: 'h', key: '1' })]
    const refused = await credentialsFor(acme, credentials!)
    const kept = await lineOf(hooli)
    expect(refused.credentials.refused(refused.line)).toBe(true)
    expect(await lineOf(acme)).not.toBe(refused.line.trimEnd())
    expect(await lineOf(hooli)).toBe(kept)
    expect(endpoint.requests).toHaveLength(3)
  })

  it('C8.7 are kept for 1,000 credentials: then those used longest ago are asked for anew', async () => {
    const endpoint = await startUpstream(grantEach())
    const { lineOf } = compile(oauth2(endpoint.url, TEMPLATED))
    const callBy = (id: number) => callOf('ACME', { id: `c${id}`, key: 'k' })
    const first = await lineOf(callBy(0))
    const second = await lineOf(callBy(1))
    for (let id = 2; id < 1000; id++) await lineOf(callBy(id))
    expect(await lineOf(callBy(0))).toBe(first)
    await lineOf(callBy(1000))
    expect(await lineOf(callBy(0))).toBe(first)
    expect(await lineOf(callBy(1))).not.toBe(second)
  })

  it('C8.7 are asked for anew once the file of authorities is renewed under its name, and shared until then', () => {
    const sources = new TokenSources(movableClock(), () => undefined)
    onTestFinished(() => sources.close())
    const { oauth2: config } = oauth2('https://127.0.0.1:1/', { tls: { ca: 'authority.pem' } })
    const of = (pem: string | undefined) => {
      const ca = pem === undefined ? undefined : Buffer.from(pem)
      return [sources.credentialsOf(config, ca), sources.renderedOf(config, ca, 'ACME')]
    }
    const before = of('one')
    for (const [index, each] of of('one').entries()) expect(each).toBe(before[index])
    for (const other of [of('two'), of(undefined)])
      for (const [index, each] of other.entries()) expect(each).not.toBe(before[index])
  })

  it.each([
    ['tokenUrl', 'http://127.0.0.1/{business.url}', 'holds a placeholder'],
    ['scope', '{business.', 'belongs to no placeholder'],
  ])('C8.7 a placeholder where none may be is a problem: %s', (key, text, message) => {
    const { problems } = compile(oauth2('http://127.0.0.1/', { [key]: text }))
    expect(problems.map((problem) => problem.path.at(-1))).toContain(key)
    expect(problems.map((problem) => problem.message).join()).toContain(message)
  })

  it('C8.7 a scope that a value makes invalid is 500', async () => {
    const { lineOf } = compile(oauth2('http://127.0.0.1:1/', { scope: 'read {business.scope}' }))
    await expect(lineOf(callOf('ACME', { scope: 'a"b' }))).rejects.toMatchObject({ code: 'unsendable_value' })
  })
})
