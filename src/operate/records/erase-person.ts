/** The erasure of a person's data (C11.5.8). */
import { setTimeout as delay } from 'node:timers/promises'
import {
  type AuditedChange,
  plainFacts,
  recordGiving,
  recordTaking,
} from '../../base/contracts/records/audited-change.ts'
import type { ErasedEverywhere } from '../../base/contracts/records/audit-query.ts'
import type { Store } from '../../base/contracts/records/store.ts'
import type { RecordKind } from '../../identity/directory/editors/record-kind.ts'
import { closeSubject } from '../../identity/directory/records/stored-directory.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { AdminError } from '../operation/errors.ts'
import {
  type AdminOperation,
  commandLine,
  count,
  members,
  ok,
  problemsSchema,
  textsSchema,
  textSchema,
  WHO,
} from '../operation/operation.ts'
import { countOf } from '../operation/terminal.ts'
import { EXIT, UsageError } from '../operation/verb.ts'
import { personOf, SUBJECT_OPTION, SUBJECT_PARAM, typedSubject, subjectPath } from './export-person.ts'
import { type Person, PLACES, type Removed, requireErasable } from './personal-places.ts'

interface Erased {
  readonly subject: string
  /** By what they are. */
  readonly removed: Removed
  /** Personal values of the audit trail. */
  readonly values: number
  /** Notices to clients that still have to arrive. */
  readonly notices: number
  /** Nodes that still have to erase values of their trails. */
  readonly pending: readonly string[]
}

/** Rounds after which somebody writes faster than this removes. What was under way when access ended is over long before. */
const MOST_ROUNDS = 5

/** A call that was under way when access ended may still write a record: so all places are emptied again, until one round finds nothing. */
async function removeAll(person: Person): Promise<Removed> {
  const removed: Record<string, number> = {}
  for (let round = 0; round < MOST_ROUNDS; round++) {
    let found = 0
    for (const { erase } of PLACES)
      for (const [name, number] of Object.entries((await erase?.(person)) ?? {})) {
        removed[name] = (removed[name] ?? 0) + number
        found += number
      }
    if (found === 0) break
  }
  return removed
}

const NONE: ErasedEverywhere = { values: 0, files: 0, pending: [] }

function redact({ service: { audit, trailOwner }, operator, subject }: Person): Promise<ErasedEverywhere> {
  if (trailOwner === undefined) return Promise.resolve(NONE)
  const recorded: Parameters<typeof trailOwner.redact>[1] = (found, erase) => {
    const change: AuditedChange = { event: 'audit.redacted', on: { subject }, change: plainFacts(found) }
    return recordGiving(audit, operator, change, erase)
  }
  return trailOwner.redactEverywhere(subject, recorded, operator)
}

/** How often it is tried, and the time between two tries in milliseconds: each try waits as long itself. Ten seconds in all. */
const TRIES = 20
const PAUSE = 250

/** Nothing of what was removed stays in the store's own files. @throws AdminError 503 */
async function forget({ forget: once }: Pick<Store, 'forget'>): Promise<void> {
  if (once === undefined) return
  for (let tries = 0; tries < TRIES; tries++) {
    if (await once().catch(notRewritten)) return
    await delay(PAUSE)
  }
  throw new AdminError(
    503,
    'all is erased but for what the log of the store still has: another process reads it, such as a backup. Erase again when it has ended',
  )
}

function notRewritten(thrown: unknown): never {
  if (!(thrown instanceof Fault)) throw thrown
  throw new AdminError(
    503,
    'all is erased but for what the file of the store still has: it cannot be rewritten, such as on a disk without room for two more of it. Erase again when it can',
  )
}

async function erase(person: Person): Promise<Erased> {
  const { service, subject } = person
  await closeSubject(subject, service.store)
  const removed = await removeAll(person)
  const notices = await service.logouts.waiting(subject)
  const { pending, values } = await redact(person)
  await forget(service.store)
  return { subject, removed, values, notices, pending }
}

const ERASE_SUBJECT: AdminOperation = {
  method: 'POST',
  path: subjectPath('erase'),
  operationId: 'eraseSubject',
  needs: 'administer',
  summary:
    'Erase all data of a person, for good. What gives access ends first; asked again, it goes on where it was broken off',
  params: SUBJECT_PARAM,
  body: members({ ...WHO }, ['reason']),
  answers: {
    200: [
      'Erased; what is still to be done is named',
      members(
        {
          subject: textSchema('The `sub`: it is never given again.'),
          removed: {
            type: 'object',
            additionalProperties: { type: 'integer' },
            description: 'How many records were removed, by what they are: `user`, `sessions`, `families`, …',
          },
          values: count('Personal values that were erased in the audit trail of this node.'),
          notices: count(
            'Notices of the end of a login that clients still have to get: each goes when it has arrived, or was tried for too long.',
          ),
          pending: textsSchema(
            'The nodes that still have to erase values of their audit trails: each does it within 10 seconds, or when it runs again.',
          ),
        },
        ['subject', 'removed', 'values', 'notices', 'pending'],
      ),
    ],
    404: ['Nobody of this subject is, or was, known', problemsSchema],
    409: [
      'The configuration or a module has the person; or it is a machine; or this is a sidecar',
      problemsSchema,
    ],
  },
  handle: async (service, request) => {
    const person = await personOf(service, request)
    await requireErasable(person)
    const { audit, recorder } = service
    const { operator, subject } = person
    const change: AuditedChange = { event: 'user.erased', on: { kind: 'user', subject } }
    const erased = await recordTaking(
      audit,
      operator,
      change,
      () => erase(person),
      ({ removed, values }) => plainFacts({ removed, values }),
    )
    recorder.note('info', 'person_erased', { ...operator })
    return ok(erased)
  },
}

function erasedText({ notices, pending, removed, subject, values }: Erased): string {
  const parts = Object.entries(removed).flatMap(([name, number]) => (number > 0 ? [`${name} ${number}`] : []))
  const lines = [
    `${subject}: erased (${[...parts, `${countOf(values, 'value')} of the audit trail`].join(', ')})`,
    ...(notices > 0 ? [`${countOf(notices, 'notice')} to clients still to arrive`] : []),
    ...pending.map((node) => `still to be erased in the audit trail of ${node}: it does it when it runs`),
  ]
  return `${lines.join('\n')}\n`
}

/** @param show the operation that shows one user */
export const erasePerson = (kind: RecordKind, show: AdminOperation): AdminOperation => ({
  ...ERASE_SUBJECT,
  commands: [
    commandLine({
      words: ['user erase'],
      summary: 'Erase all data of a person, for good',
      notes: [
        'Where it was broken off, the same command with --subject goes on. The subject is never given again.',
      ],
      arguments: [{ name: 'USERNAME', optional: true }],
      options: SUBJECT_OPTION,
      examples: [
        {
          line: `postern user erase ${kind.texts.samples.name} --reason 'request 4711'`,
          does: 'erase what is kept about a person',
        },
      ],
      run: async (session) => {
        const { reason } = session.values
        if (!reason) throw new UsageError('expected --reason: it goes to the audit trail')
        const subject = await typedSubject(show, session)
        // After a crash the name may lead nowhere any more.
        session.terminal.stderr.write(`erasing the data of ${subject}\n`)
        const erased = await session.send<Erased>(session.operation, { params: { subject }, body: {} })
        session.show(erased, erasedText)
        return EXIT.done
      },
    }),
  ],
})
