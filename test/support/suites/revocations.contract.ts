/** What each filter of a revocation ends, on a store of any kind (C6.3.3). */
import { decodeJwt } from 'jose'
import { expect, it } from 'vitest'
import type { StoreConfig } from '../../../src/state/stores/schema.ts'
import { ALICE, SCOPE } from '../audited-people.ts'
import { postForm } from '../oauth.ts'
import { type Operated, operatedHere } from '../operated.ts'
import { issueToken, type TokenResponse } from '../tokens.ts'

interface Filter {
  readonly member: string
  /** Of what was given to alice for ACME by acme-books. */
  readonly valueOf: (given: TokenResponse) => string
  /** Ended with it: its refresh token too, or the access token alone. */
  readonly endsFamily: boolean
  /** That nobody was given, and nothing has. */
  readonly unknown: string
}

/** Refresh tokens name their family. */
const familyOf = ({ refresh_token: token = '' }: TokenResponse): string => token.split('.')[2] ?? ''

const NOBODY = '00000000-0000-4000-8000-000000000000'

const FILTERS: readonly Filter[] = [
  { member: 'client', valueOf: () => 'acme-books', endsFamily: true, unknown: 'acme-boks' },
  { member: 'subject', valueOf: () => ALICE, endsFamily: true, unknown: NOBODY },
  {
    ...{ member: 'family', endsFamily: true, unknown: 'AZabcdefghijklmnopqrst' },
    valueOf: (given) => familyOf(given),
  },
  { member: 'business', valueOf: () => 'ACME', endsFamily: true, unknown: 'ACNE' },
  // The last one, since it leaves a family.
  {
    ...{ member: 'jti', endsFamily: false, unknown: 'no-token' },
    valueOf: ({ access_token: token }) => decodeJwt(token).jti ?? '',
  },
]

/** A service on this store, for one test. */
const operatedOn = (store: StoreConfig): Promise<Operated> =>
  operatedHere({ keeps: 'nothing', change: (configuration) => ({ ...configuration, store }) })

const MEMBERS = FILTERS.map(({ member }) => member).join(', ')

const status = async (service: Operated, token: string): Promise<number> =>
  (
    await fetch(`${service.baseUrl}/api/1.0/u/connect/userinfo`, {
      headers: { authorization: `Bearer ${token}` },
    })
  ).status

const refresh = async (service: Operated, token: string | undefined): Promise<number> =>
  (
    await postForm(service, '/connect/token', {
      params: { grant_type: 'refresh_token', refresh_token: token ?? '' },
    })
  ).status

async function revokeBy(service: Operated, { member, valueOf, endsFamily, unknown }: Filter): Promise<void> {
  const given = await issueToken(service, { scope: SCOPE })
  const value = valueOf(given)
  const revoke = (id: string, more: object = {}) =>
    service.admin('POST', '/revoke', { [member]: id, ...more })

  const families = endsFamily ? 1 : 0
  expect(await revoke(value, { preview: true }), member).toMatchObject({
    status: 200,
    body: { outcome: 'previewed', families },
  })
  expect(await status(service, given.access_token), member).toBe(200)
  expect(await revoke(value), member).toMatchObject({ status: 200, body: { outcome: 'revoked', families } })
  expect(await status(service, given.access_token), member).toBe(401)
  // What has ended is no mistake: nothing more ends.
  expect(await revoke(value), member).toMatchObject({
    status: 200,
    body: { outcome: 'revoked', families: 0 },
  })
  expect(await refresh(service, given.refresh_token), member).toBe(endsFamily ? 400 : 200)
  expect((await revoke(unknown)).status, member).toBe(404)
}

/** @param store a store in which there is nothing yet, for each test */
export function revocationsOn(store: () => StoreConfig | Promise<StoreConfig>): void {
  it(`C6.3.3 POST /revoke by ${MEMBERS} ends what lives, takes what has ended, and refuses what nobody knows`, async () => {
    const service = await operatedOn(await store())
    for (const filter of FILTERS) await revokeBy(service, filter)
  })

  it('C6.3.3 `postern revoke --family` ends one family and no other, and takes one that has ended', async () => {
    const service = await operatedOn(await store())
    const given = await issueToken(service, { scope: SCOPE })
    const other = await issueToken(service, { scope: SCOPE })
    const family = familyOf(given)
    const ended = await service.postern('revoke', `--family=${family}`)
    expect(ended, ended.err).toMatchObject({ code: 0 })
    const left = await service.admin('GET', `/families?subject=${ALICE}`)
    expect(left.body.families).toMatchObject([{ id: familyOf(other) }])
    expect(await refresh(service, given.refresh_token)).toBe(400)
    expect(await refresh(service, other.refresh_token)).toBe(200)
    expect(await service.postern('revoke', `--family=${family}`)).toMatchObject({ code: 0 })
    const mistyped = family.split('').toReversed().join('')
    expect(await service.postern('revoke', `--family=${mistyped}`)).toMatchObject({ code: 1 })
  })
}
