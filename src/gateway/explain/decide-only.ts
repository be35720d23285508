/** The decision itself, up to where a backend would be asked: what the caller would be answered (C14.1). */
import type { Exchange } from '../../contracts/exchange.ts'
import { type Fault, toFault } from '../../kernel/faults.ts'
import { readBodyOf } from '../carry-out.ts'
import { VerifyFirst, type Verification } from '../checks.ts'
import { Findings } from '../findings.ts'
import { decidePreflight, decideUserinfo, type Decision } from '../pipeline.ts'
import { decideData } from '../report-only.ts'
import type { DescribedCall, Explanation } from '../../contracts/explanation.ts'
import type { PreviewRuntime } from './preview-runtime.ts'
import type { Credentials } from './progress.ts'

export interface Decided {
  /** What refuses the call; undefined if it is let in. */
  readonly fault: Fault | undefined
  /** What a report-only area would have refused it for. */
  readonly observed: Fault | undefined
}

type Decide = (
  runtime: PreviewRuntime,
  exchange: Exchange,
  findings: Findings,
  verified?: Verification,
) => unknown

/** The kinds of calls that the gateway decides about. */
export type DecidedKind = Exclude<Explanation['kind'], 'identity'>

const DECIDE: Readonly<Record<DecidedKind, Decide>> = {
  call: async (runtime, exchange, findings, verified) => {
    const decision = await decideData(runtime, exchange, findings, verified)
    return decision instanceof VerifyFirst ? decision : goOn(runtime, exchange, decision)
  },
  userinfo: decideUserinfo,
  preflight: (runtime, exchange, _findings, verified) => decidePreflight(runtime, exchange, verified),
}

/** What follows a decision ahead of the backend: the rest of C4.11, and the room of C4.5. */
async function goOn(runtime: PreviewRuntime, exchange: Exchange, decision: Decision): Promise<void> {
  await readBodyOf(runtime, exchange, decision)
  const { observation, operation, principal } = decision
  const refusal = runtime.admission.previewBackend?.(operation.backend.name, principal?.clientKey).refusal
  if (refusal === undefined) return
  if (observation === undefined || refusal.code !== 'too_many_backend_calls') throw refusal
  observation.keep(refusal)
}

/** As the door decides: once without the token's verification and, where that is asked for, once with it. */
export async function decideOnly(
  kind: DecidedKind,
  { runtime, exchange }: { readonly runtime: PreviewRuntime; readonly exchange: Exchange },
  { verified }: Credentials,
  { caller }: DescribedCall,
): Promise<Decided> {
  const decide = DECIDE[kind]
  let findings = new Findings()
  try {
    const first = await decide(runtime, exchange, findings, caller === undefined ? undefined : verified)
    if (first instanceof VerifyFirst) await decide(runtime, exchange, (findings = new Findings()), verified)
    return { fault: undefined, observed: findings.observation?.fault }
  } catch (thrown) {
    return { fault: toFault(thrown), observed: undefined }
  }
}
