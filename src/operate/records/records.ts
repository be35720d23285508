/**
 * Clients, users, businesses, funds and roles: added, shown, listed, changed, switched and removed. All operations and their
 * command lines are made from the literals of the kinds of records (C11.5.1).
 */
import { onlyLessens } from '../../base/config/lessens.ts'
import { Problems } from '../../base/config/problems.ts'
import { viewOf } from '../../base/config/schema.ts'
import { applyMergePatch } from '../../base/http/body/json.ts'
import {
  type ChangesOf,
  DirectoryRefusal,
  type PlannedChange,
  type PlannedStep,
  type Written,
} from '../../identity/directory/editors/editing.ts'
import type { Editors } from '../../identity/directory/editors/editors.ts'
import {
  addedFacts,
  changeFacts,
  shownForm,
  type ShownRecord,
  showRecord,
} from '../../identity/directory/editors/record-forms.ts'
import {
  keyOfNames,
  memberFactsOf,
  namesOf,
  type NounName,
  type RecordKind,
} from '../../identity/directory/editors/record-kind.ts'
import { planPassword } from '../../identity/directory/editors/user.ts'
import type { OperationContext } from '../operation/context.ts'
import {
  type AdminAnswer,
  type AdminOperation,
  made,
  members,
  ok,
  problemsSchema,
  type Schema,
  type SharedOperation,
  textSchema,
  WHO,
} from '../operation/operation.ts'
import { PAGE_QUERY, pageBody, pageOf, pageSchema } from '../operation/paging.ts'
import {
  INTENT,
  PREVIEW,
  rotateSecret,
  type SecretOptions,
  secretOptionsOf,
  withSecret,
} from './client-secrets.ts'
import {
  addLine,
  addUserLine,
  editLine,
  listLine,
  setPasswordLine,
  showLine,
  stateLine,
} from './record-lines.ts'
import { CONFIGURED, ENDED, endedRows, problemLine, MISSING, onOne, operation } from './record-operation.ts'
import {
  atOf,
  clearTexts,
  collectionOf,
  locationOf,
  meantOf,
  namesIn,
  paramsOf,
  patchSchema,
  recordPath,
  shownSchema,
  withinOf,
  writtenSchema,
} from './record-schemas.ts'
import { erasePerson } from './erase-person.ts'
import { exportPerson } from './export-person.ts'
import { linkUser } from './password-link.ts'
import { changeOf, doLatest, doRecorded, type MeantRecord, type RecordAt } from './recorded-step.ts'

const WARNINGS: Schema = {
  type: 'array',
  items: { type: 'string' },
  description: 'What the record makes useless or dangerous.',
}

/** `fund` → `Fund`, for operation ids. */
const capital = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`

async function findRecord(context: OperationContext, { kind, names }: RecordAt): Promise<ShownRecord> {
  const editors = await context.editors()
  return showRecord(kind, await editors[kind.noun].show(keyOfNames(names)))
}

/** The same change, without any effect. */
const asItWas = (change: PlannedChange): PlannedChange => ({ ...change, commit: () => Promise.resolve([]) })

/** The subject of a user. */
const subjectOf = ({ written }: Pick<PlannedStep<unknown>, 'written'>): unknown => written.before['subject']

/** @throws DirectoryRefusal if members with hashes are written, but for those of `allowed` */
function refuseHidden(kind: RecordKind, written: Written, allowed: readonly string[]): void {
  const problems = new Problems()
  for (const [member, { hidden }] of Object.entries(memberFactsOf(kind)))
    if (hidden !== undefined && Object.hasOwn(written, member) && !allowed.includes(member))
      problems.error([member], `cannot be written: ${hidden}`)
  if (problems.failed) throw new DirectoryRefusal(`The ${kind.noun} has problems.`, problems)
}

const readingOf = ({ isPersonal }: RecordKind) => (isPersonal === true ? 'administer' : 'inspect')

const listOf = (kind: RecordKind): SharedOperation => {
  const { plural } = kind
  const within = withinOf(kind)
  return operation(
    {
      method: 'GET',
      path: collectionOf(kind),
      operationId: `list${capital(plural)}`,
      needs: readingOf(kind),
      summary: `The ${plural} of the configuration and of the store, page by page`,
      ...(within.length > 0 && { params: paramsOf(within) }),
      query: PAGE_QUERY,
      answers: { 200: ['A page', pageSchema(plural, shownSchema(kind))], 404: MISSING },
      commands: [listLine(kind)],
    },
    async (context, request) => {
      const editors = await context.editors()
      const names = namesIn(within, request)
      // Refuses a list of the funds of a business that does not exist.
      if (names.length > 0) await editors.business.show(keyOfNames(names))
      const below = names.map((name) => `${name}/`).join('')
      const { after, limit, prefix = '' } = pageOf(request.query)
      const { items, next } = await editors[kind.noun].list({
        limit,
        prefix: `${below}${prefix}`,
        after: after === undefined ? undefined : `${below}${after}`,
      })
      const rows = items.map((found) => shownForm(kind, found))
      return ok(pageBody(plural, { rows, next: next?.slice(below.length) }))
    },
  )
}

const addTo = (kind: RecordKind): SharedOperation => {
  const { noun } = kind
  const within = withinOf(kind)
  const hasSecrets = kind.secrets !== undefined
  const body = writtenSchema(kind, within)
  const answer = members({
    record: shownSchema(kind),
    ...(hasSecrets && {
      secret: textSchema('The secret of the client: it is shown only now.'),
      intent: INTENT,
    }),
    warnings: WARNINGS,
  })
  return operation(
    {
      method: 'POST',
      path: collectionOf(kind),
      operationId: `add${capital(noun)}`,
      summary: `Add a ${noun} to the store`,
      ...(within.length > 0 && { params: paramsOf(within) }),
      query: { ...WHO, ...(hasSecrets && PREVIEW) },
      body: hasSecrets ? withSecret(body) : body,
      checksBody: true,
      answers: {
        ...(hasSecrets && { 200: ['What would be added', answer] as const }),
        201: ['Added; in force everywhere within a second', answer, ['ETag', 'Location']],
        404: MISSING,
        409: ['The name is taken', problemsSchema],
      },
      commands: [kind.clearText === undefined ? addLine(kind) : addUserLine(kind, linkUser(kind))],
    },
    async (context, request) => {
      const { operator, params } = request
      const options = hasSecrets ? await secretOptionsOf(context, request) : { given: request.body }
      const { given, preview, secret: brought, intent }: SecretOptions = options
      const named = { ...given, ...params }
      refuseHidden(kind, named, Object.keys(kind.clearText ?? {}))
      const editors = await context.editors()
      const planned = await editors[noun].planAdd(named, brought)
      const { unshown, written } = planned
      const at = { kind, names: namesOf(kind, written) }
      const change = { ...changeOf(at, 'added', written['subject']), change: addedFacts(kind, written) }
      const warnings = planned.warnings.map(problemLine)
      if (preview !== undefined) {
        const isRecorded = preview === 'recorded' && unshown !== undefined
        const begun = isRecorded ? await context.intents.begin(change, operator) : undefined
        const record = unshown === undefined ? written : shownForm(kind, unshown.client)
        return ok({ record, warnings, intent: begun })
      }
      const commit = () => planned.commit()
      const secret = await doRecorded(context, operator, change, commit, { gives: true, intent })
      const { record, tag } = await findRecord(context, at)
      const body = { record, ...(secret !== undefined && { secret }), warnings }
      return made(body, locationOf(kind, at.names), tag)
    },
  )
}

const show = (kind: RecordKind): SharedOperation =>
  operation(
    {
      method: 'GET',
      path: recordPath(kind),
      operationId: `show${capital(kind.noun)}`,
      needs: readingOf(kind),
      summary: `One ${kind.noun}`,
      params: paramsOf(kind.names),
      answers: { 200: ['The record', shownSchema(kind), ['ETag']], 404: MISSING },
      commands: [showLine(kind)],
    },
    async (context, request) => {
      const { record, tag } = await findRecord(context, atOf(kind, request))
      return { ...ok(record), tag }
    },
  )

/** The members that a merge patch changes. @throws DirectoryRefusal if it names one with a hash */
const patchChanges =
  (kind: RecordKind, patch: Written): ChangesOf =>
  (before) => {
    refuseHidden(kind, patch, [])
    const changed = Object.entries(patch).map(([member, value]) => [
      member,
      value === null ? undefined : applyMergePatch(before[member], value),
    ])
    return Object.fromEntries(changed) as Written
  }

const edit = (kind: RecordKind): SharedOperation =>
  operation(
    {
      method: 'PATCH',
      path: recordPath(kind),
      operationId: `edit${capital(kind.noun)}`,
      ...onOne(kind),
      summary: `Change what is given of a ${kind.noun} in the store; what was issued beyond what is left ends`,
      body: patchSchema(kind),
      checksBody: true,
      answers: {
        200: [
          'Changed, in force everywhere',
          members({
            record: shownSchema(kind),
            changed: {
              type: 'array',
              items: { type: 'string' },
              description: 'The members that have changed.',
            },
            ended: ENDED,
            warnings: WARNINGS,
          }),
          ['ETag'],
        ],
        404: MISSING,
        409: CONFIGURED,
      },
      commands: [editLine(kind, show(kind))],
    },
    async (context, request) => {
      const meant = meantOf(kind, request)
      const editors = await context.editors()
      const { planned, result } = await doLatest(context, meant, {
        plan: async () => {
          const changes = patchChanges(kind, request.body)
          const change = await editors[kind.noun].plan(keyOfNames(meant.at.names), changes)
          return change.keys.length === 0 ? asItWas(change) : change
        },
        change: (planned) =>
          planned.keys.length === 0
            ? undefined
            : { ...changeOf(meant.at, 'changed', subjectOf(planned)), change: changeFacts(kind, planned) },
        gives: ({ records }) => !onlyLessens(viewOf(kind.schema), records.before, records.after),
      })
      const { record, tag } = await findRecord(context, meant.at)
      const { keys: changed, warnings } = planned
      return {
        ...ok({ record, changed, ended: endedRows(result), warnings: warnings.map(problemLine) }),
        tag,
      }
    },
  )

const remove = (kind: RecordKind): SharedOperation =>
  operation(
    {
      method: 'DELETE',
      path: recordPath(kind),
      operationId: `remove${capital(kind.noun)}`,
      ...onOne(kind),
      summary: `Remove a ${kind.noun} from the store, and end what it holds, consents too`,
      answers: {
        200: ['Removed, everywhere', members({ removed: textSchema('Its key.') }, ['removed'])],
        404: MISSING,
        409: CONFIGURED,
      },
      commands: [stateLine(kind, 'remove')],
    },
    async (context, request) => {
      const meant = meantOf(kind, request)
      const key = keyOfNames(meant.at.names)
      const editors = await context.editors()
      await doLatest(context, meant, {
        plan: () => editors[kind.noun].planRemoval(key),
        gives: () => false,
        change: (planned) => changeOf(meant.at, 'removed', subjectOf(planned)),
      })
      return ok({ removed: key })
    },
  )

/** A change by an act of its own. */
async function switchRecord(
  context: OperationContext,
  meant: MeantRecord,
  done: 'disabled' | 'enabled' | 'password_set',
  plan: (editors: Editors, key: string) => Promise<PlannedChange>,
): Promise<AdminAnswer> {
  const { at } = meant
  const editors = await context.editors()
  const { planned, result } = await doLatest(context, meant, {
    plan: () => plan(editors, keyOfNames(at.names)),
    gives: () => done !== 'disabled',
    change: (planned) => ({
      ...changeOf(at, done, subjectOf(planned)),
      ...(planned.mark && { change: { mark: planned.mark } }),
    }),
  })
  const { shown } = planned
  const { record, tag } = shown ? showRecord(at.kind, shown) : await findRecord(context, at)
  return { ...ok({ record, ended: endedRows(result) }), tag }
}

const switchedSchema = (kind: RecordKind): Schema => members({ record: shownSchema(kind), ended: ENDED })

const SWITCHES = {
  disable: { does: 'Refuse all that it is used for, and end what it holds', done: 'disabled' },
  enable: { does: 'Let it be used again; what has ended stays so', done: 'enabled' },
} as const

const switchTo = (kind: RecordKind, verb: keyof typeof SWITCHES): SharedOperation =>
  operation(
    {
      method: 'POST',
      path: `${recordPath(kind)}/${verb}`,
      operationId: `${verb}${capital(kind.noun)}`,
      ...onOne(kind),
      summary: `${SWITCHES[verb].does}: a ${kind.noun} of the store${kind.marking ? `, and by a mark one of the configuration` : ''}`,
      answers: {
        200: ['Done, in force everywhere', switchedSchema(kind), ['ETag']],
        404: MISSING,
        409: CONFIGURED,
      },
      commands: [stateLine(kind, verb)],
    },
    (context, request) =>
      switchRecord(context, meantOf(kind, request), SWITCHES[verb].done, (editors, key) =>
        editors[kind.noun].planSwitch(key, verb === 'disable'),
      ),
  )

const setPassword = (user: RecordKind): SharedOperation =>
  operation(
    {
      method: 'PUT',
      path: `${recordPath(user)}/password`,
      operationId: 'setPassword',
      ...onOne(user),
      summary: 'Set another password of a user in the store, who must log in again everywhere',
      body: members(clearTexts(user), ['password']),
      checksBody: true,
      answers: { 200: ['Set', switchedSchema(user), ['ETag']], 404: MISSING, 409: CONFIGURED },
      commands: [setPasswordLine(user)],
    },
    (context, request) =>
      switchRecord(context, meantOf(user, request), 'password_set', (editors, username) =>
        planPassword(editors.user, username, request.body['password']),
      ),
  )

const operationsOf = (kind: RecordKind): readonly SharedOperation[] => [
  listOf(kind),
  addTo(kind),
  show(kind),
  edit(kind),
  remove(kind),
  switchTo(kind, 'disable'),
  switchTo(kind, 'enable'),
]

/** The acts that only some records have. */
const OWN: Readonly<Partial<Record<NounName, readonly ((kind: RecordKind) => AdminOperation)[]>>> = {
  client: [rotateSecret],
  user: [
    setPassword,
    linkUser,
    (kind) => exportPerson(kind, show(kind)),
    (kind) => erasePerson(kind, show(kind)),
  ],
}

const ownOf = (kind: RecordKind): readonly AdminOperation[] =>
  (OWN[kind.noun] ?? []).map((make) => make(kind))

/** The operations on the records of these kinds. */
export const recordOperations = (kinds: readonly RecordKind[]): readonly AdminOperation[] => [
  ...kinds.flatMap(operationsOf),
  ...kinds.flatMap(ownOf),
]
