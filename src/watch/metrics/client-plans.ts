import { CLIENT_RESULTS } from '../../contracts/principal.ts'
import { UNKNOWN } from './label-places.ts'
import { MetricPlan, type Plan } from './metric-counts.ts'
import { FAMILIES } from './metric-families.ts'

/**
 * The clients that have series of their own: the first ones of the configuration, then the first ones that were counted,
 * by whichever process. None is ever replaced, so that its counter neither falls nor moves to another client.
 */
export class ClientPlans {
  readonly #others = planOf(UNKNOWN)
  readonly #own = new Map<string, Plan>()
  #most = 0

  /** Sets how many clients may have series. Those that have them keep them, also if that is less. */
  limit(most: number): void {
    this.#most = most
  }

  /** The plan of a client's three cells, in the order of `CLIENT_RESULTS`. Always the same object for the same series. */
  of(client: string): Plan {
    const known = this.#own.get(client)
    if (known !== undefined) return known
    if (client === UNKNOWN || this.#own.size >= this.#most) return this.#others
    const made = planOf(client)
    this.#own.set(client, made)
    return made
  }
}

function planOf(client: string): Plan {
  const plan = new MetricPlan()
  plan.plan(FAMILIES.clientDecisions, { client: [client] }, { class: CLIENT_RESULTS })
  return plan.blocks
}
