import { describe, expect, it } from 'vitest'
import { headersOf } from '../../../src/base/http/head/header-text.ts'
import { identifyByToken } from '../../../src/gateway/backends/forward/request.ts'
import type { Signer } from '../../../src/base/contracts/people/keys.ts'
import { makeCall, type CallOverrides, PRINCIPAL } from '../../support/calls.ts'
import { movableClock } from '../../support/movable-clock.ts'

/** Signs nothing: what is signed and how often is what matters here. */
function begin() {
  const clock = movableClock()
  let trusted = true
  const key = { isTrusted: () => trusted }
  const withdraw = () => void (trusted = false)
  const signed: { claims: Record<string, unknown>; typ: string }[] = []
  const signer: Signer = {
    sign: (claims, { typ }) => {
      signed.push({ claims, typ })
      return Promise.resolve({ token: `token-${signed.length}`, key })
    },
  }
  const identify = identifyByToken(signer, 'funds', clock)
  const principal = PRINCIPAL
  const tokenOf = async (call: CallOverrides = {}): Promise<string | undefined> => {
    const headers = headersOf(await identify(makeCall({ principal, ...call })))
    expect(Object.keys(headers)).toEqual(['x-postern-token'])
    return headers['x-postern-token']
  }
  return { clock, signed, tokenOf, identify, principal, withdraw }
}

describe('the token that tells an upstream who calls', () => {
  it('T3.10 is made anew once the key that signed it was withdrawn, however young it is', async () => {
    const { tokenOf, withdraw } = begin()
    expect([await tokenOf(), await tokenOf()]).toEqual(['token-1', 'token-1'])
    withdraw()
    expect(await tokenOf()).toBe('token-2')
  })

  it('C8.2 is for one backend, of one minute, and says who calls for what', async () => {
    const { tokenOf, signed, clock } = begin()
    await tokenOf({ fund: 'SUPER1' })
    const now = clock.now() / 1000
    expect(signed).toEqual([
      {
        typ: 'postern-call+jwt',
        claims: {
          iss: 'http://api.example',
          aud: 'funds',
          sub: 'subject-1',
          client_id: 'client-1',
          scope: 'fund.read target:b/ACME',
          business: 'ACME',
          fund: 'SUPER1',
          iat: now,
          exp: now + 60,
        },
      },
    ])
  })

  it('C8.2 is signed once per principal and place in half its life', async () => {
    const { tokenOf, signed, clock, principal } = begin()
    expect(await tokenOf()).toBe('token-1')
    clock.advance(29_999)
    expect(await tokenOf()).toBe('token-1')
    expect(await tokenOf({ fund: 'SUPER1' })).toBe('token-2')
    expect(await tokenOf({ business: 'GLOBEX' })).toBe('token-3')
    expect(await tokenOf({ principal: { ...principal, subject: 'another' } })).toBe('token-4')
    clock.advance(1)
    expect(await tokenOf()).toBe('token-5')
    expect(signed).toHaveLength(5)
  })

  it('C8.2 is there at once where it was signed before', async () => {
    const { tokenOf, identify, principal } = begin()
    await tokenOf()
    expect(identify(makeCall({ principal }))).toBe('x-postern-token: token-1\r\n')
  })

  it('C8.2 is kept for a bounded number of places', async () => {
    const { tokenOf, signed } = begin()
    for (let fund = 0; fund < 1000; fund++) await tokenOf({ fund: `F${fund}` })
    expect(signed).toHaveLength(1000)
    expect(await tokenOf({ fund: 'F999' })).toBe('token-1000')
  })
})
