import { describe, expect, it } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import { viewOf } from '../../../src/base/config/schema.ts'
import { nodeOf } from '../../../src/base/config/tree.ts'
import { load } from '../../../src/base/config/validate.ts'
import {
  compileKeys,
  type KeysConfig,
  keysSchema,
  planKeys,
} from '../../../src/identity/keys/signing/schema.ts'
import { FolderKeys } from '../../../src/identity/keys/signing/folder-keys.ts'

const [MINUTE, DAY] = [60_000, 86_400_000]
const ROTATION: KeysConfig['rotation'] = { automatic: true, every: 30 * DAY, announce: DAY }
const problemsOf = (problems: Problems): readonly string[] =>
  problems.list.map(({ path, severity }) => `${severity} ${path.join('.')}`)

describe('the configuration of the own keys', () => {
  const problems = (over: Partial<KeysConfig['rotation']>): readonly string[] => {
    const problems = new Problems()
    compileKeys({ rotation: { ...ROTATION, ...over } }, problems)
    return problemsOf(problems)
  }

  it('C6.3.4 a key is announced for a shorter time than it signs', () => {
    expect(problems({})).toEqual([])
    expect(problems({ every: DAY + 1 })).toEqual([])
    expect(problems({ every: DAY })).toEqual(['error keys.rotation.announce'])
  })

  it('C6.3.4 warns if a key is announced for less than ten minutes', () => {
    expect(problems({ announce: 10 * MINUTE })).toEqual([])
    expect(problems({ announce: 10 * MINUTE - 1 })).toEqual(['warning keys.rotation.announce'])
  })

  it('C6.3.4 keys rotate by themselves unless the configuration says otherwise; a key may sign without notice', () => {
    const read = (written: object) => {
      const problems = new Problems()
      const value = load(viewOf(keysSchema), nodeOf(written, { file: 'test', line: 1 }), [], {
        environment: {},
        problems,
      })
      expect(problems.list).toEqual([])
      return value
    }
    expect(read({})).toEqual({ rotation: ROTATION })
    const written = { automatic: false, every: '1d', announce: '0s' }
    expect(read({ rotation: written })).toEqual({ rotation: { automatic: false, every: DAY, announce: 0 } })
  })

  it('C6.3.4 the plan is in seconds, rounded so that no token outlives its key, and allows for tokens of a day', () => {
    const place = new FolderKeys('/data/keys')
    const rotation = { automatic: false, every: 30 * DAY + 999, announce: DAY + 999 }
    expect(planKeys(place, { rotation })).toEqual({
      place,
      algorithms: ['ES256', 'RS256'],
      rotation: { automatic: false, every: 30 * 86_400, announce: 86_400, longestLife: 86_400 },
    })
    expect(planKeys(place, { rotation }, MINUTE).rotation.longestLife).toBe(86_400)
    expect(planKeys(place, { rotation }, 2 * DAY + 1).rotation.longestLife).toBe(2 * 86_400 + 1)
  })
})
