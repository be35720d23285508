/** For scripts that measure another checkout: one from before the folders were moved has some files elsewhere. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Environment } from '../../src/base/config/validate.ts'
import type { ReadConfiguration } from '../../src/operate/settings/configuration.ts'
import type { Settings } from '../../src/operate/settings/settings.ts'

const BEFORE: Readonly<Record<string, string>> = {
  'serve/start/service.ts': 'start/service.ts',
  'operate/settings/configuration.ts': 'settings/configuration.ts',
  'base/kernel/clock.ts': 'kernel/clock.ts',
  'extensions/audit/write/sent-trail.ts': 'state/audit/write/sent-trail.ts',
  'extensions/audit/write/trail.ts': 'state/audit/write/trail.ts',
  'extensions/audit/write/writing-trail.ts': 'state/audit/write/writing-trail.ts',
}

/** The module of a checkout. @param file below `src`, as in this checkout */
export function moduleOf(checkout: string, file: string): Promise<unknown> {
  const source = resolve(checkout, 'src')
  const before = BEFORE[file]
  const place = before === undefined || existsSync(join(source, file)) ? file : before
  return import(pathToFileURL(join(source, place)).href)
}

type ReadFile = (file: string, environment: Environment) => ReadConfiguration

/** How a checkout reads a configuration file: before there were extensions, all keys were the core's. */
export async function readerOf(checkout: string): Promise<ReadFile> {
  const settings = 'serve/start/settings.ts'
  if (existsSync(join(resolve(checkout), 'src', settings))) {
    const { SETTINGS } = (await moduleOf(checkout, settings)) as { SETTINGS: Settings }
    return SETTINGS.read
  }
  const before = await moduleOf(checkout, 'operate/settings/configuration.ts')
  return (before as { readConfiguration: ReadFile }).readConfiguration
}
