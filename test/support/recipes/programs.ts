import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { record } from './recorder.ts'
import { freePort } from '../free-port.ts'
import { untilListening, type Service, type Surroundings } from './service.ts'

/** A file of this folder. */
export const ownFile = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

export interface Program {
  readonly command: string
  readonly args: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  /** Undone when the service is stopped. */
  readonly cleanUp?: () => void
}

export interface StartedProgram {
  readonly port: number
  stop(): Promise<void>
}

/** A program that listens on the port that it is told; resolves when it does. */
export async function startProgram(
  { command, args, environment, cleanUp }: Program,
  port: number,
): Promise<StartedProgram> {
  const child = spawn(command, args, {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let complaint = ''
  child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()))
  const exit = once(child, 'exit')
  const ended = exit.then(() => Promise.reject(new Error(`${command} ended: ${complaint}`)))
  ended.catch(() => undefined)
  await untilListening(port, ended)
  return {
    port,
    stop: async () => {
      child.kill('SIGTERM')
      await exit
      cleanUp?.()
    },
  }
}

/** A service that is a program behind a recorder. The page shows it at `shown`. */
export async function programService(
  where: Surroundings,
  make: (port: number) => Program,
  shown = 9000,
): Promise<Service> {
  const hidden = await freePort()
  const program = await startProgram(make(hidden), hidden)
  const recorder = await record(await where.portFor(shown), hidden, where.onRequest)
  return {
    received: () => recorder.requests,
    stop: async () => {
      await recorder.stop()
      await program.stop()
    },
  }
}

/** A Python program of this folder, which is given its port. */
export const pythonService =
  (file: string) =>
  (where: Surroundings): Promise<Service> =>
    programService(where, (port) => ({ command: 'python3', args: [ownFile(file), String(port)] }))

/** A program of this folder for Node, which is given its port. */
export const nodeProgram = (file: string, port: number): Program => ({
  command: process.execPath,
  args: [ownFile(file), String(port)],
})

export const nodeService =
  (file: string) =>
  (where: Surroundings): Promise<Service> =>
    programService(where, (port) => nodeProgram(file, port))
