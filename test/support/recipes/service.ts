import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { PartName } from '../machine.ts'
import type { ReceivedRequest } from './recorder.ts'

/** Where a recipe's service is started. */
export interface Surroundings {
  /** The folder of my.yaml. Files that the page names are put here. */
  readonly folder: string
  /** The port to listen on for one that the page shows: 9000 for a reader, a free one in a test. */
  readonly portFor: (shown: number) => Promise<number>
  /** Told each request as it comes. */
  readonly onRequest?: (request: ReceivedRequest) => void
}

export interface Service {
  /** All requests so far, in order. */
  received(): readonly ReceivedRequest[]
  stop(): Promise<void>
}

/** A recipe's real server: how to start it, and the programs that it takes. */
export interface Recipe {
  readonly needs: readonly PartName[]
  /** Left out where Postern needs no other server. */
  readonly start?: (where: Surroundings) => Promise<Service>
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve((socket.destroy(), true))).once('error', () => resolve(false))
  })

/** Resolves when somebody listens there; rejects if `ended` does before. */
export async function untilListening(port: number, ended: Promise<never>): Promise<void> {
  while (!(await accepts(port))) await Promise.race([wait(20), ended])
}
