import { expect, it } from 'vitest'
import { holdingsOf, lossesBetween, withStored } from '../../../src/identity/directory/records/holdings.ts'
import { ROLE, stored } from '../../../src/identity/directory/records/schema.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { catalogue, makeDirectory } from '../../support/directory.ts'
import { movableClock } from '../../support/movable-clock.ts'

const configured = async (roles: object) => holdingsOf(await makeDirectory({ roles }), catalogue)

/** The rules where one configuration replaces another, beside a store with this role `Clerk`. */
async function rulesBeside(
  role: { scopes: readonly string[]; disabled: boolean },
  ...roles: [object, object]
) {
  const store = new MemoryStore(movableClock())
  await store.create(ROLE, 'Clerk', { value: stored({ name: 'Clerk', ...role }) })
  const [before, after] = [await configured(roles[0]), await configured(roles[1])]
  const { had, has } = await withStored(before, after, store)
  return lossesBetween(had, has).map(({ tokens }) => tokens)
}

const READER = { scopes: ['fund.read'] }
const EDITOR = { scopes: ['fund.maintain'] }

it.each([
  ['hides one of the store that gave more', EDITOR, [{}, { Clerk: READER }], [{ scope: 'fund.maintain' }]],
  ['hides one of the store that gave less', READER, [{}, { Clerk: EDITOR }], []],
  [
    'is gone, and that of the store gives less',
    READER,
    [{ Clerk: EDITOR }, {}],
    [{ scope: 'fund.maintain' }],
  ],
  ['is gone, and that of the store gives the same', EDITOR, [{ Clerk: EDITOR }, {}], []],
] as const)(
  'C6.3.6 a role of the configuration that %s ends what is lost',
  async (_, role, [one, other], lost) => {
    const rules = await rulesBeside({ ...role, disabled: false }, one, other)
    expect(rules).toEqual(lost.map((each) => ({ role: 'Clerk', ...each })))
  },
)

it('C6.3.6 a role that is gone is not replaced by one of the store that is disabled', async () => {
  expect(await rulesBeside({ ...EDITOR, disabled: true }, { Clerk: EDITOR }, {})).toEqual([{ role: 'Clerk' }])
})
