import type { DirectoryEditors } from './directory-editors.ts'

export const STORED_PASSWORD = 'correct horse battery'

/** A business with a fund, a role, a client and a user, all of the store. Resolves with the client's secret. */
export async function fillStore({
  businesses,
  funds,
  roles,
  clients,
  users,
}: DirectoryEditors): Promise<string> {
  await businesses.add({ code: 'STORED', name: 'Stored & Sons', phoneNumber: '+61 8 5550 0100' })
  await businesses.add({ code: 'OTHER', name: 'Other', funds: 'any' })
  await funds.add({ business: 'STORED', code: 'F1' })
  await roles.add({ name: 'Clerk', scopes: ['fund.read', 'business.fund.list', 'business.fund.create'] })
  const client = await clients.add({
    ...{ id: 'tally', kind: 'customer', name: 'Tally', grants: ['password', 'refresh_token'] },
    ...{ agreement: '2026-01-15', businesses: ['STORED', 'OTHER'] },
    scopes: [
      'fund.read',
      'business.fund.list',
      'business.fund.create',
      'openid',
      'service_profile',
      'offline_access',
    ],
  })
  const user = { username: 'ann', customers: ['tally'], access: { STORED: 'Clerk', OTHER: 'Clerk' } }
  await users.add({ ...user, password: STORED_PASSWORD })
  return client.secret ?? ''
}
