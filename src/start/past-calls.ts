/** Calls of the past, and the decision about them that is asked for again (C14.4). */
import type { DescribedCall } from '../contracts/explanation.ts'
import { explainAgain, type ExplainParts } from '../gateway/explain/explain.ts'
import type { RecalledCall } from '../processes/worker-pool.ts'
import type { KeptCall } from '../watch/past-calls.ts'

type Described = Pick<KeptCall, 'method' | 'accept' | 'contentType' | 'websocket' | 'clientAddress'> & {
  readonly path: string
}

const UPGRADE: DescribedCall['headers'] = [
  ['Connection', 'Upgrade'],
  ['Upgrade', 'websocket'],
]

const headersOf = (named: Readonly<Record<string, string | undefined>>): DescribedCall['headers'] =>
  Object.entries(named).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))

/** A call that is kept, and what would be decided about it now; that is undefined if its path is not known. */
export async function recallCall(
  parts: ExplainParts,
  { principal, clientAddress, ...call }: KeptCall,
): Promise<RecalledCall> {
  const { path } = call
  if (path === undefined) return { call, now: undefined }
  return { call, now: await explainAgain(parts, describePast({ ...call, path, clientAddress }), principal) }
}

/** Without its body and its other headers, which are not kept. */
const describePast = ({
  method,
  path,
  accept,
  contentType,
  websocket,
  clientAddress,
}: Described): DescribedCall => ({
  ...{ method, path, from: clientAddress, body: new Uint8Array(), token: undefined, caller: undefined },
  headers: [...headersOf({ Accept: accept, 'Content-Type': contentType }), ...(websocket ? UPGRADE : [])],
})
