import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { atEnd } from './shared.ts'
import { freePort } from './free-port.ts'
import { NGINX } from './machine.ts'

export interface Nginx {
  readonly url: string
  /** Of a unix socket on which it serves the same. */
  readonly socketUrl: string
  readonly folder: string
  /** Replaces its processes while it serves. */
  reload(): void
  stop(): Promise<void>
  start(): Promise<void>
}

const configuration = (folder: string, port: number, locations: string): string => `
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections 1000; }
http {
  access_log off;
  default_type application/json;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  server {
    listen 127.0.0.1:${port};
    listen unix:${folder}/nginx.sock;
    ${locations}
  }
}
`

/** An nginx of the test's own, which serves `locations`. Ends with the test. */
export async function startNginx(locations: string): Promise<Nginx> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-nginx-'))
  const port = await freePort()
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, configuration(folder, port, locations))
  let running: ReturnType<typeof spawn> | undefined
  const nginx: Nginx = {
    url: `http://127.0.0.1:${port}`,
    socketUrl: `unix:${folder}/nginx.sock`,
    folder,
    reload: () => void spawnSync(NGINX, ['-p', folder, '-c', file, '-s', 'reload']),
    stop: async () => {
      const ended = running
      running = undefined
      if (ended === undefined) return
      const exit = once(ended, 'exit')
      ended.kill('SIGTERM')
      await exit
    },
    start: async () => {
      running = spawn(NGINX, ['-p', folder, '-c', file], { stdio: 'ignore' })
      while (!(await listens(port))) await wait(20)
    },
  }
  atEnd(async () => {
    await nginx.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  await nginx.start()
  return nginx
}

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
