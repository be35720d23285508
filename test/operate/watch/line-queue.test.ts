import { describe, expect, it } from 'vitest'
import { LineQueue, type LogWriter } from '../../../src/operate/watch/log/line-queue.ts'
import { manualAfter } from '../../support/manual-after.ts'

const PAGE = 64 * 1024

/** How many bytes are taken, or what fails. */
type Step = number | string

/** A writer that does as it is told, and a queue of little room before it. */
function startQueue({ limit = 4 * PAGE, isSlow = false } = {}) {
  const wound = manualAfter()
  const told = { text: '', trouble: undefined as string | undefined, steps: [] as Step[] }
  const pending: (() => void)[] = []
  const take = (bytes: Buffer): number => {
    const step = told.trouble ?? told.steps.shift() ?? bytes.length
    if (typeof step === 'string') throw Object.assign(new Error(step), { code: step })
    const part = bytes.subarray(0, Math.min(step, bytes.length))
    told.text += part.toString()
    return part.length
  }
  const slow: LogWriter['slow'] = {
    write: (bytes, done) => void pending.push(() => done(null, take(bytes))),
    isWritten: () => false,
  }
  const gapLine = (lines: number): string => `gap ${lines}\n`
  const queue = new LineQueue({ write: take, ...(isSlow && { slow }) }, gapLine, {
    after: wound.after,
    limit,
  })
  return { queue, told, wound, pending, lines: () => told.text.split('\n').slice(0, -1) }
}

const line = (n: number, size = 1000): string => `${n} ${'x'.repeat(size)}\n`

describe('T5.11 lines that wait to be written', () => {
  it('are bounded: whole ones are dropped, counted, and told where they are missing', async () => {
    const { queue, told, wound, lines } = startQueue()
    told.trouble = 'EAGAIN'
    for (let n = 0; n < 1000; n += 1) queue.write(line(n))
    const { dropped } = queue
    expect(dropped).toBeGreaterThan(700)
    told.trouble = undefined
    await wound.fire()
    queue.write(line(1000))
    queue.flush()
    const kept = lines().map((each) => each.replace(/ x+$/, ''))
    expect(kept).toEqual([
      ...Array.from({ length: 1000 - dropped }, (_, n) => `${n}`),
      `gap ${dropped}`,
      '1000',
    ])
    expect(queue.dropped).toBe(dropped)
  })

  it('tell of the gap as soon as there is room, though no further line comes', async () => {
    const { queue, told, wound, lines } = startQueue()
    told.trouble = 'ENOSPC'
    for (let n = 0; n < 1000; n += 1) queue.write(line(n))
    told.trouble = undefined
    await wound.fire()
    expect(lines().at(-1)).toBe(`gap ${queue.dropped}`)
  })

  it.each(['ENOSPC', 'EAGAIN', 'EIO', 'EPIPE'])(
    'are tried again after %s, in their order',
    async (trouble) => {
      const { queue, told, wound, lines } = startQueue()
      told.trouble = trouble
      queue.write(line(0))
      queue.flush()
      for (let n = 1; n < 5; n += 1) queue.write(line(n))
      for (let round = 0; round < 20; round += 1) await wound.fire()
      expect(told.text).toBe('')
      told.trouble = undefined
      await wound.fire()
      expect(lines().map((each) => each[0])).toEqual(['0', '1', '2', '3', '4'])
    },
  )

  it.each([
    ['ENOSPC', /^it cannot be written \(ENOSPC: .+\)$/],
    ['EPIPE', /^it cannot be written \(EPIPE: its reader has gone\)$/],
  ])('C11.1 tell why they wait after %s, until they are written', async (code, reason) => {
    const { queue, told, wound } = startQueue()
    expect(queue.trouble).toBe(undefined)
    told.trouble = code
    queue.write(line(0))
    queue.flush()
    expect(queue.trouble).toMatch(reason)
    told.trouble = undefined
    await wound.fire()
    expect(queue.trouble).toBe(undefined)
  })

  it('C11.1 tell of a slow reader only once lines are dropped', async () => {
    const { queue, told, wound } = startQueue()
    told.trouble = 'EAGAIN'
    queue.write(line(0))
    queue.flush()
    expect(queue.trouble).toBe(undefined)
    for (let n = 1; n < 1000; n += 1) queue.write(line(n))
    expect(queue.trouble).toBe('its reader is too slow, and lines are dropped')
    told.trouble = undefined
    await wound.fire()
    expect(queue.trouble).toBe(undefined)
  })

  it('go on where they were left, though a reader left in the middle of one: the pipe keeps its beginning', async () => {
    const { queue, told, wound, lines } = startQueue()
    for (let n = 0; n < 4; n += 1) queue.write(line(n))
    told.steps.push(1500, 'EPIPE')
    queue.flush()
    expect(lines()).toHaveLength(1)
    await wound.fire()
    expect(told.text).toBe(Array.from({ length: 4 }, (_, n) => line(n)).join(''))
    expect(queue.dropped).toBe(0)
  })

  it('are written while others come, one write at a time', () => {
    const { queue, pending, lines } = startQueue({ limit: 64 * PAGE, isSlow: true })
    for (let n = 0; n < 300; n += 1) {
      queue.write(line(n))
      expect(pending.length).toBeLessThan(2)
      if (n % 50 === 0) pending.shift()?.()
    }
    queue.flush()
    while (pending.length > 0) pending.shift()?.()
    expect(lines().map((each) => Number.parseInt(each))).toEqual(Array.from({ length: 300 }, (_, n) => n))
  })

  it('keep one that is longer than a page, and drop one that is longer than all the room', () => {
    const { queue, lines } = startQueue({ limit: 8 * PAGE })
    queue.write(line(0, 2 * PAGE))
    queue.write(line(1, 9 * PAGE))
    queue.write(line(2))
    queue.flush()
    expect(lines().map((each) => each.replace(/ x+$/, ''))).toEqual(['0', 'gap 1', '2'])
  })

  it('at the end follow what is on its way, or stay', () => {
    const { queue, told, pending } = startQueue({ isSlow: true })
    queue.write(line(0))
    queue.flush()
    queue.write(line(1))
    // It never lands.
    queue.endNow()
    expect(pending).toHaveLength(1)
    expect(told.text).toBe('')
  })

  it.each(['EAGAIN', 'ENOSPC', 'EPIPE'])('at the end are not waited for without end after %s', (trouble) => {
    const { queue, told } = startQueue()
    told.trouble = trouble
    queue.write(line(0))
    queue.endNow()
    expect(told.text).toBe('')
  })

  it('at the end are written as soon as there is room', () => {
    const { queue, told, lines } = startQueue()
    for (let n = 0; n < 4; n += 1) queue.write(line(n))
    queue.lose(3)
    told.steps.push('EAGAIN', 1500, 'EAGAIN')
    queue.endNow()
    queue.lose(2)
    queue.endNow()
    expect(lines().map((each) => each.replace(/ x+$/, ''))).toEqual(['0', '1', '2', '3', 'gap 3', 'gap 2'])
  })
})
