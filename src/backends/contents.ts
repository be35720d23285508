/** Whether the files of a backend have changed. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { contentsOf } from '../config/modules/source.ts'
import type { BackendConfig, BackendOfKind } from './schema.ts'

/** The files beside the configuration that a backend consists of, but for a module's, which it finds by itself. */
const FILES: {
  readonly [K in Exclude<BackendConfig['kind'], 'module'>]: (
    config: BackendOfKind<K>,
  ) => (string | undefined)[]
} = {
  memory: ({ data }) => [data],
  http: ({ tls, auth }) => [tls.ca, tls.cert, tls.key, auth?.oauth2?.tls.ca],
  stream: ({ tls, auth }) => [tls.ca, tls.cert, tls.key, auth?.oauth2?.tls.ca],
}

/**
 * What the files of a backend hold, in one word: a backend is to be opened anew when they have changed, though its
 * configuration names the same ones. Taken before it is opened (`now`), so that what changes meanwhile counts as
 * changed; for a module, whose files are known once it is, also of what was `loaded`.
 */
export async function contentsOfBackend(config: BackendConfig, when: 'now' | 'loaded'): Promise<string> {
  if (config.kind === 'module') return contentsOf(config, when)
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
