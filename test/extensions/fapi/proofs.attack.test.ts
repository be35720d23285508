import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Prover, prover } from '../../support/prover.ts'
import { type RawResponse, sendRaw } from '../../support/raw-http.ts'
import { requestBytes } from '../../support/requests.ts'
import { startPostern, type StartedPostern } from '../../support/start-postern.ts'
import { basic } from '../../support/tokens.ts'

/** T3.23: whoever has a proof of somebody else, or his code or refresh token, and not the key. */

let postern: StartedPostern

beforeAll(async () => {
  postern = await startPostern({ keeps: 'nothing' })
})
afterAll(() => postern.close())

const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' }
const PASSWORD = {
  grant_type: 'password',
  username: 'alice',
  password: 'alice-password',
  scope: 'fund.read offline_access target:b/ACME',
}

const proofOf = (key: Prover, claims: object = {}, header: object = {}): string =>
  key.prove({ htm: 'POST', htu: `${postern.authUrl}/connect/token`, ...claims }, { ...header })

/** A token request as bytes; each of `proofs` is a header line. */
const ask = (params: Readonly<Record<string, string>>, ...proofs: readonly string[]): Promise<RawResponse> =>
  askAt('/connect/token', params, ...proofs)

function askAt(
  target: string,
  params: Readonly<Record<string, string>>,
  ...proofs: readonly string[]
): Promise<RawResponse> {
  const headers = { ...FORM, Authorization: basic('acme-books'), DPoP: proofs }
  const body = new URLSearchParams(params).toString()
  return sendRaw(postern.port, requestBytes({ method: 'POST', target, headers, body }))
}

const errorOf = ({ body, status }: RawResponse): unknown => [
  status,
  (JSON.parse(body) as { readonly error?: string }).error,
]
const REFUSED = [400, 'invalid_dpop_proof']

describe('T3.23 a proof at the token endpoint', () => {
  it('T3.23 that was used already gives nothing, 20 times at once', async () => {
    const proof = proofOf(prover())
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(PASSWORD, proof)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const answer of answers.filter(({ status }) => status !== 200))
      expect(errorOf(answer)).toEqual(REFUSED)
  })

  it('T3.23 that was made for a call, or another address, gives nothing', async () => {
    const key = prover()
    for (const claims of [
      { htm: 'GET' },
      { htu: `${postern.authUrl}/connect/introspect` },
      { htu: 'https://evil.example/connect/token' },
      { iat: undefined },
      { jti: undefined },
    ])
      expect(errorOf(await ask(PASSWORD, proofOf(key, claims)))).toEqual(REFUSED)
  })

  it('T3.23 whose own times say that it does not count gives nothing', async () => {
    const key = prover()
    const now = Date.now() / 1000
    for (const claims of [{ exp: now - 300 }, { nbf: now + 300 }, { exp: 'never' }, { nbf: null }])
      expect(errorOf(await ask(PASSWORD, proofOf(key, claims)))).toEqual(REFUSED)
    expect((await ask(PASSWORD, proofOf(key, { exp: now + 300, nbf: now - 300 }))).status).toBe(200)
  })

  it('C6.1.1 that was made for the address with a slash at its end counts where that was called, and there alone', async () => {
    const key = prover()
    const slashed = { htu: `${postern.authUrl}/connect/token/` }
    expect(errorOf(await ask(PASSWORD, proofOf(key, slashed)))).toEqual(REFUSED)
    expect(errorOf(await askAt('/connect/token/', PASSWORD, proofOf(key)))).toEqual(REFUSED)
    const { body, status } = await askAt('/connect/token/', PASSWORD, proofOf(key, slashed))
    expect({ status, type: JSON.parse(body).token_type }).toEqual({ status: 200, type: 'DPoP' })
  })

  it('T3.23 that is forged gives nothing: no algorithm, an HMAC, a private key, another signature', async () => {
    const key = prover()
    const [header, payload, signature] = proofOf(key).split('.')
    const [, , other] = proofOf(prover()).split('.')
    for (const proof of [
      proofOf(key, {}, { alg: 'none' }),
      proofOf(key, {}, { alg: 'HS256', jwk: { kty: 'oct', k: 'AAAA' } }),
      proofOf(key, {}, { jwk: key.privateKey.export({ format: 'jwk' }) }),
      proofOf(key, {}, { jku: 'https://evil.example/keys' }),
      `${header}.${payload}.`,
      `${header}.${payload}.${other}`,
      `${header}.${payload}.${signature}.`,
      '',
    ])
      expect(errorOf(await ask(PASSWORD, proof))).toEqual(REFUSED)
  })

  it('T3.23 in two header lines gives nothing, whether they are the same or not', async () => {
    const key = prover()
    const proof = proofOf(key)
    expect(errorOf(await ask(PASSWORD, proof, proof))).toEqual(REFUSED)
    expect(errorOf(await ask(PASSWORD, proofOf(key), proofOf(key)))).toEqual(REFUSED)
    // Neither has used it up.
    expect((await ask(PASSWORD, proof)).status).toBe(200)
  })
})

describe('T3.23 a refresh token in other hands', () => {
  it('T3.23 of a family that began with a proof gives nothing without one, and goes on for its owner', async () => {
    const key = prover()
    const { refresh_token } = JSON.parse((await ask(PASSWORD, proofOf(key))).body)
    const refresh = { grant_type: 'refresh_token', refresh_token }
    expect(errorOf(await ask(refresh))).toEqual(REFUSED)
    expect((await ask(refresh, proofOf(key))).status).toBe(200)
  })
})
