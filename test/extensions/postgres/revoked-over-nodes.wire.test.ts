/** Who is disabled and what is revoked at nodes that share a store (C11.5.1, C6.3.3). */
import { describe, expect, it } from 'vitest'
import { runVerb } from '../../support/command-line.ts'
import { needing } from '../../support/machine.ts'
import { postForm } from '../../support/oauth.ts'
import { bearer } from '../../support/requests.ts'
import { onStore, sharedStore } from '../../support/shared-store.ts'
import { postern, type StartedPostern } from '../../support/start-postern.ts'
import { revocationsOn } from '../../support/suites/revocations.contract.ts'
import { issueToken } from '../../support/tokens.ts'

const SCOPE = 'openid offline_access business.fund.list target:b/ACME'

const login = (service: StartedPostern) =>
  postForm(service, '/connect/token', {
    params: { grant_type: 'password', username: 'alice', password: 'alice-password', scope: SCOPE },
    client: 'acme-books',
  })

const call = async ({ baseUrl }: StartedPostern, token: string): Promise<number> => {
  const url = `${baseUrl}/api/1.0/b/ACME/fund-data/fund-list`
  return (await fetch(url, { headers: bearer(token) })).status
}

describe('C11.5.1 C11.7 over several nodes', needing('postgresql'), () => {
  it('C11.5.1 whoever is disabled at one node is refused by all within a second', async () => {
    const store = await sharedStore()
    const [one, other] = [
      await postern({ config: 'demo.yaml', keeps: 'nothing', change: onStore(store) }),
      await postern({ config: 'demo.yaml', keeps: 'nothing', change: onStore(store) }),
    ]
    const held = await issueToken(other, { scope: SCOPE })
    const env = { POSTERN_DATA: one.data }
    const order = (verb: string) =>
      runVerb(['client', verb, 'acme-books', '--admin-url', one.adminUrl], { env })
    expect(await order('disable')).toMatchObject({ code: 0 })
    // The command ends when the change is in force everywhere.
    expect((await login(other)).json.error).toBe('invalid_client')
    expect(await call(other, held.access_token)).toBe(401)
    expect(await order('enable')).toMatchObject({ code: 0 })
    expect((await login(other)).status).toBe(200)
  })
})

describe('on a store of kind Postgres', needing('postgresql'), () =>
  revocationsOn(() => sharedStore({ deadline: 10_000 })),
)
