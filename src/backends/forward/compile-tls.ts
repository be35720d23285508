import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import type { KeyPath, Problems } from '../../config/problems.ts'
import type { UpstreamTls } from '../../upstream/socket.ts'
import type { ForwardingConfig } from './schema.ts'

/** All files are read and tried out at once, so that a broken one is told at start and not by the first call. */
export async function compileTls(
  { tls }: ForwardingConfig,
  at: KeyPath,
  problems: Problems,
): Promise<UpstreamTls> {
  const where = [...at, 'tls']
  const [ca, cert, key] = await Promise.all(
    (['ca', 'cert', 'key'] as const).map((file) => readOrReport(tls[file], [...where, file], problems)),
  )
  if ((tls.cert === undefined) !== (tls.key === undefined))
    problems.error(where, 'has one of `cert` and `key`; expected both, or neither')
  const files = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) }
  try {
    createSecureContext(files)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
    problems.error(where, `names files that are no certificates and key that go together${code}`)
  }
  return {
    ...files,
    ...(tls.serverName !== undefined && { servername: tls.serverName }),
    unverified: tls.verify === 'off-insecure',
  }
}

export async function readOrReport(
  file: string | undefined,
  path: KeyPath,
  problems: Problems,
): Promise<Buffer | undefined> {
  if (file === undefined) return undefined
  try {
    return await readFile(file)
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'it could not be read'
    problems.error(path, `names a file that cannot be read: ${reason}`)
    return undefined
  }
}
