import type { Problems } from '../../../base/config/problems.ts'
import { duration, flag, section, type Static } from '../../../base/config/schema.ts'
import type { SigningAlgorithm } from '../../../base/contracts/people/people.ts'
import { DAY_MS } from '../../../base/kernel/units.ts'
import type { KeyPlace } from './key-place.ts'
import type { KeysPlan } from './service-keys.ts'

export const SIGNING_ALGORITHMS = ['ES256', 'RS256'] as const satisfies readonly SigningAlgorithm[]

export const keysSchema = section(
  {
    rotation: section(
      {
        automatic: flag({
          default: true,
          description: 'Make the next key automatically. Otherwise `postern keys rotate` makes it.',
        }),
        every: duration({ default: '30d', description: 'How long a key signs before the next one does.' }),
        announce: duration({
          orZero: true,
          default: '1d',
          description:
            'How long a new key is published before it signs. Must be longer than others cache the key set.',
        }),
      },
      {
        default: {},
        description:
          'Replacement of signing keys. An old key stays published until its last token has expired.',
      },
    ),
  },
  {
    default: {},
    description:
      'The keys that sign tokens. The first start makes them: in the folder `keys` of `data`, or in a Postgres store.',
  },
)

export type KeysConfig = Static<typeof keysSchema>

const MINUTE = 60_000
/** The shortest `announce` without a warning, in milliseconds. Caches may keep our key set for five minutes, clients longer. */
const SHORTEST_ANNOUNCEMENT = 10 * MINUTE

export function compileKeys({ rotation }: KeysConfig, problems: Problems): void {
  const { announce, every } = rotation
  const at = ['keys', 'rotation', 'announce']
  if (announce >= every) problems.error(at, 'must be shorter than `every`')
  if (announce < SHORTEST_ANNOUNCEMENT)
    problems.warn(
      at,
      'is less than ten minutes',
      'whoever keeps the key set longer refuses new tokens for a while',
    )
}

/**
 * The plan for the keys of a place. Keys of both algorithms always exist, because clients may ask for either on
 * their id_tokens. `longestLife`: how long any token may live, in milliseconds. At least a day counts, because a client
 * may have that.
 */
export const planKeys = (place: KeyPlace, { rotation }: KeysConfig, longestLife = DAY_MS): KeysPlan => ({
  place,
  algorithms: SIGNING_ALGORITHMS,
  rotation: {
    automatic: rotation.automatic,
    every: Math.floor(rotation.every / 1000),
    announce: Math.floor(rotation.announce / 1000),
    longestLife: Math.ceil(Math.max(DAY_MS, longestLife) / 1000),
  },
})
