/** The export of a person's data (C11.5.8). */
import { Readable } from 'node:stream'
import { type AuditedChange, recordGiving } from '../../base/contracts/records/audited-change.ts'
import type { RecordKind } from '../../identity/directory/editors/record-kind.ts'
import type { ServiceContext } from '../operation/context.ts'
import {
  type AdminOperation,
  type AdminRequest,
  commandLine,
  type CommandSession,
  members,
  problemsSchema,
  textSchema,
  textsSchema,
  WHO,
} from '../operation/operation.ts'
import { hasRight } from '../operation/operators.ts'
import { type Options, UsageError } from '../operation/verb.ts'
import { type Person, PLACES, requirePerson } from './personal-places.ts'

export const subjectPath = (act: string): string => `/subjects/:subject/${act}`

export const SUBJECT_PARAM = { subject: textSchema('The `sub` of the person.') }

export const personOf = async (
  service: ServiceContext,
  { operator, params }: Pick<AdminRequest, 'operator' | 'params'>,
): Promise<Person> => ({
  service,
  operator,
  subject: params['subject'] ?? '',
  editors: await service.editors(),
})

const isList = (value: unknown): value is AsyncIterable<string> =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value

/** Text after text, so that the records of many years are not held at once. */
async function* textOf(parts: ReadonlyMap<string, unknown>): AsyncGenerator<string> {
  let before = '{'
  for (const [name, value] of parts) {
    yield `${before}${JSON.stringify(name)}:`
    if (isList(value)) yield* listText(value)
    else yield JSON.stringify(value)
    before = ','
  }
  yield '}\n'
}

async function* listText(items: AsyncIterable<string>): AsyncGenerator<string> {
  let before = '['
  for await (const item of items) {
    yield `${before}${item}`
    before = ','
  }
  yield before === '[' ? '[]' : ']'
}

async function readPerson(
  person: Person,
  { authenticated }: Pick<AdminRequest, 'authenticated'>,
): Promise<ReadonlyMap<string, unknown>> {
  const parts = new Map<string, unknown>([['subject', person.subject]])
  const leftOut: string[] = []
  for (const { name, needs, read, unreadable } of PLACES) {
    if (read === undefined) continue
    const why =
      unreadable?.(person.service) ??
      (needs === undefined || hasRight(authenticated.role, needs)
        ? undefined
        : `it needs the right \`${needs}\``)
    if (why !== undefined) leftOut.push(`${name}: ${why}`)
    else {
      const value = await read(person)
      if (value !== undefined) parts.set(name, value)
    }
  }
  // In front of what may be long.
  return new Map([...(leftOut.length > 0 ? [['leftOut', leftOut] as const] : []), ...parts])
}

const list = (description: string) => ({
  type: 'array' as const,
  items: { type: 'object' as const },
  description,
})

const EXPORT_SUBJECT: AdminOperation = {
  method: 'GET',
  path: subjectPath('export'),
  operationId: 'exportSubject',
  needs: 'administer',
  namesPeople: true,
  summary: 'All data of a person, as JSON: for who asks what is kept about them',
  params: SUBJECT_PARAM,
  query: WHO,
  answers: {
    200: [
      'The data; no hash is in it',
      members(
        {
          leftOut: textsSchema('What is not in it, and why. Absent: nothing is left out.'),
          subject: textSchema('The `sub`.'),
          user: {
            type: 'object',
            description:
              'The record of the directory, without the password. `source`: `configuration`, `store`, or `module` for one whom code of the operator’s finds. Absent: the directory does not have them any more.',
          },
          sessions: list('Logins in browsers, with the network address of the last use.'),
          families: list('Families of refresh tokens: for which client and business, with which scopes.'),
          consents: list('What the person has allowed applications.'),
          networks: textsSchema(
            'When they signed in from each of the networks that are remembered. The networks themselves are not stored.',
          ),
          records: list(
            'The records of the audit trail of this node about them, or of what they did. Needs the right `audit` too.',
          ),
        },
        ['subject', 'sessions', 'families', 'consents', 'networks'],
      ),
    ],
    404: ['Nobody of this subject is, or was, known', problemsSchema],
    409: ['It is a machine, or this is a sidecar, which has no directory', problemsSchema],
  },
  handle: async (service, request) => {
    const person = await personOf(service, request)
    await requirePerson(person)
    const { audit, recorder } = service
    const { subject, operator } = person
    const change: AuditedChange = { event: 'user.exported', on: { kind: 'user', subject } }
    const parts = await recordGiving(audit, operator, change, () => readPerson(person, request))
    recorder.note('info', 'person_exported', { ...operator })
    return { status: 200, type: 'application/json; charset=utf-8', body: Readable.from(textOf(parts)) }
  },
}

export const SUBJECT_OPTION = {
  subject: { type: 'string', value: 'SUBJECT', help: 'The `sub` of the person, in place of the name' },
} as const satisfies Options

/** The subject that is typed, or that the user of the name has. */
export async function typedSubject(
  show: AdminOperation,
  {
    positionals,
    send,
    values,
  }: Pick<CommandSession<typeof SUBJECT_OPTION>, 'positionals' | 'send' | 'values'>,
): Promise<string> {
  const [username] = positionals
  if ((username === undefined) === (values.subject === undefined))
    throw new UsageError('expected a USERNAME or --subject SUBJECT')
  if (values.subject !== undefined) return values.subject
  const { subject } = await send<{ readonly subject?: string }>(show, {
    params: { username: username ?? '' },
  })
  if (subject === undefined) throw new UsageError(`user "${username ?? ''}" has no subject yet`)
  return subject
}

/** @param show the operation that shows one user */
export const exportPerson = (kind: RecordKind, show: AdminOperation): AdminOperation => ({
  ...EXPORT_SUBJECT,
  commands: [
    commandLine({
      words: ['user export'],
      summary: 'Print all data of a person as JSON',
      notes: [
        'Also of who is not in the directory any more: by --subject. The records of the audit trail are those of the node that answers.',
      ],
      arguments: [{ name: 'USERNAME', optional: true }],
      options: SUBJECT_OPTION,
      examples: [
        {
          line: `postern user export ${kind.texts.samples.name} > dora.json`,
          does: 'for a person who asks what is kept about them',
        },
      ],
      run: async (session) => {
        const subject = await typedSubject(show, session)
        const data = await session.send<object>(session.operation, { params: { subject } })
        session.show(data, (all) => `${JSON.stringify(all, null, 2)}\n`)
        return 0
      },
    }),
  ],
})
