/** For scripts that measure another checkout: one from before the folders were moved has some files elsewhere. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const BEFORE: Readonly<Record<string, string>> = {
  'serve/start/service.ts': 'start/service.ts',
  'operate/settings/configuration.ts': 'settings/configuration.ts',
  'base/kernel/clock.ts': 'kernel/clock.ts',
  'state/audit/write/trail.ts': 'audit/trail.ts',
}

/** The module of a checkout. @param file below `src`, as in this checkout */
export function moduleOf(checkout: string, file: string): Promise<unknown> {
  const source = resolve(checkout, 'src')
  const before = BEFORE[file]
  const place = before === undefined || existsSync(join(source, file)) ? file : before
  return import(pathToFileURL(join(source, place)).href)
}
