import type { Recorder, TunnelEvent } from '../../contracts/recorder.ts'

/** One recorder that tells several: the log and the metrics. */
export function fanOut(metrics: Omit<Recorder, 'note'>, log: Recorder): Recorder {
  return {
    decision: (event) => {
      metrics.decision(event)
      log.decision(event)
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
    tokenCache: (outcome) => metrics.tokenCache(outcome),
    note: (level, event, facts) => log.note(level, event, facts),
  }
}

/** Passes on to whoever records at the moment: for those who live longer than one configuration. */
export class RelayRecorder implements Recorder {
  to: Recorder | undefined

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

  tokenCache(outcome: 'hit' | 'miss'): void {
    this.to?.tokenCache(outcome)
  }

  note(...told: Parameters<Recorder['note']>): void {
    this.to?.note(...told)
  }
}
