import { EventEmitter } from 'node:events'
import { describe, expect, it } from 'vitest'
import { onSignals, SAME_SIGNAL_MS } from '../../../src/serve/processes/signals.ts'

function startSignals() {
  const source = new EventEmitter()
  const heard: string[] = []
  let time = 0
  const clock = { now: () => 0, monotonic: () => time }
  const stop = onSignals(source, clock, {
    drain: () => heard.push('drain'),
    force: () => heard.push('force'),
  })
  return { source, heard, stop, advance: (ms: number) => (time += ms) }
}

describe('signals', () => {
  it('takes a signal that is delivered twice, or as SIGINT and SIGTERM at once, as one', () => {
    const { source, heard, advance } = startSignals()
    source.emit('SIGINT')
    source.emit('SIGINT')
    advance(SAME_SIGNAL_MS)
    source.emit('SIGTERM')
    expect(heard).toEqual(['drain'])
  })

  it('drains on SIGQUIT as on SIGTERM', () => {
    const { source, heard } = startSignals()
    source.emit('SIGQUIT')
    expect(heard).toEqual(['drain'])
  })

  it('forces the end on a later signal', () => {
    const { source, heard, advance } = startSignals()
    source.emit('SIGTERM')
    advance(SAME_SIGNAL_MS + 1)
    source.emit('SIGTERM')
    expect(heard).toEqual(['drain', 'force'])
  })

  it('stops listening when told to', () => {
    const { source, heard, stop } = startSignals()
    stop()
    source.emit('SIGTERM')
    expect(heard).toEqual([])
  })
})
