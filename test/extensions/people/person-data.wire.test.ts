/** The data of a person whom code of the operator's finds, at a service of several processes (C11.5.8). */
import { rmSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { configFiles } from '../../support/config-files.ts'
import { postForm } from '../../support/oauth.ts'
import { operated } from '../../support/operated.ts'

const EVE = {
  ...{ subject: 's-eve', username: 'eve', customers: ['acme-books'], access: { ACME: 'Read-only' } },
  claims: { email: 'eve@example.com' },
}

/** Has eve, and fails as long as a file is there. */
const PEOPLE = `import { existsSync } from 'node:fs'
const eve = ${JSON.stringify(EVE)}
const found = (broken, isEve) => {
  if (existsSync(broken)) throw new Error('the table is locked')
  return isEve ? eve : undefined
}
export default ({ broken }) => ({
  findUserByName: async (username) => found(broken, username === eve.username),
  findUserBySubject: async (subject) => found(broken, subject === eve.subject),
  verifyPassword: async (user, password) => user !== undefined && password === 'eve-password',
})
`

describe('C11.5.8 C5.7 a person whom a module finds', () => {
  it.each([1, 2])(
    'C11.5.8 with %i worker(s): is in the export, is not erased while the module has them, and 503 while it fails',
    async (workers) => {
      const at = configFiles({ 'people.mjs': PEOPLE })
      const broken = at('broken')
      const people = `{ kind: module, file: ${at('people.mjs')}, options: { broken: ${broken} } }`
      const service = await operated(workers, `directory: { people: ${people} }`, {
        UPSTREAM_URL: 'http://127.0.0.1:9',
      })
      const params = { grant_type: 'password', username: 'eve', password: 'eve-password' }
      const scope = 'openid offline_access fund.read target:b/ACME'
      expect((await postForm(service, '/connect/token', { params: { ...params, scope } })).status).toBe(200)
      const exported = (subject: string) => service.admin('GET', `/subjects/${subject}/export`)
      const erased = (subject: string) =>
        service.admin('POST', `/subjects/${subject}/erase`, { reason: 'request 4711' })

      const { body, status } = await exported('s-eve')
      expect([status, body.user]).toEqual([
        200,
        { username: 'eve', subject: 's-eve', claims: EVE.claims, source: 'module' },
      ])
      expect(body.families).toMatchObject([{ client: 'acme-books', business: 'ACME' }])
      expect(await erased('s-eve')).toEqual({
        status: 409,
        body: { error: expect.stringContaining('"eve" is found by `directory.people`') },
      })
      // The refusal has ended nothing.
      expect((await exported('s-eve')).body.families).toHaveLength(1)

      // One who was removed from the store: the module may have them, and has not been asked before.
      const dora = { username: 'dora', subject: 's-dora', password: 'a-long-enough-password' }
      expect((await service.admin('POST', '/users', dora)).status).toBe(201)
      expect((await service.admin('DELETE', '/users/dora')).status).toBe(200)
      writeFileSync(broken, '')
      for (const ask of [exported, erased])
        expect(await ask('s-dora')).toEqual({
          status: 503,
          body: { error: expect.stringContaining('`directory.people` cannot be asked') },
        })
      rmSync(broken)
      expect(await erased('s-dora')).toMatchObject({ status: 200, body: { removed: { user: 0 } } })
    },
  )
})
