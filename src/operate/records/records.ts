/**
 * Clients, users, businesses, funds and roles: added, shown, listed, changed, switched and removed. All operations and their
 * command lines are made from one table of nouns (C11.5.1).
 */
import { pathText, type Problem } from '../../base/config/problems.ts'
import { type ChangesOf, DirectoryRefusal, type EndedLoss } from '../../identity/directory/editors/editing.ts'
import { isMarkable } from '../../identity/directory/records/marks.ts'
import { NOUN_NAMES, type NounName, NOUNS, type Written } from '../../identity/directory/editors/nouns.ts'
import { applyMergePatch } from '../../base/http/body/json.ts'
import { DURATION_PATTERN, parseDuration } from '../../base/kernel/units.ts'
import type { Configuration } from '../settings/configuration.ts'
import { overtaken } from '../operation/conditions.ts'
import type { OperationContext } from '../operation/context.ts'
import {
  type AdminAnswer,
  type AdminRequest,
  made,
  members,
  notFound,
  ok,
  type AdminOperation,
  problemsSchema,
  conflict,
  reject,
  type Schema,
  type SharedOperation,
  textSchema,
  WHO,
} from '../operation/operation.ts'
import type { Right } from '../operation/operators.ts'
import { PAGE_QUERY, pageBody, pageOf, pageSchema } from '../operation/paging.ts'
import {
  addRecord,
  disableRecord,
  editRecord,
  enableRecord,
  findRecord,
  listRecords,
  OvertakenError,
  removeRecord,
  rotateSecret,
  setPassword,
} from './record-changes.ts'
import {
  addLine,
  editLine,
  listLine,
  ROTATE_SECRET_LINE,
  SET_PASSWORD_LINE,
  showLine,
  stateLine,
} from './record-lines.ts'
import { INTENT, PREVIEW, GIVEN_SECRET, secretOptionsOf, withSecret } from './record-secrets.ts'
import {
  atOf,
  collectionOf,
  locationOf,
  meantOf,
  namesIn,
  paramsOf,
  PASSWORD,
  patchSchema,
  recordPath,
  shownSchema,
  withinOf,
  writtenSchema,
} from './record-schemas.ts'

const lineOf = ({ path, message, hint }: Problem): string =>
  `${pathText(path)}  ${message}${hint === undefined ? '' : ` — ${hint}`}`

/** 400 with every problem by its member, 404 or 409. */
function refusalOf({ kind, message, problems }: DirectoryRefusal): AdminAnswer {
  if (kind === 'problems') return reject((problems?.list ?? []).map(lineOf))
  return kind === 'missing' ? notFound(message, []) : conflict(message, [])
}

const WARNINGS: Schema = {
  type: 'array',
  items: { type: 'string' },
  description: 'What the record makes useless or dangerous.',
}

const ENDED: Schema = {
  type: 'array',
  items: { type: 'object' },
  description: 'What has ended: whose it was, and how many sessions, families, codes and consents.',
}

const endedRows = (ended: readonly EndedLoss[]): readonly object[] =>
  ended.map(({ loss, ended: counts }) => ({ ...loss.tokens, ...counts }))

/** Users are personal data: an operator who may only inspect sees none of them. */
const READING: Readonly<Record<NounName, Right>> = {
  client: 'inspect',
  user: 'administer',
  business: 'inspect',
  fund: 'inspect',
  role: 'inspect',
}

/** `fund` → `Fund`, for operation ids. */
const capital = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`

type Work = (context: OperationContext, request: AdminRequest) => Promise<AdminAnswer>

const onRecords =
  (work: Work): SharedOperation['handle'] =>
  async (context, request) => {
    try {
      return await work(context, request)
    } catch (thrown) {
      if (thrown instanceof OvertakenError) return overtaken(thrown.tag)
      if (thrown instanceof DirectoryRefusal) return refusalOf(thrown)
      throw thrown
    }
  }

/** Why a configuration has no directory that can be changed. */
const unfit = (configuration: Configuration, here: boolean): string | undefined => {
  if (configuration.issuers.length > 0) return 'a sidecar has no directory'
  return here && configuration.store.kind === 'memory'
    ? 'the store is of kind memory, which only the service itself can change: use its admin API, or sqlite'
    : undefined
}

const SHARED = { runs: 'service or here', unfit } as const

const MISSING = ['There is no such record', problemsSchema] as const
const CONFIGURED = [
  'It stands in the configuration, which is changed only there; or others change it all the time',
  problemsSchema,
] as const

function listRoute(noun: NounName): SharedOperation {
  const { plural } = NOUNS[noun]
  const within = withinOf(noun)
  return {
    method: 'GET',
    path: collectionOf(noun),
    operationId: `list${capital(plural)}`,
    needs: READING[noun],
    summary: `The ${plural} of the configuration and of the store, page by page`,
    ...(within.length > 0 && { params: paramsOf(within) }),
    query: PAGE_QUERY,
    answers: { 200: ['A page', pageSchema(plural, shownSchema(noun))], 404: MISSING },
    handle: onRecords(async (context, request) => {
      const page = pageOf(request.query)
      const { items, next } = await listRecords(context, noun, namesIn(within, request), page)
      return ok(pageBody(plural, { rows: items, next }))
    }),
    ...SHARED,
    commands: [listLine(noun)],
  }
}

function addRoute(noun: NounName): SharedOperation {
  const within = withinOf(noun)
  const { names } = NOUNS[noun]
  const answer = members({
    record: shownSchema(noun),
    ...(noun === 'client' && {
      secret: textSchema('The secret of the client: it is shown only now.'),
      intent: INTENT,
    }),
    warnings: WARNINGS,
  })
  return {
    method: 'POST',
    path: collectionOf(noun),
    operationId: `add${capital(noun)}`,
    needs: 'administer',
    summary: `Add a ${noun} to the store`,
    ...(within.length > 0 && { params: paramsOf(within) }),
    query: { ...WHO, ...(noun === 'client' && PREVIEW) },
    body: noun === 'client' ? withSecret(writtenSchema(noun, within)) : writtenSchema(noun, within),
    checksBody: true,
    answers: {
      ...(noun === 'client' && { 200: ['What would be added', answer] as const }),
      201: ['Added; in force everywhere within a second', answer, ['ETag', 'Location']],
      404: MISSING,
      409: ['The name is taken', problemsSchema],
    },
    handle: onRecords(async (context, request) => {
      const { given, isPreview, ...options } =
        noun === 'client'
          ? await secretOptionsOf(context, request)
          : { given: request.body, isPreview: false }
      const written: Written = { ...given, ...request.params }
      const added = await addRecord(context, request.operator, noun, written, options)
      const { record, tag, secret: stored, warnings, intent } = added
      if (isPreview) return ok({ record, warnings: warnings.map(lineOf), intent })
      const body = { record, ...(stored !== undefined && { secret: stored }), warnings: warnings.map(lineOf) }
      const path = locationOf(
        noun,
        names.map((name) => String(record[name])),
      )
      return made(body, path, tag)
    }),
    ...SHARED,
    commands: [addLine(noun)],
  }
}

const common = (noun: NounName) => ({ params: paramsOf(NOUNS[noun].names), query: WHO })

const showRoute = (noun: NounName): SharedOperation => ({
  method: 'GET',
  path: recordPath(noun),
  operationId: `show${capital(noun)}`,
  needs: READING[noun],
  summary: `One ${noun}`,
  params: paramsOf(NOUNS[noun].names),
  answers: { 200: ['The record', shownSchema(noun), ['ETag']], 404: MISSING },
  handle: onRecords(async (context, request) => {
    const { record, tag } = await findRecord(context, atOf(noun, request))
    return { ...ok(record), tag }
  }),
  ...SHARED,
  commands: [showLine(noun)],
})

/** The members that a merge patch changes. */
const patchChanges =
  (patch: Written): ChangesOf =>
  (before) =>
    Object.fromEntries(
      Object.entries(patch).map(([member, value]) => [
        member,
        value === null ? undefined : applyMergePatch(before[member], value),
      ]),
    )

const editRoute = (noun: NounName): SharedOperation => ({
  method: 'PATCH',
  path: recordPath(noun),
  operationId: `edit${capital(noun)}`,
  needs: 'administer',
  ...common(noun),
  summary: `Change what is given of a ${noun} in the store; what was issued beyond what is left ends`,
  body: patchSchema(noun),
  checksBody: true,
  conditional: true,
  answers: {
    200: [
      'Changed, in force everywhere',
      members({
        record: shownSchema(noun),
        changed: { type: 'array', items: { type: 'string' }, description: 'The members that have changed.' },
        ended: ENDED,
        warnings: WARNINGS,
      }),
      ['ETag'],
    ],
    404: MISSING,
    409: CONFIGURED,
  },
  handle: onRecords(async (context, request) => {
    const edited = await editRecord(context, meantOf(noun, request), patchChanges(request.body))
    const { record, tag, changed, ended, warnings } = edited
    return { ...ok({ record, changed, ended: endedRows(ended), warnings: warnings.map(lineOf) }), tag }
  }),
  ...SHARED,
  commands: [editLine(noun, showRoute(noun))],
})

const removeRoute = (noun: NounName): SharedOperation => ({
  method: 'DELETE',
  path: recordPath(noun),
  operationId: `remove${capital(noun)}`,
  needs: 'administer',
  ...common(noun),
  summary: `Remove a ${noun} from the store, and end what it holds, consents too`,
  conditional: true,
  answers: {
    200: ['Removed, everywhere', members({ removed: textSchema('Its key.') }, ['removed'])],
    404: MISSING,
    409: CONFIGURED,
  },
  handle: onRecords(async (context, request) => {
    const meant = meantOf(noun, request)
    await removeRecord(context, meant)
    return ok({ removed: meant.at.names.join('/') })
  }),
  ...SHARED,
  commands: [stateLine(noun, 'remove')],
})

const switchedSchema = (noun: NounName): Schema => members({ record: shownSchema(noun), ended: ENDED })

const SWITCHES = {
  disable: { does: 'Refuse all that it is used for, and end what it holds', work: disableRecord },
  enable: { does: 'Let it be used again; what has ended stays so', work: enableRecord },
} as const

const switchRoute = (noun: NounName, verb: keyof typeof SWITCHES): SharedOperation => ({
  method: 'POST',
  path: `${recordPath(noun)}/${verb}`,
  operationId: `${verb}${capital(noun)}`,
  needs: 'administer',
  ...common(noun),
  summary: `${SWITCHES[verb].does}: a ${noun} of the store${isMarkable(noun) ? `, and by a mark one of the configuration` : ''}`,
  conditional: true,
  answers: {
    200: ['Done, in force everywhere', switchedSchema(noun), ['ETag']],
    404: MISSING,
    409: CONFIGURED,
  },
  handle: onRecords(async (context, request) => {
    const { record, tag, ended } = await SWITCHES[verb].work(context, meantOf(noun, request))
    return { ...ok({ record, ended: endedRows(ended) }), tag }
  }),
  ...SHARED,
  commands: [stateLine(noun, verb)],
})

/** How long an old secret stays valid by default. */
const OVERLAP = '1d'

const ROTATE_SECRET: SharedOperation = {
  method: 'POST',
  path: '/clients/:id/secrets',
  operationId: 'rotateSecret',
  needs: 'administer',
  params: paramsOf(NOUNS['client'].names),
  query: { ...WHO, ...PREVIEW },
  summary: 'Make another secret of a client in the store; the old one stays valid for a time',
  body: members({
    overlap: textSchema(
      `How long the old secret stays valid, such as \`12h\`; \`0s\`: not at all. Default: ${OVERLAP}.`,
      {
        pattern: DURATION_PATTERN,
      },
    ),
    secret: GIVEN_SECRET,
  }),
  bodyOptional: true,
  conditional: true,
  answers: {
    200: [
      'Made, valid everywhere; of a preview, what would be, without a secret',
      members({ record: shownSchema('client'), secret: textSchema('It is shown only now.'), intent: INTENT }),
      ['ETag'],
    ],
    404: MISSING,
    409: ['It is public, stands in the configuration, or has two secrets', problemsSchema],
  },
  handle: onRecords(async (context, request) => {
    const { overlap: given } = request.body
    const overlap = parseDuration(typeof given === 'string' ? given : OVERLAP)
    const { isPreview, ...options } = await secretOptionsOf(context, request)
    const { record, tag, secret, intent } = await rotateSecret(
      context,
      meantOf('client', request),
      overlap,
      options,
    )
    return isPreview ? ok({ record, intent }) : { ...ok({ record, secret }), tag }
  }),
  ...SHARED,
  commands: [ROTATE_SECRET_LINE],
}

const SET_PASSWORD: SharedOperation = {
  method: 'PUT',
  path: '/users/:username/password',
  operationId: 'setPassword',
  needs: 'administer',
  ...common('user'),
  summary: 'Set another password of a user in the store, who must log in again everywhere',
  body: members({ password: PASSWORD }, ['password']),
  checksBody: true,
  conditional: true,
  answers: { 200: ['Set', switchedSchema('user'), ['ETag']], 404: MISSING, 409: CONFIGURED },
  handle: onRecords(async (context, request) => {
    const { password } = request.body
    const { record, tag, ended } = await setPassword(context, meantOf('user', request), password)
    return { ...ok({ record, ended: endedRows(ended) }), tag }
  }),
  ...SHARED,
  commands: [SET_PASSWORD_LINE],
}

const operationsOf = (noun: NounName): readonly SharedOperation[] => [
  listRoute(noun),
  addRoute(noun),
  showRoute(noun),
  editRoute(noun),
  removeRoute(noun),
  switchRoute(noun, 'disable'),
  switchRoute(noun, 'enable'),
]

const OF_NOUN = Object.fromEntries(NOUN_NAMES.map((noun) => [noun, operationsOf(noun)])) as Readonly<
  Record<NounName, readonly SharedOperation[]>
>

/** The operations on the records of a noun. */
export const recordOperations = (noun: NounName): readonly AdminOperation[] => [
  ...OF_NOUN[noun],
  ...(noun === 'client' ? [ROTATE_SECRET] : noun === 'user' ? [SET_PASSWORD] : []),
]

export const RECORD_OPERATIONS: readonly AdminOperation[] = [
  ...NOUN_NAMES.flatMap((noun) => OF_NOUN[noun]),
  ROTATE_SECRET,
  SET_PASSWORD,
]
