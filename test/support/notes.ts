import type { Recorder } from '../../src/base/contracts/records/recorder.ts'

/** The `note` of a recorder, which keeps the names of the events. */
export function keepNotes(): Pick<Recorder, 'note'> & { readonly events: string[] } {
  const events: string[] = []
  return { events, note: (_level, event) => events.push(event) }
}
