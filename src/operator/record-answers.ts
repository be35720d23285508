/** What the admin API answers about the directory's records: problems, warnings, what has ended. */
import { pathText, type Problem } from '../config/problems.ts'
import type { DirectoryRefusal, EndedLoss } from '../directory/editing.ts'
import { type AdminAnswer, notFound, refuse, reject, type Schema } from './operation.ts'

export const lineOf = ({ path, message, hint }: Problem): string =>
  `${pathText(path)}  ${message}${hint === undefined ? '' : ` — ${hint}`}`

/** 400 with every problem by its member, 404 or 409. */
export function refusalOf({ kind, message, problems }: DirectoryRefusal): AdminAnswer {
  if (kind === 'problems') return reject((problems?.list ?? []).map(lineOf))
  return kind === 'missing' ? notFound(message, []) : refuse(message, [])
}

export const WARNINGS: Schema = {
  type: 'array',
  items: { type: 'string' },
  description: 'What the record makes useless or dangerous.',
}
export const ENDED: Schema = {
  type: 'array',
  items: { type: 'object' },
  description: 'What has ended: whose it was, and how many sessions, families, codes and consents.',
}

export const endedRows = (ended: readonly EndedLoss[]): readonly object[] =>
  ended.map(({ loss, ended: counts }) => ({ ...loss.tokens, ...counts }))
