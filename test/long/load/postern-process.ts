import { execFileSync, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { newFolder, owned, PATH, ROOT, subject, untilAnswering, type Subject } from './subjects.ts'
import { freePort } from '../../support/free-port.ts'

/** A Postern under load, and where it issues tokens. */
export interface PosternSubject extends Subject {
  readonly admin: string
  /** The folder of its keys. */
  readonly keys: string
}

interface PosternOptions {
  /** Options of node. */
  readonly node?: readonly string[]
  /** Of `config/`. */
  readonly file?: string
  /** The folder of the checkout. */
  readonly root?: string
}

/** A Postern that has been asked for nothing but its keys. */
export type IdlePostern = Omit<PosternSubject, 'headers'>

/**
 * The bundle of a checkout, made if a source is newer; the sources of an earlier checkout, which has no bundle. Throws where it
 * cannot be made: figures of the sources would be taken for those of what ships.
 */
export function programOf(root: string): string {
  if (!existsSync(join(root, '.config/program.ts'))) return 'src/main.ts'
  const made = execFileSync(process.execPath, ['.config/program.ts'], { cwd: root, encoding: 'utf8' }).trim()
  if (!made.startsWith('dist/')) throw new Error('the bundle cannot be made: see above')
  return made
}

/** The product as it is run, in a process of its own, its log going to a file. `yaml` extends the configuration file. */
export async function startIdlePostern(
  upstream: string,
  yaml = '',
  { node = [], file = 'upstream.yaml', root = ROOT }: PosternOptions = {},
): Promise<IdlePostern> {
  const folder = await newFolder()
  const [port, admin] = [await freePort(), await freePort()]
  const config = join(folder, 'postern.yaml')
  await writeFile(config, `extends: ${join(root, 'config', file)}\n${yaml}`)
  const child = spawn(
    'sh',
    ['-c', `exec "${process.execPath}" ${node.join(' ')} ${programOf(root)} serve ${config} > ${folder}/log`],
    {
      cwd: root,
      stdio: ['ignore', 'ignore', 'inherit'],
      env: {
        ...process.env,
        UPSTREAM_URL: upstream,
        POSTERN_PORT: String(port),
        POSTERN_ADMIN_PORT: String(admin),
        POSTERN_DATA: join(folder, 'data'),
      },
    },
  )
  owned(child)
  const origin = `http://127.0.0.1:${port}`
  await untilAnswering(`${origin}/.well-known/jwks.json`)
  return {
    ...subject('Postern, every check, log and metric on', child, origin),
    admin: `http://127.0.0.1:${admin}`,
    keys: join(folder, 'data', 'keys'),
  }
}

/** One that has issued a token to alice, and answered a call with it. */
export async function startPosternProcess(
  upstream: string,
  yaml = '',
  options: PosternOptions = {},
): Promise<PosternSubject> {
  const postern = await startIdlePostern(upstream, yaml, options)
  const { access_token } = await passwordToken(postern.origin)
  const headers = { Authorization: `Bearer ${access_token}` }
  await untilAnswering(postern.origin + PATH, headers)
  return { ...postern, headers }
}

/** alice's token at ACME. */
export async function passwordToken(origin: string): Promise<{ readonly access_token: string }> {
  const response = await fetch(`${origin}/connect/token`, {
    method: 'POST',
    headers: { Authorization: `Basic ${Buffer.from('acme-books:acme-books-secret').toString('base64')}` },
    body: new URLSearchParams({
      grant_type: 'password',
      username: 'alice',
      password: 'alice-password',
      scope: 'fund.maintain business.fund.list target:b/ACME',
    }),
  })
  return (await response.json()) as { access_token: string }
}
