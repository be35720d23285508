import { describe, expect, it } from 'vitest'
import { LineSender } from '../../../src/serve/processes/worker-process.ts'

function startSender() {
  const sent: { text: string; lost: number }[] = []
  const leaving: (() => void)[] = []
  const sender = new LineSender((text, lost, done) => {
    sent.push({ text, lost })
    leaving.push(done)
  })
  const leave = (): void => {
    for (const done of leaving.splice(0)) done()
  }
  return { sender, sent, leave }
}

const LINE = `${'x'.repeat(999)}\n`
const LINES = 4000

describe('T5.11 a worker’s lines on their way to the supervisor', () => {
  it('are bounded while it takes none: what is dropped is counted, and told where it is missing', () => {
    const { sender, sent, leave } = startSender()
    for (let n = 0; n < LINES; n += 1) sender.write(LINE)
    const kept = sent.reduce((sum, { text }) => sum + text.length, 0) / LINE.length
    expect(kept).toBeLessThanOrEqual(1024 ** 2 / LINE.length)
    expect(kept).toBeGreaterThan(900)
    sender.flush()
    leave()
    sender.write(LINE)
    sender.flush()
    expect(sent.at(-1)).toEqual({ text: LINE, lost: LINES - kept })
    expect(sent.slice(0, -1).every(({ lost }) => lost === 0)).toBe(true)
  })

  it('tell of a gap though no further line comes', () => {
    const { sender, sent, leave } = startSender()
    for (let n = 0; n < LINES; n += 1) sender.write(LINE)
    leave()
    sender.flush()
    expect(sent.at(-1)).toMatchObject({ text: '' })
    expect(sent.at(-1)?.lost).toBeGreaterThan(0)
  })
})
