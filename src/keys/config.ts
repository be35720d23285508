import { join } from 'node:path'
import { duration, flag, section, type Static } from '../config/pieces.ts'
import type { Report } from '../config/report.ts'
import type { SigningAlgorithm } from '../contracts/people.ts'
import type { KeysPlan } from './service-keys.ts'

export const SIGNING_ALGORITHMS = ['ES256', 'RS256'] as const satisfies readonly SigningAlgorithm[]

export const keysSchema = section(
  {
    rotation: section(
      {
        automatic: flag({
          default: true,
          description:
            'Whether keys follow each other by themselves; else `postern keys rotate` makes the next.',
        }),
        every: duration({ default: '30d', description: 'How long a key signs.' }),
        announce: duration({
          orZero: true,
          default: '1d',
          description:
            'How long a new key is published before it signs: longer than any client or upstream keeps the key set.',
        }),
      },
      {
        default: {},
        description:
          'How signing keys follow each other. An old one stays published until its last token has expired.',
      },
    ),
  },
  {
    default: {},
    description:
      'The keys that sign tokens. They are made on first start, in the folder `keys` of the data folder, for ES256 and RS256 both.',
  },
)

export type KeysConfig = Static<typeof keysSchema>

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
/** Our own key set may be kept for five minutes; others that read it keep it as long as they like. */
const SHORTEST_ANNOUNCEMENT = 10 * MINUTE

/** Reports what the schema can't say. */
export function compileKeys({ rotation }: KeysConfig, report: Report): void {
  const { announce, every } = rotation
  const at = ['keys', 'rotation', 'announce']
  if (announce >= every) report.error(at, 'must be shorter than `every`')
  if (announce < SHORTEST_ANNOUNCEMENT)
    report.warn(
      at,
      'is less than ten minutes',
      'whoever keeps the key set longer refuses new tokens for a while',
    )
}

/**
 * The plan for the keys under a data folder. Keys of both algorithms always exist: clients may ask for either on their
 * id_tokens. `longestLife` is that of any token, in milliseconds; a day, which is what a client may have, at least.
 */
export const planKeys = (data: string, { rotation }: KeysConfig, longestLife = DAY): KeysPlan => ({
  folder: join(data, 'keys'),
  algorithms: SIGNING_ALGORITHMS,
  rotation: {
    automatic: rotation.automatic,
    every: Math.floor(rotation.every / 1000),
    announce: Math.floor(rotation.announce / 1000),
    longestLife: Math.ceil(Math.max(DAY, longestLife) / 1000),
  },
})
