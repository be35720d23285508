import { join } from 'node:path'
import { createHash } from 'node:crypto'
import { SERVERS } from '../machine.ts'
import { makeFolder } from './files.ts'
import { ownFile, programService, type Program } from './programs.ts'
import type { Service, Surroundings } from './service.ts'

/** Servers that are packages of npm. Those that bring many others are installed by .config/servers. */

const MEMBERS = [
  { id: '1', business: 'ACME', fund: 'SUPER1', name: 'Margaret Okafor' },
  { id: '2', business: 'ACME', fund: 'SUPER2', name: 'Daniel Reyes' },
  { id: '3', business: 'GLOBEX', fund: 'GROWTH', name: 'Peter Lee' },
]

const packageProgram = (
  file: string,
  args: readonly string[],
  cleanUp: () => void,
  environment = {},
): Program => ({
  command: process.execPath,
  args: [join(SERVERS, file), ...args],
  cleanUp,
  environment: { NODE_NO_WARNINGS: '1', ...environment },
})

/** A json-server with members of all businesses in one list. */
export function jsonServer(port: number): Program {
  const folder = makeFolder({ 'db.json': JSON.stringify({ members: MEMBERS }) })
  const args = ['--host', '127.0.0.1', '--port', String(port), join(folder.path, 'db.json')]
  return packageProgram('json-server/lib/bin.js', args, folder.remove)
}

const sha1 = (text: string): string => createHash('sha1').update(text).digest('base64')

/**
 * A Verdaccio that lets in one user only, `postern`, and asks no other registry.
 * @param publicUrl what the addresses of packages begin with
 */
export const verdaccio =
  (publicUrl: string) =>
  (port: number): Program => {
    const folder = makeFolder({
      htpasswd: `postern:{SHA}${sha1('registry-password')}`,
      'config.yaml': `
        storage: ./storage
        auth: { htpasswd: { file: ./htpasswd, max_users: -1 } }
        uplinks: {}
        packages: { '**': { access: postern, publish: postern } }
        web: { enable: false }
        log: { type: stdout, format: json, level: fatal }`,
    })
    const args = ['--config', join(folder.path, 'config.yaml'), '--listen', `127.0.0.1:${port}`]
    return packageProgram('verdaccio/bin/verdaccio', args, folder.remove, { VERDACCIO_PUBLIC_URL: publicUrl })
  }

/** A service of npm-services.ts. */
export const npmService =
  (name: string) =>
  (where: Surroundings): Promise<Service> =>
    programService(where, (port) => ({
      command: process.execPath,
      args: [ownFile('npm-services.ts'), name, String(port)],
      environment: { NODE_NO_WARNINGS: '1' },
    }))
