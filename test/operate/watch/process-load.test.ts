import { describe, expect, it } from 'vitest'
import { memoryLimit, ProcessLoad } from '../../../src/operate/watch/metrics/process-load.ts'

const GIB = 1024 ** 3

describe('what a process takes of the machine', () => {
  it.each<[string, number, number, number]>([
    ['the limit of the container', GIB, 8 * GIB, GIB],
    ['the memory of the machine where there is no limit', 2 ** 64, 8 * GIB, 8 * GIB],
    ['the memory of the machine where the limit is not known', 0, 8 * GIB, 8 * GIB],
  ])('C11.1 may be at most %s', (_what, constrained, total, limit) => {
    expect(memoryLimit(constrained, total)).toBe(limit)
  })

  it('C11.1 counts its processor time once', () => {
    const load = new ProcessLoad('main')
    const before = process.cpuUsage()
    const first = load.takeProcessorSeconds()
    expect(first).toBeGreaterThanOrEqual((before.user + before.system) / 1e6)
    const second = load.takeProcessorSeconds()
    const after = process.cpuUsage()
    expect(first + second).toBeLessThanOrEqual((after.user + after.system) / 1e6)
  })
})
