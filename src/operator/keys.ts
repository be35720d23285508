/** The admin API's routes for the signing keys (C11.5.3). */
import { instantText } from '../kernel/units.ts'
import type { ListedKey } from '../watch/status/key-orders.ts'
import {
  type Operation,
  count,
  members,
  ok,
  problemsSchema,
  refuse,
  type Schema,
  text,
  WHO,
} from './operation.ts'

const seconds = (time: number | undefined): string | undefined =>
  instantText(time === undefined ? undefined : time * 1000)

const keyOf = ({ createdAt, signsFrom, endsAt, nextRotationAt, ...key }: ListedKey) => ({
  ...key,
  created: seconds(createdAt),
  signsFrom: seconds(signsFrom),
  nextRotation: seconds(nextRotationAt),
  ends: seconds(endsAt),
})

const names = (description: string): Schema => ({ type: 'array', items: { type: 'string' }, description })

const keySchema = members(
  {
    name: text('`ES256-2`: its algorithm and its number.'),
    kid: text('Its thumbprint (RFC 7638), as tokens and the key set name it.'),
    algorithm: text('The signature algorithm.'),
    state: {
      enum: ['announced', 'signing', 'retiring', 'retired'],
      description:
        'Published and not used yet; signs now; signs no more, and its tokens are valid; its tokens are over.',
    },
    created: text('When it was made.'),
    signsFrom: text('From when on it signs.'),
    nextRotation: text('Of the key that signs: when another one does. Absent where none is planned.'),
    ends: text('When it is no longer published. Absent as long as no key follows it.'),
  },
  ['name', 'kid', 'algorithm', 'state', 'created', 'signsFrom'],
)

const NO_KEYS = refuse('this service has no keys', ['a sidecar signs nothing: its issuers have the keys'])

export const KEY_ROUTES: readonly Operation[] = [
  {
    method: 'GET',
    path: '/keys',
    operationId: 'listKeys',
    needs: 'inspect',
    summary: 'The signing keys: which signs, which comes next, and when each ends',
    answers: {
      200: [
        'Every key',
        members({ keys: { type: 'array', items: keySchema, description: 'By algorithm, oldest first.' } }, [
          'keys',
        ]),
      ],
      409: ['A sidecar has no keys', problemsSchema],
    },
    handle: async ({ keys }) => (keys === undefined ? NO_KEYS : ok({ keys: (await keys.list()).map(keyOf) })),
  },
  {
    method: 'POST',
    path: '/keys/rotate',
    operationId: 'rotateKeys',
    needs: 'administer',
    summary:
      'Make the next keys, which are published before they sign; or replace them all at once, if somebody may have read them',
    body: members({
      compromised: {
        type: 'boolean',
        description:
          'Replace the keys and the secret of refresh tokens now: every token issued so far is refused, and every family of refresh tokens ends.',
      },
      preview: { type: 'boolean', description: 'Tell what would be done; change nothing.' },
      ...WHO,
    }),
    bodyOptional: true,
    answers: {
      200: [
        'Done; every process follows within a second',
        members(
          {
            outcome: { enum: ['rotated', 'previewed'] },
            made: names('Names of the new keys.'),
            removed: names('Names of the keys that are accepted no more.'),
            families: count('Families of refresh tokens that ended. Absent if the store was out of reach.'),
          },
          ['outcome', 'made', 'removed'],
        ),
      ],
      409: ['A sidecar has no keys', problemsSchema],
    },
    handle: async ({ keys }, { body, operator }) => {
      const options = { compromised: body['compromised'] === true, preview: body['preview'] === true }
      return keys === undefined ? NO_KEYS : ok(await keys.rotate(options, operator))
    },
  },
]
