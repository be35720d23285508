import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { type OpenOptions, StoreError, type TroubleListener } from '../../state/stores/link/store-error.ts'
import { storeLocation, planPostgres, type PostgresConfig } from './schema.ts'
import { PostgresLink } from './link.ts'
import { isUsable, migrate, readSchema } from './migrations.ts'
import { readStatement } from './statements.ts'
import { PostgresStore } from './store.ts'

/** Milliseconds that a migration may take. */
const MIGRATE_WITHIN = 600_000
/** Milliseconds between two looks whether somebody has migrated the tables. */
const LOOK_AGAIN = 1000

/** Makes or migrates the tables, or waits for them (`migrate: never`). Rejects with StoreError. */
export const openPostgres = (
  config: PostgresConfig,
  clock: Clock,
  options: OpenOptions = {},
): Promise<PostgresStore> => open(config, clock, options, (link) => prepare(link, config, options))

/** Makes and changes no tables. Rejects with StoreError if the database cannot be used, and if it has no tables. */
export const openPostgresToRead = (
  config: PostgresConfig,
  clock: Clock,
  options: OpenOptions = {},
): Promise<PostgresStore> => open(config, clock, options, (link) => requireTables(link, config))

export async function requireTables(link: PostgresLink, config: PostgresConfig): Promise<void> {
  if (isUsable(await readSchema(link))) return
  throw new StoreError(
    `The store (${storeLocation(config)}) has no tables, or old ones: run \`postern migrate\`.`,
  )
}

/** The record that is in the store until a copy into it is whole. */
export const UNFINISHED = `kind = 'store_copy' AND key = 'unfinished'`

/** Rejects with StoreError if a copy into the store was begun and has not ended. */
async function requireWhole(link: PostgresLink): Promise<void> {
  const statement = readStatement(
    'copy_unfinished',
    `SELECT 1 FROM ${link.plan.schema}.record WHERE ${UNFINISHED}`,
  )
  if ((await link.run(statement, [])).rows.length === 0) return
  throw new StoreError(
    'A copy into the store was begun and has not ended. Wait for it, or run `postern store copy` again.',
  )
}

/** `within` milliseconds. Rejects with StoreError. The second connection renews a lease meanwhile. */
export async function withLongStatements<T>(
  config: PostgresConfig,
  work: (link: PostgresLink) => Promise<T>,
  within = MIGRATE_WITHIN,
): Promise<T> {
  const plan = { ...planPostgres(config), connections: 2 }
  const patience = { deadline: within, answerWithin: within }
  return withWords(config, async () => {
    const link = await PostgresLink.open({ ...plan, ...patience })
    return work(link).finally(() => link.close())
  })
}

async function prepare(
  link: PostgresLink,
  config: PostgresConfig,
  { onTrouble }: OpenOptions,
): Promise<void> {
  if (isUsable(await readSchema(link))) return
  if (config.migrate === 'auto') {
    await withLongStatements(config, (patient) => migrate(patient))
    return
  }
  onTrouble?.('its tables are missing or old, and store.migrate is never: run `postern migrate`')
  while (!(await areMade(link))) await pause(LOOK_AGAIN)
  onTrouble?.(undefined)
}

/** A database that goes away meanwhile is waited for too. */
const areMade = (link: PostgresLink): Promise<boolean> =>
  readSchema(link).then(
    (state) => isUsable(state),
    (thrown: unknown) => {
      if (thrown instanceof Fault) return false
      throw thrown
    },
  )

/** Waits for tables that another makes (`migrate: never`), and reports that it waits. Rejects with StoreError. */
export async function awaitTables(config: PostgresConfig, onTrouble: TroubleListener): Promise<void> {
  if (config.migrate === 'auto') return
  const plan = { ...planPostgres(config), connections: 1 }
  await withWords(config, async () => {
    const link = await PostgresLink.open(plan)
    await prepare(link, config, { onTrouble }).finally(() => link.close())
  })
}

async function open(
  config: PostgresConfig,
  clock: Clock,
  { onTrouble, answerWithin, offset }: OpenOptions,
  before: (link: PostgresLink) => Promise<void>,
): Promise<PostgresStore> {
  const plan = { ...planPostgres(config), ...(answerWithin !== undefined && { deadline: answerWithin }) }
  const clockRead = (now: number, took: number): void => {
    const answeredAt = clock.monotonic()
    offset?.read(now, answeredAt - took, answeredAt)
  }
  return withWords(config, async () => {
    const link = await PostgresLink.open(plan, { trouble: onTrouble, clockRead })
    try {
      await before(link)
      await requireWhole(link)
      return await PostgresStore.open(link, clock, offset)
    } catch (thrown) {
      await link.close()
      throw thrown
    }
  })
}

/** An outage as a StoreError that says where. */
async function withWords<T>(config: PostgresConfig, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown
    throw new StoreError(`The store (${storeLocation(config)}) cannot be used: ${thrown.message}`, {
      cause: thrown,
    })
  }
}
