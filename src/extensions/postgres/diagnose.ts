/** Says in sentences for operators whether a Postgres can be used as a store. Changes nothing. */
import { type Diagnosis, failing, fine, warning } from '../../base/kernel/diagnosis.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { StoreError } from '../../state/stores/link/store-error.ts'
import { storeLocation, planPostgres, type PostgresConfig } from './schema.ts'
import { PostgresLink } from './link.ts'
import { isUsable, NEWEST_TABLES, readSchema } from './migrations.ts'
import { readStatement } from './statements.ts'

/**
 * The least difference of clocks to tell, in milliseconds. The nodes go by the store's clock, so it harms nothing but
 * the times in logs.
 */
const WORTH_TELLING = 1000

/** @param processes of one node that connect */
export async function diagnose(config: PostgresConfig, processes: number): Promise<readonly Diagnosis[]> {
  const place = storeLocation(config)
  const plan = planPostgres(config)
  let link: PostgresLink
  try {
    link = await PostgresLink.open({ ...plan, connections: 1 })
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown
    return [failing(`${place} cannot be used: ${thrown.message}`)]
  }
  try {
    return [
      fine(
        `${place} answers as ${plan.user}, ${plan.tls === false ? 'without TLS' : 'over TLS'}, and takes changes`,
      ),
      ...(await schemaFindings(link, config)),
      ...(await rightFindings(link)),
      ...(await connectionFindings(link, (plan.connections + 1) * processes)),
      ...(await clockFindings(link)),
    ]
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown
    return [failing(`${place} does not answer as it should: ${thrown.message}`)]
  } finally {
    await link.close()
  }
}

async function schemaFindings(link: PostgresLink, { migrate, schema }: PostgresConfig): Promise<Diagnosis[]> {
  const state = await readSchema(link)
  try {
    if (isUsable(state))
      return [
        fine(
          `The tables in schema ${schema} are of version ${state.version}; this Postern knows ${NEWEST_TABLES}`,
        ),
      ]
  } catch (thrown) {
    if (!(thrown instanceof StoreError)) throw thrown
    return [failing(thrown.message)]
  }
  const what = state.version === 0 ? 'There are no tables yet' : `The tables are of version ${state.version}`
  const text = `${what}, and this Postern needs version ${NEWEST_TABLES}`
  if (migrate === 'never') return [failing(`${text}, but store.migrate is never: run \`postern migrate\``)]
  return (await mayMakeTables(link))
    ? [fine(`${text}: the first node that starts makes them`)]
    : [
        failing(
          `${text}, but the role has no right to make them (CREATE in schema ${schema}, or in the database)`,
        ),
      ]
}

async function mayMakeTables(link: PostgresLink): Promise<boolean> {
  const statement = readStatement(
    'may_create',
    `SELECT CASE WHEN to_regnamespace($1) IS NULL THEN has_database_privilege(current_database(), 'CREATE')
       ELSE has_schema_privilege($1, 'CREATE') END AS may`,
  )
  return (await link.run(statement, [link.plan.schema])).rows[0]?.['may'] === true
}

const RIGHTS = ['SELECT', 'INSERT', 'UPDATE', 'DELETE']
const TABLES = ['record', 'feed', 'change', 'lease', 'node', 'bucket', 'lockout', 'meta']

/** Findings about the rights to tables that exist. The role that makes the tables has all rights to them. */
async function rightFindings(link: PostgresLink): Promise<Diagnosis[]> {
  const { schema } = link.plan
  const statement = readStatement(
    'rights',
    `SELECT name, r FROM unnest($1::text[]) AS name, unnest($2::text[]) AS r
     WHERE to_regclass($3 || '.' || name) IS NOT NULL AND NOT has_table_privilege($3 || '.' || name, r)`,
  )
  const { rows } = await link.run(statement, [TABLES, RIGHTS, schema])
  if (rows.length === 0) return [fine('The role has the rights that it needs')]
  const missing = rows.map((row) => `${String(row['r'])} on ${schema}.${String(row['name'])}`)
  return [failing(`The role lacks rights: ${missing.join(', ')}`)]
}

async function connectionFindings(link: PostgresLink, perNode: number): Promise<Diagnosis[]> {
  const statement = readStatement('max_connections', `SELECT current_setting('max_connections') AS most`)
  const most = Number((await link.run(statement, [])).rows[0]?.['most'])
  const text = `A node makes up to ${perNode} connections, and the database takes ${most}`
  return most / perNode < 2
    ? [warning(`${text}: too few for two nodes`)]
    : [fine(`${text}: enough for ${Math.floor(most / perNode)} nodes`)]
}

async function clockFindings(link: PostgresLink): Promise<Diagnosis[]> {
  const offset = await link.readClock()
  const seconds = (Math.abs(offset) / 1000).toFixed(1)
  const text = `The clock of the database is ${seconds} s ${offset < 0 ? 'behind' : 'ahead of'} this machine’s`
  return Math.abs(offset) > WORTH_TELLING
    ? [warning(`${text}. Nodes go by the database’s; times in logs and the audit trail are this machine’s`)]
    : [fine(text)]
}
