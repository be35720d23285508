/** The signing keys (C6.3.4, C11.5.3): listed, and rotated. */
import { instantText } from '../../base/kernel/units.ts'
import { KeyError } from '../../base/kernel/key-error.ts'
import type { ListedKey } from '../../identity/keys/signing/listed-keys.ts'
import type { OperationContext } from '../operation/context.ts'
import { AdminError, type OperationError } from '../operation/errors.ts'
import type { KeyWork, RotationResult } from '../operation/key-work.ts'
import {
  type AdminAnswer,
  commandLine,
  count,
  members,
  ok,
  type AdminOperation,
  problemsSchema,
  conflict,
  textSchema,
  WHO,
  flagSchema,
  listSchema,
  textsSchema,
} from '../operation/operation.ts'
import { confirm, countOfFamilies } from '../operation/terminal.ts'
import { EXIT } from '../operation/verb.ts'

const NO_KEYS = conflict('this service has no keys', ['a sidecar signs nothing: its issuers have the keys'])

const UNUSABLE = 'the signing keys cannot be read or written'

/** Rejects with AdminError 503 if the place of the keys cannot be used. */
async function withKeys(
  context: OperationContext,
  act: (work: KeyWork) => Promise<AdminAnswer>,
): Promise<AdminAnswer> {
  try {
    const work = await context.keys()
    return work === undefined ? NO_KEYS : await act(work)
  } catch (thrown) {
    if (!(thrown instanceof KeyError)) throw thrown
    throw new AdminError(503, UNUSABLE, [thrown.message])
  }
}

/** A problem of the keys says what to do; on the terminal it is shown alone. */
const refused = ({ error, problems, message }: OperationError) => ({
  message: error === UNUSABLE ? problems.join('\n') : message,
  code: EXIT.failed,
})

const seconds = (time: number | undefined): string | undefined =>
  instantText(time === undefined ? undefined : time * 1000)

/** As answers have it, in seconds since the epoch. */
const epochOf = (time: string | undefined): number | undefined =>
  time === undefined ? undefined : Date.parse(time) / 1000

const shortTime = (time: string): string => time.replace('.000', '')

const FILE = textSchema('`ES256-2.jwk`: its file. Absent where keys have none.')

/** A key as it is answered. */
interface AnsweredKey {
  readonly name: string
  readonly file?: string
  readonly kid: string
  readonly algorithm: string
  readonly state: ListedKey['state']
  readonly created: string
  readonly signsFrom: string
  readonly nextRotation?: string
  readonly ends?: string
}

const answeredKey = ({ createdAt, signsFrom, endsAt, nextRotationAt, ...key }: ListedKey) => ({
  ...key,
  created: seconds(createdAt),
  signsFrom: seconds(signsFrom),
  nextRotation: seconds(nextRotationAt),
  ends: seconds(endsAt),
})

const keySchema = members(
  {
    name: textSchema('`ES256-2`: its algorithm and its number.'),
    file: FILE,
    kid: textSchema('Its thumbprint (RFC 7638), as tokens and the key set name it.'),
    algorithm: textSchema('The signature algorithm.'),
    state: {
      enum: ['announced', 'signing', 'retiring', 'retired'],
      description:
        'Published and not used yet; signs now; signs no more, and its tokens are valid; its tokens are over.',
    },
    created: textSchema('When it was made.'),
    signsFrom: textSchema('From when on it signs.'),
    nextRotation: textSchema('Of the key that signs: when another one does. Absent where none is planned.'),
    ends: textSchema('When it is no longer published. Absent as long as no key follows it.'),
  },
  ['name', 'kid', 'algorithm', 'state', 'created', 'signsFrom'],
)

/** What people read of a key: its file, if it has one. */
const titleOf = ({ name, file = name }: { readonly name: string; readonly file?: string }): string => file

function keyLine(key: AnsweredKey): string {
  const { kid, state, signsFrom, ends, nextRotation } = key
  const until = ends === undefined ? '' : `  published until ${shortTime(ends)}`
  const next = nextRotation === undefined ? '' : `  until ${shortTime(nextRotation)}`
  return `${titleOf(key).padEnd(14)}${state.padEnd(11)}${kid}  signs from ${shortTime(signsFrom)}${next}${until}\n`
}

/** A key for programs. Times in seconds since the epoch. */
const keyRow = ({ name, kid, algorithm, state, created, signsFrom, ends, nextRotation }: AnsweredKey) => ({
  name,
  kid,
  algorithm,
  state,
  createdAt: epochOf(created),
  signsFrom: epochOf(signsFrom),
  endsAt: epochOf(ends),
  nextRotationAt: epochOf(nextRotation),
})

const LIST: AdminOperation = {
  runs: 'service or here',
  method: 'GET',
  path: '/keys',
  operationId: 'listKeys',
  needs: 'inspect',
  summary: 'The signing keys: which signs, which comes next, and when each ends',
  answers: {
    200: ['Every key', members({ keys: listSchema(keySchema, 'By algorithm, oldest first.') }, ['keys'])],
    409: ['A sidecar has no keys', problemsSchema],
  },
  handle: (context) =>
    withKeys(context, async ({ plan, clock }) => {
      // Only here: what reads keys loads a library.
      const { listKeys } = await import('../../identity/keys/signing/listed-keys.ts')
      return ok({ keys: (await listKeys(plan, clock)).map(answeredKey) })
    }),
  commands: [
    commandLine({
      words: ['keys list'],
      summary: 'List the signing keys with their states',
      arguments: [],
      options: {},
      examples: [{ line: 'postern keys list', does: 'list them, oldest first' }],
      text: ({ keys }: { readonly keys: readonly AnsweredKey[] }) => keys.map(keyLine).join(''),
      json: ({ keys }: { readonly keys: readonly AnsweredKey[] }) => ({ keys: keys.map(keyRow) }),
      refused,
    }),
  ],
}

/** A rotation as it is answered. */
interface AnsweredRotation {
  readonly made: readonly string[]
  readonly removed: readonly string[]
  readonly families?: number
  readonly trouble?: string
  readonly place: string
  readonly secret: string
  readonly keys: readonly { readonly name: string; readonly file?: string; readonly signsFrom?: string }[]
}

const answeredRotation = ({ plan: { place } }: KeyWork, rotation: RotationResult) => ({
  outcome: rotation.outcome,
  made: rotation.made.map(({ name }) => name),
  removed: rotation.removed.map(({ name }) => name),
  families: rotation.families,
  trouble: rotation.trouble,
  place: place.name,
  secret: place.secretTitle,
  keys: [...rotation.made, ...rotation.removed].map(({ signsFrom, ...key }) => ({
    ...key,
    signsFrom: seconds(signsFrom),
  })),
})

const rotationSchema = members(
  {
    outcome: { enum: ['rotated', 'previewed'] },
    made: textsSchema('Names of the new keys.'),
    removed: textsSchema('Names of the keys that are accepted no more.'),
    families: count(
      'Families of refresh tokens that ended. Absent if the store was out of reach, or is in the memory of another process.',
    ),
    trouble: textSchema(
      'Why the families could not be counted or ended, or which process has not taken the keys into use in 5 s.',
    ),
    place: textSchema('Where the keys are, for people.'),
    secret: textSchema('How the secret of refresh tokens is called there.'),
    keys: listSchema(
      members(
        {
          name: textSchema('`ES256-2`'),
          file: FILE,
          signsFrom: textSchema('Of a new key: from when on it signs.'),
        },
        ['name'],
      ),
      'The new keys, then those that are accepted no more.',
    ),
  },
  ['outcome', 'made', 'removed', 'place', 'secret', 'keys'],
)

const IN_MEMORY =
  'The families of refresh tokens are in the memory of the service. It ends them when it reads the new secret.'

function familiesText({ families, trouble }: AnsweredRotation): string {
  if (families !== undefined)
    return `${countOfFamilies(families)} will end: ${families === 1 ? 'its user' : 'their users'} must log in again.`
  return trouble === undefined
    ? IN_MEMORY
    : 'The families of refresh tokens could not be counted, and may not end: the store cannot be read.'
}

const keysNamed = ({ keys }: AnsweredRotation, wanted: readonly string[]): AnsweredRotation['keys'] =>
  keys.filter(({ name }) => wanted.includes(name))

const madeText = (rotation: AnsweredRotation): string =>
  keysNamed(rotation, rotation.made)
    .map((key) => `${titleOf(key)}: made and published; signs from ${shortTime(key.signsFrom ?? '')}\n`)
    .join('')

const replacedText = (rotation: AnsweredRotation): string =>
  [
    rotation.families === undefined ? '' : `${countOfFamilies(rotation.families)} ended\n`,
    `${rotation.secret}: replaced\n`,
    madeText(rotation),
    ...keysNamed(rotation, rotation.removed).map(
      (key) =>
        `${titleOf(key)}: removed; tokens that it signed are refused, by other nodes within a second\n`,
    ),
  ].join('')

/** A rotation for programs. */
function rotationRow(rotation: AnsweredRotation, compromised: boolean): unknown {
  const made = keysNamed(rotation, rotation.made).map(({ name, file, signsFrom }) => ({
    ...(file === undefined ? { name } : { file }),
    signsFrom: epochOf(signsFrom),
  }))
  if (!compromised) return { made }
  const { families } = rotation
  return { families, made, removed: keysNamed(rotation, rotation.removed).map(titleOf) }
}

const ROTATE: AdminOperation = {
  runs: 'service or here',
  method: 'POST',
  path: '/keys/rotate',
  operationId: 'rotateKeys',
  needs: 'administer',
  summary:
    'Make the next keys, which are published before they sign; or replace them all at once, if somebody may have read them',
  body: members({
    compromised: flagSchema(
      'Replace the keys and the secret of refresh tokens now: every token issued so far is refused, and every family of refresh tokens ends.',
    ),
    preview: flagSchema('Tell what would be done; change nothing.'),
    ...WHO,
  }),
  bodyOptional: true,
  answers: {
    200: [
      'Done. Every process of this node follows it, those of other nodes do within a second',
      rotationSchema,
    ],
    409: ['A sidecar has no keys', problemsSchema],
  },
  handle: (context, { body, operator }) =>
    withKeys(context, async (work) => {
      const { rotateKeys } = await import('../operation/key-work.ts')
      const { audit, recorder } = context
      const canRecord = (): Promise<void> => context.canRecord?.() ?? Promise.resolve()
      const options = { compromised: body['compromised'] === true, preview: body['preview'] === true }
      const follow = (): Promise<void> => context.pool?.followKeys() ?? Promise.resolve()
      const recorded = { ...work, audit, recorder, canRecord, follow }
      return ok(answeredRotation(work, await rotateKeys(recorded, options, operator)))
    }),
  commands: [
    commandLine({
      words: ['keys rotate'],
      summary: 'Make the next keys. They are published before they sign',
      arguments: [],
      options: {
        compromised: {
          type: 'boolean',
          help: 'If somebody may have read the keys: replace them and the secret of refresh tokens now. All tokens issued so far are refused, and all refresh tokens end. It says how many, and asks',
        },
        yes: { type: 'boolean', help: 'With --compromised: do not ask; for scripts' },
      },
      examples: [
        { line: 'postern keys rotate', does: 'make the next keys before their time' },
        {
          line: "postern keys rotate --compromised --reason 'stolen laptop'",
          does: 'replace keys that were stolen',
        },
      ],
      json: (rotation: AnsweredRotation, { values }) => rotationRow(rotation, values.compromised === true),
      refused,
      run: async ({ send, show, values, terminal }) => {
        if (values.compromised !== true) {
          const rotated = await send<AnsweredRotation>(ROTATE)
          if (rotated.trouble !== undefined) terminal.stderr.write(`postern: ${rotated.trouble}\n`)
          show(rotated, madeText)
          return rotated.trouble === undefined ? EXIT.done : EXIT.failed
        }
        const planned = await send<AnsweredRotation>(ROTATE, { body: { compromised: true, preview: true } })
        const prompt = values.json === true ? terminal.stderr : terminal.stdout
        prompt.write(
          `Every access token and id_token issued so far will be refused. ${familiesText(planned)}\n` +
            `Continue only if somebody may have read ${planned.place}. Otherwise use \`keys rotate\`.\n`,
        )
        if (!(await confirm(values.yes === true, terminal))) {
          prompt.write('nothing was changed\n')
          return EXIT.refused
        }
        const replaced = await send<AnsweredRotation>(ROTATE, { body: { compromised: true } })
        const { trouble, families } = replaced
        if (trouble !== undefined)
          terminal.stderr.write(
            families === undefined
              ? `postern: the families of refresh tokens could not be ended (${trouble}); ` +
                  'the keys were replaced anyway. Run this command again when the store can be read.\n'
              : `postern: the keys were replaced, but ${trouble}\n`,
          )
        show(replaced, replacedText)
        return trouble === undefined ? EXIT.done : EXIT.failed
      },
    }),
  ],
}

export const KEY_OPERATIONS: readonly AdminOperation[] = [LIST, ROTATE]
