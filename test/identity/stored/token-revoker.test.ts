import { describe, expect, it } from 'vitest'
import type { IndexValues } from '../../../src/base/contracts/records/store.ts'
import type { EndOptions, RevokedTokens } from '../../../src/base/contracts/records/tokens.ts'
import { StoreTokenRevoker } from '../../../src/identity/stored/token-revoker.ts'

/** What was asked of the store and of the rules, in order. */
function revoker() {
  const done: string[] = []
  const act = (verb: string) => (kind: string, where: IndexValues) => {
    done.push(`${verb} ${kind} ${JSON.stringify(where)}`)
    return Promise.resolve(1)
  }
  const made = new StoreTokenRevoker(
    {
      find: () => Promise.resolve(undefined),
      remove: (kind, key) => {
        done.push(`remove ${kind} ${key}`)
        return Promise.resolve(true)
      },
      removeBy: act('remove'),
      countBy: act('count'),
    },
    { revoke: () => Promise.resolve(void done.push('rule')) },
    {
      endSubject: (subject) => {
        done.push(`queue for ${subject ?? 'everybody'}`)
        return Promise.resolve(() => Promise.resolve(void done.push('forget')))
      },
    },
  )
  return { made, done }
}

const end = async (tokens: RevokedTokens, options?: EndOptions) => {
  const { made, done } = revoker()
  return { ended: await made.end(tokens, options), done }
}

describe('T3.12 what a revocation ends', () => {
  it('C6.3.3 the rule comes first, then sessions, links to set a password, codes, families and their tokens', async () => {
    const { ended, done } = await end({ subject: 'alice' })
    expect(done.map((line) => line.split(' {')[0])).toEqual([
      'queue for alice',
      'rule',
      'remove session',
      'remove password_link',
      'remove code',
      'remove refresh_family',
      'remove refresh_token',
      'forget',
    ])
    expect(ended).toEqual({ sessions: 1, codes: 1, families: 1, consents: 0 })
  })

  it('C6.3.3 a person’s sessions end only if all of that person’s tokens do', async () => {
    for (const tokens of [{ subject: 'alice', client: 'acme-books' }, { client: 'acme-books' }])
      expect((await end(tokens)).ended.sessions).toBe(0)
  })

  it('C6.3.3a clients are told of the end of a user, or of everybody, and of no end beside these', async () => {
    expect((await end({ before: 'now' })).done[0]).toBe('queue for everybody')
    for (const tokens of [
      { subject: 'alice', client: 'acme-books' },
      { family: 'f' },
      { client: 'acme-books' },
    ])
      expect((await end(tokens)).done[0]).toBe('rule')
  })

  it('C6.3.3 consents are withdrawn only on request, and never by the end of one family', async () => {
    const tokens = { subject: 'alice', client: 'acme-books' }
    expect((await end(tokens)).ended.consents).toBe(0)
    expect((await end(tokens, { consents: true })).ended.consents).toBe(1)
    expect((await end({ family: 'f' }, { consents: true })).ended.consents).toBe(0)
  })

  it('C6.3.3 a single access token has nothing in the store, and a preview changes nothing', async () => {
    expect((await end({ jti: 'x' })).done).toEqual(['rule'])
    const { made, done } = revoker()
    await made.preview({ subject: 'alice' })
    expect(done.every((line) => line.startsWith('count '))).toBe(true)
  })
})
