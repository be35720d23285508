import type { Exchange } from '../contracts/exchange.ts'
import type { Recorder } from '../contracts/recorder.ts'

/** Notes what a call did or met, under the call's request id: nobody could tell otherwise which call it was (C2.6, C12). */
export function noteCall(
  { id }: Pick<Exchange, 'id'>,
  { recorder }: { readonly recorder: Pick<Recorder, 'note'> },
  level: 'info' | 'warn' | 'error',
  event: string,
  facts: Readonly<Record<string, unknown>>,
): void {
  recorder.note(level, event, { requestId: id, ...facts })
}
