/** The frame of all operations on records: whom they fit, how they are refused, and what their answers have in common. */
import { pathText, type Problem } from '../../base/config/problems.ts'
import { DirectoryRefusal, type EndedLoss } from '../../identity/directory/editors/editing.ts'
import type { RecordKind } from '../../identity/directory/editors/record-kind.ts'
import { overtaken } from '../operation/conditions.ts'
import type { OperationContext } from '../operation/context.ts'
import {
  type AdminAnswer,
  type AdminRequest,
  conflict,
  notFound,
  problemsSchema,
  reject,
  type Schema,
  type SharedOperation,
  WHO,
} from '../operation/operation.ts'
import type { Configuration } from '../settings/configuration.ts'
import { paramsOf } from './record-schemas.ts'
import { OvertakenError } from './recorded-step.ts'

export const problemLine = ({ path, message, hint }: Problem): string =>
  `${pathText(path)}  ${message}${hint === undefined ? '' : ` — ${hint}`}`

/** 400 with every problem by its member, 404 or 409. */
function refusalOf({ kind, message, problems }: DirectoryRefusal): AdminAnswer {
  if (kind === 'problems') return reject((problems?.list ?? []).map(problemLine))
  return kind === 'missing' ? notFound(message, []) : conflict(message, [])
}

export const ENDED: Schema = {
  type: 'array',
  items: { type: 'object' },
  description: 'What has ended: whose it was, and how many sessions, families, codes and consents.',
}

export const endedRows = (ended: readonly EndedLoss[]): readonly object[] =>
  ended.map(({ loss, ended: counts }) => ({ ...loss.tokens, ...counts }))

type Work = (context: OperationContext, request: AdminRequest) => Promise<AdminAnswer>

/** Why a configuration has no directory that can be changed. */
const unfit = (configuration: Configuration, here: boolean): string | undefined => {
  if (configuration.issuers.length > 0) return 'a sidecar has no directory'
  return here && configuration.store.kind === 'memory'
    ? 'the store is of kind memory, which only the service itself can change: use its admin API, or sqlite'
    : undefined
}

/** An operation on records: by default one that changes them. */
export const operation = (
  facts: Omit<SharedOperation, 'runs' | 'needs' | 'handle'> & Partial<Pick<SharedOperation, 'needs'>>,
  work: Work,
): SharedOperation => ({
  runs: 'service or here',
  unfit,
  needs: 'administer',
  ...facts,
  handle: async (context, request) => {
    try {
      return await work(context, request)
    } catch (thrown) {
      if (thrown instanceof OvertakenError) return overtaken(thrown.tag)
      if (thrown instanceof DirectoryRefusal) return refusalOf(thrown)
      throw thrown
    }
  },
})

/** The facts of a change of one record. */
export const onOne = ({ names }: RecordKind) =>
  ({ params: paramsOf(names), query: WHO, conditional: true }) as const

export const MISSING = ['There is no such record', problemsSchema] as const
export const CONFIGURED = [
  'It stands in the configuration, which is changed only there; or others change it all the time',
  problemsSchema,
] as const
