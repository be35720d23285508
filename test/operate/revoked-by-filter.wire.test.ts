/** What each filter of a revocation ends, on each kind of store (C6.3.3). */
import { describe, expect, it } from 'vitest'
import { ALICE, SCOPE } from '../support/audited-people.ts'
import { needing } from '../support/machine.ts'
import { postForm } from '../support/oauth.ts'
import { operatedHere, type Operated } from '../support/operated.ts'
import { PATIENT_STORE } from '../support/patient-store.ts'
import { onStore, sharedStore } from '../support/shared-store.ts'
import { issueToken, type TokenResponse } from '../support/tokens.ts'
import { decodeJwt } from 'jose'
import type { StoreConfig } from '../../src/state/stores/schema.ts'

const STORES: readonly (readonly [string, object, () => StoreConfig | Promise<StoreConfig>])[] = [
  ['memory', {}, () => ({ kind: 'memory' })],
  ['SQLite', {}, () => PATIENT_STORE],
  ['Postgres', needing('postgresql'), () => sharedStore({ deadline: 10_000 })],
]

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

describe.each(STORES)('on a store of kind %s', (_name, needs, store) => {
  it(
    `C6.3.3 POST /revoke by ${MEMBERS} ends what lives, takes what has ended, and refuses what nobody knows`,
    { ...needs },
    async () => {
      const service = await operatedHere({ keeps: 'nothing', change: onStore(await store()) })
      for (const filter of FILTERS) await revokeBy(service, filter)
    },
  )

  it(
    'C6.3.3 `postern revoke --family` ends one family and no other, and takes one that has ended',
    { ...needs },
    async () => {
      const service = await operatedHere({ keeps: 'nothing', change: onStore(await store()) })
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
    },
  )
})
