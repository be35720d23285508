import { describe, expect, it, onTestFinished } from 'vitest'
import { needing } from '../../support/machine.ts'
import { startNodes } from './support/nodes.ts'
import { sharedPostgres } from '../../support/postgres.ts'

/** A node tells every two seconds that it lives. That is the clock here, on a busy machine too. */
const BEAT_SECONDS = 2
const BEATS = 4
/** It is five on an idle machine; on a busy one a worker reads itself now and then. Four workers that all read make 33. */
const MOST_IN_A_SECOND = 12

describe('an idle node of a shared store', needing('postgresql'), () => {
  it('C11.7.2 with four workers asks it little more often than with one: one process reads for all', async () => {
    const started = await startNodes(await sharedPostgres(), { count: 1, settings: 'workers: 4' })
    onTestFinished(() => started.close())
    const asked: string[] = []
    started.nodes[0]!.proxy.asked = (statement) => void asked.push(statement)
    const beats = (): number => asked.filter((statement) => statement === 'node_beat').length
    await expect.poll(beats, { timeout: 60_000 }).toBeGreaterThan(BEATS)
    const between = asked.slice(asked.indexOf('node_beat'), asked.lastIndexOf('node_beat'))
    expect(between.filter((statement) => statement === 'changes').length).toBeGreaterThan(BEATS)
    expect(between.length).toBeLessThanOrEqual((beats() - 1) * BEAT_SECONDS * MOST_IN_A_SECOND)
  })
})
