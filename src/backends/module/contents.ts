import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { BackendConfig } from '../config.ts'
import { contentsOf, sourceOf } from './load.ts'

type Of<K extends BackendConfig['kind']> = Extract<BackendConfig, { kind: K }>

/** The files beside the configuration that a backend consists of, but for a module's, which it finds by itself. */
const FILES: {
  readonly [K in Exclude<BackendConfig['kind'], 'module'>]: (config: Of<K>) => (string | undefined)[]
} = {
  memory: ({ data }) => [data],
  http: ({ tls }) => [tls.ca, tls.cert, tls.key],
  stream: ({ tls }) => [tls.ca, tls.cert, tls.key],
}

/**
 * What the files of a backend hold, in one word: a backend is to be opened anew when they have changed, though its
 * configuration names the same ones. Taken before it is opened (`now`), so that what changes meanwhile counts as
 * changed; for a module, whose files are known once it is, also of what was `loaded`.
 */
export async function contentsOfBackend(config: BackendConfig, when: 'now' | 'loaded'): Promise<string> {
  if (config.kind === 'module') {
    const source = sourceOf(config)
    return source === undefined ? '' : contentsOf(source, when)
  }
  const read = FILES[config.kind] as (config: BackendConfig) => (string | undefined)[]
  const digests = await Promise.all(read(config).map(digestOfFile))
  return digests.join(' ')
}

async function digestOfFile(file: string | undefined): Promise<string> {
  if (file === undefined) return '-'
  try {
    return createHash('sha256')
      .update(await readFile(file))
      .digest('base64url')
  } catch {
    return 'unreadable'
  }
}
