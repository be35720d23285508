import type { Release } from '../contracts/admission.ts'
import type { Backend, Call, UpgradeOutcome } from '../contracts/backend.ts'
import type { Answer, Exchange, Upgrade } from '../contracts/exchange.ts'
import { Fault, toFault } from '../kernel/faults.ts'
import { carryOut, occupy, prepareCall } from './carry-out.ts'
import type { Findings } from './findings.ts'
import type { Decision } from './pipeline.ts'
import { refuse } from './represent.ts'
import type { Runtime } from './runtime.ts'

const SWITCHED = 101

/**
 * What follows the decision about an upgrade, which is the decision about any call: the backend takes the connection
 * over, or refuses it in an answer like all others.
 */
export async function carryUpgrade(
  runtime: Runtime,
  exchange: Exchange,
  decision: Decision,
  findings: Findings,
): Promise<Answer> {
  const { operation } = decision
  // A reload may have come between the look that took the upgrade and the decision: then it is ignored (T2.5).
  if (exchange.upgrade === undefined || !operation.websocket)
    return carryOut(runtime, exchange, decision, findings)
  const call = await prepareCall(runtime, exchange, decision)
  await runtime.audit.intend(call)
  const release = occupy(runtime.admission, decision)
  try {
    const opened = await hand(runtime, operation.action.backend, call, exchange.upgrade, findings)
    findings.upstreamStatus = opened.kind === 'open' ? SWITCHED : opened.answer.status
    if (opened.kind === 'refused') return (release?.(), refuse(opened.answer, runtime, exchange))
    return open(opened, release)
  } catch (thrown) {
    release?.()
    throw thrown
  }
}

/** The backend's place for a call in flight is held for as long as the tunnel stands. */
function open({ tunnel }: Extract<UpgradeOutcome, { kind: 'open' }>, release: Release | undefined): Answer {
  if (release !== undefined) tunnel.onEnd(release)
  return { status: SWITCHED, headers: {}, body: undefined, tunnel }
}

async function hand(
  { clock, recorder }: Runtime,
  backend: Backend,
  call: Call,
  { socket, head }: Upgrade,
  findings: Findings,
): Promise<UpgradeOutcome> {
  const started = clock.monotonic()
  let outcome = 'answered'
  try {
    if (backend.upgrade === undefined) throw new Fault('internal', { detail: 'a backend without upgrades' })
    return await backend.upgrade(call, socket, head)
  } catch (thrown) {
    outcome = toFault(thrown).code
    throw thrown
  } finally {
    findings.upstreamMs = clock.monotonic() - started
    recorder.backend({ backend: backend.name, outcome, ms: findings.upstreamMs })
  }
}
