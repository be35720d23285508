/** Workers that record over real sockets, and the supervisor that writes for them. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { onTestFinished, vi } from 'vitest'
import type { AuditEntry } from '../../../../src/base/contracts/records/audit.ts'
import { RecordRing } from '../../../../src/extensions/audit/queue/record-ring.ts'
import type { SentWay } from '../../../../src/extensions/audit/queue/sent-records.ts'
import { SentTrail } from '../../../../src/extensions/audit/write/sent-trail.ts'
import { readTrail } from './audit-chain.ts'
import { dataFolder } from '../../../support/data-folder.ts'
import { manualAfter } from '../../../support/manual-after.ts'
import { movableClock, type MovableClock } from '../../../support/movable-clock.ts'
import { record, type Recording } from './recorded-trail.ts'

export const NOTE: AuditEntry = { event: 'service.started', outcome: 'success', actor: { kind: 'service' } }
export const TAKEN: AuditEntry = {
  event: 'revocation.ordered',
  outcome: 'success',
  actor: { kind: 'operator' },
}
/** Some 27 KB. */
export const WIDE = { change: { rows: Array.from({ length: 100 }, () => 'x'.repeat(250)) } }

/** The worker's ends of a way between two processes, and the supervisor's. */
interface Way {
  readonly records: Socket
  readonly progress: Socket
}

interface OpenedWorker {
  readonly trail: SentTrail
  /** The worker's end of the way, and the other one. */
  readonly way: Way
  readonly end: Way
  /** The events of its log. */
  readonly noted: string[]
  readonly timers: ReturnType<typeof manualAfter>
}

/** A worker whose records nobody takes yet: its supervisor hangs. */
export async function openWorker(clock: MovableClock = movableClock()): Promise<OpenedWorker> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const accepted = async (): Promise<Socket> => {
    const [socket] = (await once(server, 'connection')) as [Socket]
    onTestFinished(() => void socket.destroy())
    return socket
  }
  const [records, taken] = [connect({ port, host: '127.0.0.1' }), await accepted()]
  const noted: string[] = []
  const timers = manualAfter()
  const recorder = { note: (_: string, event: string) => void noted.push(event) }
  const telling = accepted()
  const opened: Socket[] = []
  const openProgress: SentWay['openProgress'] = (onread) => {
    const socket = connect({ port, host: '127.0.0.1', onread })
    opened.push(socket)
    return socket
  }
  const trail = new SentTrail(
    { records, openProgress },
    { clock, recorder, bodyKey: 'k', timeout: 2000, after: timers.after },
  )
  const [progress] = opened
  if (progress === undefined) throw new Error('the worker has opened no way')
  const way = { records, progress }
  onTestFinished(() => [records, progress].forEach((socket) => socket.destroy()))
  const end = { records: taken, progress: await telling }
  server.close()
  return { trail, way, end, noted, timers }
}

interface Opened extends Recording {
  readonly folder: string
  /** How many intents each worker has left open that has ended. */
  readonly left: number[]
  readonly addWorker: (clock?: MovableClock) => Promise<OpenedWorker>
}

export async function openSupervisor(start?: number): Promise<Opened> {
  const folder = await dataFolder()
  const left: number[] = []
  const recording = await record({ folder, clock: movableClock(start), leftOpen: (open) => left.push(open) })
  onTestFinished(() => recording.close())
  const addWorker = async (clock = recording.clock): Promise<OpenedWorker> => {
    const worker = await openWorker(clock)
    recording.trail.take(worker.end)
    return worker
  }
  return { ...recording, folder, left, addWorker }
}

export const requestsIn = (folder: string): readonly string[] =>
  readTrail(folder).flatMap(({ requestId }) => requestId ?? [])

/** Whatever a thread writes from now on, its process learns nothing of it until the returned function is called. */
export function freeze(): () => void {
  const spies = (['durable', 'written'] as const).map((progress) => {
    const real = Object.getOwnPropertyDescriptor(RecordRing.prototype, progress)
    const positions = new WeakMap<RecordRing, number>()
    return vi.spyOn(RecordRing.prototype, progress, 'get').mockImplementation(function (this: RecordRing) {
      const position = positions.get(this) ?? (real?.get?.call(this) as number)
      positions.set(this, position)
      return position
    })
  })
  const thaw = (): void => spies.forEach((spy) => spy.mockRestore())
  onTestFinished(thaw)
  return thaw
}
