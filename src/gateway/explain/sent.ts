import { Buffer, isUtf8 } from 'node:buffer'
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import type { ExplainedSent, Refusal } from '../../base/contracts/calls/explanation.ts'
import { MASK } from '../../base/contracts/calls/templates.ts'
import { type Fault, toFault } from '../../base/kernel/faults.ts'
import { callToBackend } from '../decide/carry-out.ts'
import type { Decision } from '../decide/pipeline.ts'
import type { Runtime } from '../decide/runtime.ts'

/** The answer that a client gets. */
export const answerTo = (fault: Fault): Omit<Refusal, 'clause'> => ({
  reason: fault.code,
  status: fault.status,
  code: fault.row.wire,
  text: fault.publicText,
  retryAfter: fault.facts.retryAfter === undefined ? undefined : Math.ceil(fault.facts.retryAfter),
})

/**
 * The request that the service would be sent for a call that is let in (C14.1). The call is made twice, and never sent: with
 * the real values, which tells whether it could be sent at all, and with `***` in place of what nobody may see.
 */
export async function explainSent(
  runtime: Runtime,
  exchange: Exchange,
  decision: Decision,
): Promise<ExplainedSent> {
  const { operation } = decision
  const { backend } = operation
  if (backend.masked === undefined)
    return {
      unknown:
        backend.sendsAnything === true
          ? `the code of backend ${backend.name} makes what is sent, and is not run`
          : `backend ${backend.name} sends nothing to a service`,
    }
  try {
    const shown = backend.masked(await callToBackend(runtime, exchange, decision))
    const call = await callToBackend(runtime, exchange, {
      ...decision,
      operation: { ...operation, backend: shown },
    })
    const { body, ...sent } = await shown.preview({
      ...call,
      // It may hold the token.
      authorization: call.authorization === undefined ? undefined : MASK,
    })
    if (body.length === 0) return sent
    const bytes = Buffer.from(body)
    return isUtf8(bytes)
      ? { ...sent, body: bytes.toString() }
      : { ...sent, bodyBase64: bytes.toString('base64') }
  } catch (thrown) {
    return { refusal: answerTo(toFault(thrown)) }
  }
}
