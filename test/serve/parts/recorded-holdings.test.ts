import { expect, it } from 'vitest'
import type { RevokedTokens } from '../../../src/base/contracts/records/tokens.ts'
import { holdingsOf } from '../../../src/identity/directory/records/holdings.ts'
import { endLostMeanwhile } from '../../../src/serve/parts/holdings-record.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { catalogue, HASH, makeDirectory } from '../../support/directory.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { keepNotes } from '../../support/notes.ts'

const user = (subject: string) => ({ subject, password: HASH, access: { ACME: 'Reader' } })
const holdings = async (users: object) => holdingsOf(await makeDirectory({ users }), catalogue)

it('C6.3.5 a start ends what was lost since the last one, once, and writes nothing where nothing changed', async () => {
  const store = new MemoryStore(movableClock())
  const ended: RevokedTokens[] = []
  const tokenRevoker = {
    end: (tokens: RevokedTokens) => {
      ended.push(tokens)
      return Promise.resolve({ sessions: 0, families: 0, codes: 0, consents: 0 })
    },
  }
  const both = await holdings({ ann: user('s-ann'), bob: user('s-bob') })
  const one = await holdings({ bob: user('s-bob') })
  const recorder = keepNotes()
  const parts = { store, tokenRevoker, recorder }
  await endLostMeanwhile(both, parts)
  await endLostMeanwhile(one, parts)
  const kept = await store.list('holdings')
  await endLostMeanwhile(one, parts)
  expect(ended).toEqual([{ subject: 's-ann' }])
  expect(await store.list('holdings')).toEqual(kept)
  expect(recorder.events).toEqual(['revoked_at_start'])
  store.find = () => Promise.reject(new Fault('identity_unavailable'))
  await endLostMeanwhile(both, parts)
  expect(recorder.events).toEqual(['revoked_at_start', 'revocation_at_start_failed'])
})

it('C6.3.6 a start after an earlier version ends what that version recorded and is lost, and no scope value', async () => {
  const store = new MemoryStore(movableClock())
  const client = { mayHold: true, businesses: ['ACME'] }
  const served = {
    username: 'ann',
    mayHold: true,
    password: 'x',
    businesses: ['ACME', 'GLOBEX'],
    customers: [],
  }
  const earlier = {
    businesses: ['ACME', 'GLOBEX', 'GONE'],
    clients: [['books', client]],
    users: [['s-ann', served]],
  }
  await store.create('holdings', 'served', { value: earlier })
  const ended: RevokedTokens[] = []
  const tokenRevoker = {
    end: (tokens: RevokedTokens) => {
      ended.push(tokens)
      return Promise.resolve({ sessions: 0, families: 0, codes: 0, consents: 0 })
    },
  }
  const now = await holdings({ ann: user('s-ann') })
  const ann = { ...now.users.get('s-ann')!, password: 'x' }
  await endLostMeanwhile(
    { ...now, users: new Map([['s-ann', ann]]) },
    { store, tokenRevoker, recorder: keepNotes() },
  )
  expect(ended).toEqual([{ business: 'GONE' }, { client: 'books' }, { subject: 's-ann', business: 'GLOBEX' }])
})
