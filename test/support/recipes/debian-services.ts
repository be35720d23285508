import { join } from 'node:path'
import { DOCKER_REGISTRY, RADICALE } from '../machine.ts'
import { makeFolder } from './files.ts'
import type { Program } from './programs.ts'

/** Services of recipes that are packages of Debian. */

/** A Radicale with a user for each tenant, who sees the calendars below the path of that name. */
export function radicale(port: number): Program {
  const { path, remove } = makeFolder({ users: 'acme:calendar-of-acme\nglobex:calendar-of-globex\n' })
  const options = {
    'server-hosts': `127.0.0.1:${port}`,
    'auth-type': 'htpasswd',
    'auth-htpasswd-filename': join(path, 'users'),
    'auth-htpasswd-encryption': 'plain',
    'auth-delay': '0',
    'storage-filesystem-folder': join(path, 'collections'),
    'logging-level': 'error',
    'web-type': 'none',
  }
  const args = Object.entries(options).map(([name, value]) => `--${name}=${value}`)
  return { command: RADICALE, args: ['--config', '', ...args], cleanUp: remove }
}

/** Docker's registry (OCI distribution) over a folder of its own, which lets in whoever reaches it. */
export function imageRegistry(port: number): Program {
  const { path, remove } = makeFolder({
    'config.yml': `{ version: 0.1, log: { level: error }, storage: { filesystem: { rootdirectory: data } } }`,
  })
  return {
    command: DOCKER_REGISTRY,
    args: ['serve', join(path, 'config.yml')],
    environment: {
      REGISTRY_HTTP_ADDR: `127.0.0.1:${port}`,
      REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY: join(path, 'data'),
    },
    cleanUp: remove,
  }
}
