import type { Answer } from '../../contracts/exchange.ts'
import { type Fault, toFault } from '../../kernel/faults.ts'
import type { Arrived, Granted, GrantChosen } from '../context.ts'
import type { Step } from '../endpoint.ts'
import { GRANTS } from '../grants/grants.ts'

/** Goes on with the steps of the grant that was chosen. */
export const redeemGrant: Step<GrantChosen, Granted> = (context, room) => {
  const row = GRANTS.get(context.grant)
  if (row === undefined) throw new TypeError(`no such grant: ${context.grant}`)
  return row.redeem(context, room)
}

/** Tells the recorder of every token issued or refused (C12). */
export const recordTokens =
  (steps: Step<Arrived, Answer>): Step<Arrived, Answer> =>
  async (arrived, room) => {
    const { exchange, attempt } = arrived
    const record = (result: string, fault: Fault | undefined): void =>
      room.recorder.token({ exchange, ...attempt, result, fault })
    try {
      const answer = await steps(arrived, room)
      record('issued', undefined)
      return answer
    } catch (thrown) {
      const fault = toFault(thrown)
      record(fault.row.oauth, fault)
      throw fault
    }
  }
