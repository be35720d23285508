/** Operators with tokens and roles of their own, at a service that runs (C12.2.4). */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { hashSecret } from '../../src/identity/directory/hashing/hasher.ts'
import { newSecret } from '../../src/base/kernel/ids.ts'
import { RECORD_KINDS } from '../../src/identity/directory/editors/editors.ts'
import { adminRoutes } from '../../src/operate/openapi.ts'
import { ROLES } from '../../src/operate/settings/admin.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { recordsOf } from '../support/audit-files.ts'
import { movableClock } from '../support/movable-clock.ts'
import { shared } from '../support/shared.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { addedOperations } from '../../src/serve/start/settings.ts'

type Role = (typeof ROLES)[number]
const TOKENS = Object.fromEntries(ROLES.map((role) => [role, newSecret()])) as Record<Role, string>
const EXPIRES = '2030-01-01T00:00:00Z'

const withTokens = (configuration: Configuration): Configuration => {
  const tokens = ROLES.map((role) => ({ name: `${role}er`, role, hash: hashSecret(TOKENS[role]) }))
  return { ...configuration, admin: { ...configuration.admin, tokens } }
}

const ownTokenOf = ({ data }: StartedPostern): string =>
  readFileSync(join(data, 'admin-token'), 'utf8').trim()

const ask = (
  { adminUrl }: StartedPostern,
  token: string | undefined,
  { method, path }: { method: string; path: string },
): Promise<Response> =>
  fetch(`${adminUrl}${path}`, {
    method,
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    // Not JSON: whoever may use the route is told 400 or 415, and nothing is changed.
    ...(method !== 'GET' && { body: '{' }),
  })

/** What each role may: a route's right is in the table of routes; these are the roles that have it. */
const MAY: Readonly<Record<string, readonly Role[]>> = {
  view: ['view', 'operate', 'administer', 'audit'],
  inspect: ['operate', 'administer', 'audit'],
  operate: ['operate', 'administer'],
  administer: ['administer'],
  audit: ['audit'],
}

describe('C12.2.4 named operators', () => {
  const serve = shared(() => postern({ keeps: 'trail', change: withTokens }))

  it('may use the routes that their role has the right to, and no other; who is refused is recorded', async () => {
    const service = await serve()
    let refused = 0
    for (const route of adminRoutes('1', RECORD_KINDS, await addedOperations())) {
      expect((await ask(service, undefined, route)).status).toBe(401)
      expect((await ask(service, newSecret(), route)).status).toBe(401)
      expect([401, 403]).not.toContain((await ask(service, ownTokenOf(service), route)).status)
      for (const role of ROLES) {
        const response = await ask(service, TOKENS[role], route)
        const what = `${role} ${route.operationId}`
        if (MAY[route.needs]?.includes(role) === true) expect([401, 403], what).not.toContain(response.status)
        else {
          refused += 1
          expect(response.status, what).toBe(403)
          const { error } = (await response.json()) as { error: string }
          expect(error).toMatch(
            new RegExp(
              `^${role}er may not do this: the role ${role} lacks the right .${route.needs}., which`,
            ),
          )
        }
      }
    }
    const records = recordsOf(service, 'operator.refused')
    expect(records).toHaveLength(refused)
    const [first] = records
    expect(first).toMatchObject({
      outcome: 'refused',
      actor: { kind: 'operator', operator: 'viewer', via: 'admin' },
      on: { kind: 'operation', method: expect.any(String) },
      change: { role: 'view', needs: expect.any(String), expired: false },
      values: { 'actor.address': '127.0.0.1' },
    })
  })

  it('with the right to view see status, maintenance and the description; no person, no explanation, no trail', async () => {
    const open = adminRoutes('1', RECORD_KINDS, await addedOperations()).filter(
      ({ needs }) => needs === 'view',
    )
    expect(open.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([
      'GET /maintenance',
      'GET /openapi.json',
      'GET /status',
    ])
  })

  it('need the right to administer for what tells of people or changes what they may: of every kind', async () => {
    const personal = /^\/(sessions|families|consents|audit\/redact|keys\/rotate)/
    const routes = adminRoutes('1', RECORD_KINDS, await addedOperations()).filter(({ path }) =>
      personal.test(path),
    )
    expect(routes).toHaveLength(8)
    for (const { needs, operationId } of routes)
      expect([operationId, needs]).toEqual([operationId, 'administer'])
  })

  it('are refused a token that is longer, shorter, empty, of another scheme, or the hash itself', async () => {
    const service = await serve()
    const status = async (authorization: string): Promise<number> =>
      (await fetch(`${service.adminUrl}/maintenance`, { headers: { authorization } })).status
    const token = TOKENS.view
    expect(await status(`Bearer ${token}`)).toBe(200)
    for (const wrong of [
      `${token}x`,
      token.slice(1),
      token.slice(0, -1),
      hashSecret(token),
      '',
      token.toLowerCase(),
    ])
      expect(await status(`Bearer ${wrong}`)).toBe(401)
    expect(await status(`Basic ${token}`)).toBe(401)
    expect(await status(token)).toBe(401)
    expect(recordsOf(service, 'operator.refused')).toEqual([])
  })

  it('are refused an expired token, with words; that is recorded', async () => {
    const clock = movableClock(Date.parse(EXPIRES) - 1000)
    const hash = hashSecret(TOKENS.operate)
    const change = (configuration: Configuration): Configuration => ({
      ...configuration,
      admin: {
        ...configuration.admin,
        tokens: [{ name: 'ann', role: 'operate', hash, expires: EXPIRES }],
      },
    })
    const service = await postern({ keeps: 'trail', clock, change })
    const route = { method: 'GET', path: '/maintenance' }
    expect((await ask(service, TOKENS.operate, route)).status).toBe(200)
    clock.advance(1000)
    const response = await ask(service, TOKENS.operate, route)
    expect([response.status, await response.json()]).toEqual([
      401,
      { error: 'the token of ann has expired (2030-01-01T00:00:00.000Z): ask for another' },
    ])
    expect(recordsOf(service, 'operator.refused')).toMatchObject([
      { actor: { operator: 'ann' }, change: { expired: true } },
    ])
  })
})
