import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startWithAllocator } from '../../src/serve/processes/allocator.ts'
import { PROGRAM, ROOT } from './program.ts'
import { giveKey } from './ready-key.ts'

export { ROOT }

export interface SpawnOptions {
  /** Path below the repository; `DEMO` if not given. */
  readonly config?: string
  readonly environment?: Readonly<Record<string, string>>
  /** In a process group of its own, so that `process.kill(-pid)` reaches its workers too. */
  readonly detached?: boolean
  /** The user and group that it runs as; this process's if not given. */
  readonly uid?: number
  readonly gid?: number
  /** How many files and connections each of its processes may have open. */
  readonly descriptors?: number
  /** Options of node. */
  readonly node?: readonly string[]
  /** Without its settings of memory, for which it starts itself once more: that costs as much as the start does. */
  readonly withoutSettings?: boolean
  /** Where Postern lies; this repository if not given. */
  readonly root?: string
  /** Told its output so far, whenever there is more: for one that does not serve yet. */
  readonly heard?: (output: string) => void
  /** Below `root`; by default that of the run, and of another `root` the sources'. */
  readonly program?: string
}

/** A Postern in a process of its own. */
export interface SpawnedPostern {
  readonly pid: number
  readonly port: number
  readonly baseUrl: string
  readonly authUrl: string
  readonly adminUrl: string
  /** Its data folder. */
  readonly data: string
  /** Standard output and error so far. */
  output(): string
  /** SIGTERM; resolves with the exit code. */
  stop(): Promise<number | null>
}

/** The demo world, which ends without waiting. */
export const DEMO = fileURLToPath(new URL('demo.yaml', import.meta.url))
/** For another configuration that shall end without waiting. */
export const ENDS_AT_ONCE = 'server: { timeouts: { lameDuck: 0s, silence: 0s } }'
/** The same, and its store and its trail may take their time, since other tests hold the machine up. */
export const WITHOUT_WAITS = `${ENDS_AT_ONCE}\nstore: { kind: sqlite, deadline: 10s }\naudit: { timeout: 20s }`

/** For a configuration on the demo world, of which nobody looks at the store or the trail: no threads for them. */
export const KEEPS_NOTHING = 'store: { kind: memory }\naudit: { enabled: false }'

const programIn = (root = ROOT): string => (root === ROOT ? PROGRAM : 'src/main.ts')

export type Started = readonly [args: readonly string[], env: Readonly<Record<string, string | undefined>>]

/** The same with the settings of memory that it would start itself once more for, as the image and the unit give them. */
export function withSettings([args, env]: Started, node: readonly string[] = []): Started {
  let again: Started | undefined
  const { execPath, platform, versions } = process
  startWithAllocator({
    ...{ argv: [execPath, ...args], execArgv: [...node], execPath, env, platform, versions },
    execve: (_: string, [, ...settled]: readonly string[], settings: Started[1]) => {
      again = [settled, settings]
    },
  } as unknown as NodeJS.Process)
  return again ?? [[...node, ...args], env]
}

const SERVING = /serving \S+ at (http:\/\/\S+:(\d+)) \(admin listener: port (\d+)/

/** Starts `postern serve` on free ports, in a data folder of its own. Rejects if it ends before it serves. */
export async function spawnPostern(options: SpawnOptions = {}): Promise<SpawnedPostern> {
  const data = await mkdtemp(join(tmpdir(), 'postern-process-'))
  if (options.environment?.['POSTERN_DATA'] === undefined) await giveKey(data)
  const asGiven: Started = [
    [options.program ?? programIn(options.root), 'serve', options.config ?? DEMO],
    {
      ...process.env,
      POSTERN_PORT: '0',
      POSTERN_ADMIN_PORT: '0',
      POSTERN_DATA: data,
      ...options.environment,
    },
  ]
  const { node = [], root = ROOT, withoutSettings = root !== ROOT } = options
  const [program, env] = withoutSettings
    ? [[...node, ...asGiven[0]], asGiven[1]]
    : withSettings(asGiven, node)
  const limited =
    options.descriptors === undefined
      ? []
      : ['bash', '-c', `ulimit -n ${options.descriptors}; exec "$0" "$@"`]
  const [command = '', ...args] = [...limited, process.execPath, ...program]
  const child = spawn(command, args, {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: options.detached ?? false,
    ...(options.uid !== undefined && { uid: options.uid }),
    ...(options.gid !== undefined && { gid: options.gid }),
  })
  let output = ''
  const hear = (chunk: Buffer): void => {
    output += chunk.toString()
    options.heard?.(output)
  }
  child.stdout.on('data', hear)
  child.stderr.on('data', hear)
  const exited = once(child, 'exit') as Promise<[number | null]>
  const [, url = '', port, adminPort] = await untilServing(child, exited, () => output)
  return {
    pid: child.pid ?? 0,
    port: Number(port),
    baseUrl: url,
    authUrl: url,
    adminUrl: `http://127.0.0.1:${adminPort}`,
    data,
    output: () => output,
    stop: async () => {
      child.kill('SIGTERM')
      const [code] = await exited
      await rm(data, { recursive: true, force: true })
      return code
    },
  }
}

async function untilServing(
  { stderr }: ChildProcess,
  exited: Promise<unknown>,
  output: () => string,
): Promise<RegExpExecArray> {
  const ended = exited.then(() => {
    throw new Error(`it ended before it served: ${output()}`)
  })
  for (;;) {
    const serving = SERVING.exec(output())
    if (serving) return (ended.catch(() => undefined), serving)
    await Promise.race([stderr ? once(stderr, 'data') : ended, ended])
  }
}
