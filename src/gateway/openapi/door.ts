import type { Answer, Door, Exchange } from '../../base/contracts/calls/exchange.ts'
import { type Recorder, WITHOUT_ACTION } from '../../base/contracts/records/recorder.ts'
import type { Cors } from '../../base/http/head/cors.ts'
import { answerReady, type ReadyDocument } from '../../base/http/head/entity-tag.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import type { FaultRenderer } from '../decide/represent.ts'

export interface ServedDescription {
  readonly document: ReadyDocument | undefined
  readonly cors: Cors | undefined
  readonly clock: Clock
  readonly recorder: Pick<Recorder, 'decision'>
  readonly renderFault: FaultRenderer
}

const METHODS = ['GET', 'HEAD']

/**
 * The door of the OpenAPI document (C11.3.8). As the metadata of identity, it is public and no maintenance closes it.
 * @param current called once per call
 * @param elsewhere answers where there is no document
 */
export const descriptionDoor =
  (current: () => ServedDescription, elsewhere: Door): Door =>
  (exchange) => {
    const served = current()
    const { document } = served
    if (document === undefined) return elsewhere(exchange)
    const { head } = exchange
    let fault: Fault | undefined
    let answer: Answer
    try {
      answer = answerAt(exchange, document, served)
    } catch (thrown) {
      fault = toFault(thrown)
      answer = served.renderFault(fault, head.headers.accept)
    }
    served.recorder.decision({
      exchange,
      door: 'api',
      fault,
      status: answer.status,
      ...WITHOUT_ACTION,
      totalMs: served.clock.monotonic() - exchange.startedAt,
    })
    return { ...answer, headers: served.cors?.onAnswer(head, answer.headers) ?? answer.headers }
  }

function answerAt({ head, refusal }: Exchange, document: ReadyDocument, { cors }: ServedDescription): Answer {
  if (refusal !== undefined) throw refusal
  if (cors?.isPreflight(head) === true) return { status: 204, headers: cors.preflight(head), body: undefined }
  if (!METHODS.includes(head.method)) throw new Fault('method_not_allowed', { allow: METHODS })
  return answerReady(document, head)
}
