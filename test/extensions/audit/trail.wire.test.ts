import { describe, expect, it, vi } from 'vitest'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { recordsOf } from '../../support/audit-files.ts'
import { bearer, expectFault, send } from '../../support/requests.ts'
import { postern, type StartedPostern } from '../../support/start-postern.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'

const CREATE = '/api/1.0/b/ACME/fund-data/fund-create'
const LIST = '/api/1.0/b/ACME/fund-data/fund-list'

async function createFund(service: StartedPostern, before: () => void = () => undefined) {
  const { access_token: token } = await issueToken(service, { scope: ALL_AT_ACME })
  before()
  const headers = { ...bearer(token), 'Content-Type': 'application/json' }
  const body = '{"Code":"NEW1","Name":"A new fund"}'
  return { token, response: await send(service, { method: 'POST', target: CREATE, headers, body }) }
}

describe('C12.1.1 a record of a call', () => {
  it('is made of a call that changes something, and of none that only reads', async () => {
    const service = await postern()
    const { token, response } = await createFund(service)
    expect(response.status).toBe(200)
    expect((await send(service, { target: LIST, headers: bearer(token) })).status).toBe(200)
    expect(recordsOf(service, 'call.intended')).toMatchObject([
      {
        requestId: response.headers['x-request-id'],
        outcome: 'pending',
        actor: { kind: 'user', client: 'acme-books' },
        on: { business: 'ACME', area: 'fund-data', action: 'fund-create', method: 'POST' },
      },
    ])
  })
})

describe('C12.1.3 an intent', () => {
  it('that cannot be kept refuses the change, and reads go on', async () => {
    const service = await postern()
    const { token, response } = await createFund(service, () => {
      vi.spyOn(service.world.audit, 'require').mockRejectedValue(new Fault('audit_unavailable'))
    })
    expectFault(response, 'audit_unavailable')
    expect((await send(service, { target: LIST, headers: bearer(token) })).status).toBe(200)
  })
})
