/** Opens a Postgres store: for the service, and for commands. */
import type { Clock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/faults.ts'
import type { ClockOffset } from '../../kernel/store-clock.ts'
import { StoreError } from '../store-error.ts'
import type { TroubleListener } from '../trouble.ts'
import { placeOf, planPostgres, type PostgresConfig } from './config.ts'
import { PostgresLink } from './link.ts'
import { ensureTables } from './migrations.ts'
import { PostgresStore } from './store.ts'

export interface OpenPostgresOptions {
  readonly onTrouble?: TroubleListener | undefined
  /** Milliseconds for one verb, instead of `deadline`. */
  readonly answerWithin?: number | undefined
  /** Takes what is read of the store's clock. */
  readonly offset?: ClockOffset | undefined
}

/** Makes the tables if they are missing. Rejects with StoreError if the database cannot be used. */
export const openPostgres = (
  config: PostgresConfig,
  clock: Clock,
  options: OpenPostgresOptions = {},
): Promise<PostgresStore> => open(config, clock, options, ensureTables)

/** Makes and changes nothing. Rejects with StoreError if the database cannot be used, and if it has no tables. */
export const openPostgresToRead = (config: PostgresConfig, clock: Clock): Promise<PostgresStore> =>
  open(config, clock, {}, () => Promise.resolve())

async function open(
  config: PostgresConfig,
  clock: Clock,
  { onTrouble, answerWithin, offset }: OpenPostgresOptions,
  prepare: (link: PostgresLink) => Promise<void>,
): Promise<PostgresStore> {
  const plan = { ...planPostgres(config), ...(answerWithin !== undefined && { deadline: answerWithin }) }
  let link: PostgresLink | undefined
  try {
    const clockRead = (now: number, took: number): void => {
      const answeredAt = clock.monotonic()
      offset?.read(now, answeredAt - took, answeredAt)
    }
    link = await PostgresLink.open(plan, { trouble: onTrouble, clockRead })
    await prepare(link)
    return await PostgresStore.open(link, clock)
  } catch (thrown) {
    await link?.close()
    if (!(thrown instanceof Fault)) throw thrown
    throw new StoreError(`The store (${placeOf(config)}) cannot be opened: ${thrown.message}`, {
      cause: thrown,
    })
  }
}
