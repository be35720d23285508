import type { Recorder, Replayed, TunnelEvent, UpstreamEvent } from '../../base/contracts/records/recorder.ts'

type Note = Parameters<Recorder['note']>

/** Notes that wait for the first recorder. */
const EARLY_NOTES = 100

/**
 * Passes each event to the recorder in force. For parts that outlive a configuration. Notes that are made before there is a
 * recorder (of a store that is opened and has a defect) are passed to the first one.
 */
export class RelayRecorder implements Recorder {
  #to: Recorder | undefined
  #early: Note[] = []

  get to(): Recorder | undefined {
    return this.#to
  }

  set to(recorder: Recorder | undefined) {
    this.#to = recorder
    for (const note of this.#early.splice(0)) this.note(...note)
  }

  decision(event: Parameters<Recorder['decision']>[0]): void {
    this.to?.decision(event)
  }

  token(event: Parameters<Recorder['token']>[0]): void {
    this.to?.token(event)
  }

  backend(event: Parameters<Recorder['backend']>[0]): void {
    this.to?.backend(event)
  }

  tunnel(event: TunnelEvent): void {
    this.to?.tunnel?.(event)
  }

  upstream(backend: string, event: UpstreamEvent): void {
    this.to?.upstream?.(backend, event)
  }

  tokenCache(outcome: 'hit' | 'miss'): void {
    this.to?.tokenCache(outcome)
  }

  replay(of: Replayed): void {
    this.to?.replay?.(of)
  }

  count(of: string, ...labels: readonly string[]): void {
    this.to?.count?.(of, ...labels)
  }

  note(...note: Note): void {
    if (this.#to !== undefined) this.#to.note(...note)
    else if (this.#early.length < EARLY_NOTES) this.#early.push(note)
  }
}

export function fanOut(
  metrics: Omit<Recorder, 'note'>,
  log: Recorder,
  past: Pick<Recorder, 'decision'>,
  recent: Pick<Recorder, 'decision'>,
): Recorder {
  return {
    decision: (event) => {
      metrics.decision(event)
      log.decision(event)
      past.decision(event)
      recent.decision(event)
    },
    token: (event) => {
      metrics.token(event)
      log.token(event)
    },
    backend: (event) => {
      metrics.backend(event)
      log.backend(event)
    },
    tunnel: (event) => {
      metrics.tunnel?.(event)
      log.tunnel?.(event)
    },
    upstream: (backend, event) => metrics.upstream?.(backend, event),
    tokenCache: (outcome) => metrics.tokenCache(outcome),
    replay: (of) => metrics.replay?.(of),
    count: (of, ...labels) => metrics.count?.(of, ...labels),
    note: (level, event, facts) => log.note(level, event, facts),
  }
}
