import { setImmediate } from 'node:timers'
import { type After, after as systemAfter } from '../../../base/kernel/clock.ts'
import { SentRecords, type SentWay } from '../queue/sent-records.ts'
import { OpenTrail, type TrailParts } from './trail.ts'

/** Timers run before what has arrived is read: where this process was held up, the record may be known as durable one turn later. */
const afterReading =
  (after: After): After =>
  (ms, then) =>
    after(ms, () => void setImmediate(then))

/** The trail of a worker process, which another process writes. */
export class SentTrail extends OpenTrail {
  constructor(way: SentWay, { after = systemAfter, ...parts }: TrailParts) {
    const records = new SentRecords(way, after)
    super({ queue: records, writing: records }, { ...parts, after: afterReading(after) })
    records.onProgress(() => this.look())
  }
}
