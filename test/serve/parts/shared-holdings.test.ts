import { describe, expect, it } from 'vitest'
import type { RevokedTokens } from '../../../src/base/contracts/records/tokens.ts'
import { holdingsOf } from '../../../src/identity/directory/records/holdings.ts'
import { adoptHoldings, recordShared, settleHoldings } from '../../../src/serve/parts/holdings-record.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { catalogue, HASH, makeDirectory } from '../../support/directory.ts'
import { movableClock } from '../../support/movable-clock.ts'

const user = (subject: string) => ({ subject, password: HASH, access: { ACME: 'Reader' } })
const holdings = async (...subjects: readonly string[]) =>
  holdingsOf(
    await makeDirectory({ users: Object.fromEntries(subjects.map((each) => [each, user(`s-${each}`)])) }),
    catalogue,
  )

/** Nodes on one store: what they end is kept until it is taken. */
function opened() {
  const store = new MemoryStore(movableClock())
  const ended: RevokedTokens[] = []
  const tokenRevoker = {
    end: (tokens: RevokedTokens) => {
      ended.push(tokens)
      return Promise.resolve({ sessions: 0, families: 0, codes: 0, consents: 0 })
    },
  }
  return { parts: { store, tokenRevoker }, taken: () => ended.splice(0) }
}

describe('C6.3.6 C11.7.8 a configuration that is replaced node by node', () => {
  it('ends what is lost when the first node has it, and once more when all nodes have it', async () => {
    const { parts, taken } = opened()
    const [before, after] = [await holdings('ann', 'bob'), await holdings('bob')]
    await adoptHoldings(before, parts)
    await settleHoldings(before, parts)
    expect(taken()).toEqual([])
    await adoptHoldings(after, parts)
    expect(taken()).toEqual([{ subject: 's-ann' }])
    await adoptHoldings(after, parts)
    expect(taken()).toEqual([])
    await settleHoldings(after, parts)
    expect(taken()).toEqual([{ subject: 's-ann' }])
    await settleHoldings(after, parts)
    expect(taken()).toEqual([])
  })

  it('keeps what it adds when a node of the earlier one starts again meanwhile', async () => {
    const { parts, taken } = opened()
    const [before, after] = [await holdings('ann'), await holdings('ann', 'new')]
    await adoptHoldings(before, parts)
    await adoptHoldings(after, parts)
    await adoptHoldings(before, parts)
    await adoptHoldings(after, parts)
    await settleHoldings(after, parts)
    expect(taken()).toEqual([])
  })

  it('ends what it had added when all nodes have gone back to the earlier one', async () => {
    const { parts, taken } = opened()
    const [before, after] = [await holdings('ann'), await holdings('ann', 'new')]
    await adoptHoldings(before, parts)
    await adoptHoldings(after, parts)
    await adoptHoldings(before, parts)
    await settleHoldings(before, parts)
    expect(taken()).toEqual([{ subject: 's-new' }])
    await adoptHoldings(after, parts)
    expect(taken()).toEqual([])
  })

  it('by a reload ends once more what the reload of each node has ended, when all have reloaded', async () => {
    const { parts, taken } = opened()
    const [before, after] = [await holdings('ann', 'bob'), await holdings('bob')]
    await adoptHoldings(before, parts)
    await recordShared(after, parts.store)
    await recordShared(after, parts.store)
    await settleHoldings(after, parts)
    expect(taken()).toEqual([{ subject: 's-ann' }])
  })

  it('is settled by one node alone', async () => {
    const { parts, taken } = opened()
    const [before, after] = [await holdings('ann', 'bob'), await holdings('bob')]
    await adoptHoldings(before, parts)
    await adoptHoldings(after, parts)
    taken()
    parts.store.hold = () => Promise.resolve(false)
    expect(await settleHoldings(after, parts)).toBeUndefined()
    expect(taken()).toEqual([])
  })
})
