import { expect, it } from 'vitest'
import type { Recorder } from '../../../src/base/contracts/records/recorder.ts'
import { RelayRecorder } from '../../../src/operate/watch/recorders.ts'

function noting(): { readonly recorder: Recorder; readonly notes: unknown[] } {
  const notes: unknown[] = []
  const nothing = (): void => undefined
  const recorder: Recorder = {
    ...{ decision: nothing, token: nothing, backend: nothing, tokenCache: nothing },
    note: (...note) => void notes.push(note),
  }
  return { recorder, notes }
}

it('what is noted before the log is open reaches the first log, in order, and no later one', () => {
  const relay = new RelayRecorder()
  const [first, second] = [noting(), noting()]
  relay.note('error', 'store.unfit', { detail: 'it is full' })
  relay.note('warn', 'clock_differs_from_store')
  relay.to = first.recorder
  relay.note('info', 'store.works_again')
  relay.to = second.recorder
  relay.note('info', 'later')
  expect(first.notes).toEqual([
    ['error', 'store.unfit', { detail: 'it is full' }],
    ['warn', 'clock_differs_from_store'],
    ['info', 'store.works_again'],
  ])
  expect(second.notes).toEqual([['info', 'later']])
})

it('of what is noted before the log is open, 100 notes are kept', () => {
  const relay = new RelayRecorder()
  const { recorder, notes } = noting()
  for (let at = 0; at < 150; at += 1) relay.note('info', `note ${at}`)
  relay.to = recorder
  expect(notes).toHaveLength(100)
})
