import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { NGINX } from '../machine.ts'
import { programService, type Program } from './programs.ts'
import type { ReceivedRequest } from './recorder.ts'
import type { Service, Surroundings } from './service.ts'

/** Texts or bytes by path. */
export type Files = Readonly<Record<string, string | Buffer>>

export interface Folder {
  readonly path: string
  readonly remove: () => void
}

/** A folder of its own with these files. */
export function makeFolder(files: Files = {}): Folder {
  const path = mkdtempSync(join(tmpdir(), 'postern-service-'))
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true })
    writeFileSync(join(path, name), content)
  }
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/**
 * An nginx whose `server` sections are these.
 * @param folder of its own: configuration and temporary files
 */
export function nginxProgram({ path, remove }: Folder, servers: string): Program {
  const file = join(path, 'nginx.conf')
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  writeFileSync(
    file,
    `daemon off;
    worker_processes 1;
    pid ${path}/nginx.pid;
    error_log stderr warn;
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    events { worker_connections 200; }
    http {
      access_log off;
      ${temporary.map((name) => `${name}_temp_path ${path}/${name};`).join('\n')}
      types { application/json json; application/xml xml; application/pdf pdf; }
      ${servers}
    }`,
  )
  return { command: NGINX, args: ['-p', path, '-e', 'stderr', '-c', file], cleanUp: remove }
}

/** An nginx that serves files, and nothing else. */
export const nginxWithFiles =
  (files: Files) =>
  (port: number): Program => {
    const folder = makeFolder(files)
    return nginxProgram(folder, `server { listen 127.0.0.1:${port}; root ${folder.path}; }`)
  }

/** An nginx that serves the same files to whoever sends a header as it should be. */
export const nginxWithKey =
  (files: Files, header: string, value: string) =>
  (port: number): Program => {
    const folder = makeFolder(files)
    const variable = `$http_${header.toLowerCase().replaceAll('-', '_')}`
    return nginxProgram(
      folder,
      `server {
      listen 127.0.0.1:${port};
      root ${folder.path};
      default_type application/json;
      if (${variable} != "${value}") { return 401; }
    }`,
    )
  }

/** An nginx that serves another folder for each value of a header. */
export const nginxByHeader =
  (files: Files, header: string) =>
  (port: number): Program => {
    const folder = makeFolder(files)
    const variable = `$http_${header.toLowerCase().replaceAll('-', '_')}`
    return nginxProgram(
      folder,
      `map ${variable} $tenant { "~^[A-Z]+$" ${variable}; default nobody; }
    server { listen 127.0.0.1:${port}; root ${folder.path}/$tenant; }`,
    )
  }

/** A lighttpd that serves files, and takes changed ones by PUT: also parts of them (`Content-Range`). */
export const lighttpdWithFiles =
  (files: Files) =>
  (port: number): Program => {
    const folder = makeFolder(files)
    const file = join(folder.path, 'lighttpd.conf')
    writeFileSync(
      file,
      `server.bind = "127.0.0.1"
    server.port = ${port}
    server.document-root = "${folder.path}"
    server.modules = ( "mod_webdav" )
    mimetype.assign = ( ".pdf" => "application/pdf" )
    webdav.activate = "enable"
    webdav.opts = ( "deprecated-unsafe-partial-put" => "enable" )`,
    )
    return { command: '/usr/sbin/lighttpd', args: ['-D', '-f', file], cleanUp: folder.remove }
  }

/** A server of each tenant, with a key and data of its own. */
export const twoServers = async (where: Surroundings): Promise<Service> => {
  const requests: ReceivedRequest[] = []
  const noted = {
    ...where,
    onRequest: (request: ReceivedRequest) => (requests.push(request), where.onRequest?.(request)),
  }
  const one = (tenant: string, port: number) =>
    programService(
      noted,
      nginxWithKey({ 'funds.json': `[{"of":"${tenant}"}]` }, 'X-API-Key', `key-of-${tenant}`),
      port,
    )
  const services = [await one('acme', 9000), await one('globex', 9001)]
  return {
    received: () => requests,
    stop: async () => {
      for (const service of services) await service.stop()
    },
  }
}
