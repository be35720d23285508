import { expect } from 'vitest'
import type { DescribedCall, Explanation } from '../../src/base/contracts/calls/explanation.ts'
import type { FaultCode } from '../../src/base/kernel/faults.ts'
import type { Sent } from './requests.ts'
import type { StartedPostern } from './start-postern.ts'

/** The description of a request. One without Host is described by an empty one, which is as bad. */
export const described = ({ method = 'GET', target, headers = {}, body = '' }: Sent): DescribedCall => ({
  method,
  path: target,
  headers: Object.entries(headers).flatMap(([name, value]) =>
    value === undefined && name.toLowerCase() === 'host'
      ? [[name, ''] as const]
      : [value ?? []].flat().map((each) => [name, each] as const),
  ),
  body: Buffer.from(body),
  from: undefined,
  token: undefined,
  caller: undefined,
})

/** What the one worker of a Postern explains of a request. */
export const explain = (
  { worker }: Pick<StartedPostern, 'worker'>,
  sent: Sent,
  more: Partial<DescribedCall> = {},
): Promise<Explanation> => worker!.explain({ ...described(sent), ...more })

/** That the explanation's first failure is this one; undefined: that the call is let in. */
export async function expectExplained(
  gateway: Pick<StartedPostern, 'worker'>,
  sent: Sent,
  fault: FaultCode | undefined,
): Promise<Explanation> {
  const explanation = await explain(gateway, sent)
  const { outcome, checks, refusal } = explanation
  const first = checks.find(({ verdict }) => verdict === 'failed')
  expect([outcome, first?.reason, refusal?.reason], JSON.stringify(explanation, null, 1)).toEqual([
    fault === undefined ? 'let in' : 'refused',
    fault,
    fault,
  ])
  return explanation
}
