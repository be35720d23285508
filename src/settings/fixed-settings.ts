/** Settings that a reload cannot change, since they were bound or opened at the start. */
import { isDeepStrictEqual } from 'node:util'
import { type KeyPath, pathText } from '../config/problems.ts'
import { isSidecar, type Configuration } from './configuration.ts'

/** Sections that are read at the start only. */
const FIXED: readonly (keyof Configuration)[] = [
  'server',
  'admin',
  'data',
  'dataGroup',
  'store',
  'workers',
  'keys',
  'audit',
]

/** Exceptions: settings of these sections, with everything below them, that a reload does change. */
const LIVE = ['admin.tokens', 'store.seal', 'server.limits.body', 'server.strictHeaderNames', 'server.cors']

const isLive = (path: string): boolean => LIVE.some((live) => path === live || path.startsWith(`${live}.`))

const isSection = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function changedPaths(before: unknown, after: unknown, path: KeyPath): KeyPath[] {
  if (isDeepStrictEqual(before, after)) return []
  if (!isSection(before) || !isSection(after)) return [path]
  const keys = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...keys].flatMap((key) => changedPaths(before[key], after[key], [...path, key]))
}

/** Every setting that differs, by key path. */
export const changedSettings = (before: Configuration, after: Configuration): readonly string[] =>
  changedPaths(before, after, []).map(pathText)

/** The settings that differ and need a restart, by key path. */
export function fixedChanges(before: Configuration, after: Configuration): readonly string[] {
  const changed = FIXED.flatMap((key) => changedPaths(before[key], after[key], [key])).map(pathText)
  // A sidecar opens other parts than a full service (C11.2). Which issuers a sidecar trusts may change.
  if (isSidecar(before) !== isSidecar(after)) changed.push('issuers')
  return changed.filter((path) => !isLive(path))
}
