import type { ReadConfiguration } from '../../src/operate/settings/configuration.ts'
import { SETTINGS } from '../../src/serve/start/settings.ts'

const known = new Map<string, ReadConfiguration>()

/**
 * A configuration file of this repository, read once per process: to read YAML takes a fifth of a start. What is given is
 * frozen, because other tests get the same.
 */
export function readOnce(
  file: string,
  { POSTERN_DATA: data, ...environment }: Readonly<Record<string, string>>,
): ReadConfiguration {
  const key = JSON.stringify([file, environment])
  const read = known.get(key) ?? freeze(SETTINGS.read(file, environment))
  known.set(key, read)
  const { configuration, problems } = read
  return { configuration: configuration && data ? { ...configuration, data } : configuration, problems }
}

function freeze(read: ReadConfiguration): ReadConfiguration {
  freezeDeeply(read.configuration)
  return read
}

function freezeDeeply(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return
  Object.freeze(value)
  Object.values(value).forEach(freezeDeeply)
}
