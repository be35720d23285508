import { query, type PostgresCluster } from '../../../support/postgres.ts'

/**
 * Gives the database a clock that can be moved: a function before that of Postgres, for one role. It moves for all connections at
 * once, as a clock does.
 * @param name of the role, which is made if it is not there, and of the schema of the function
 */
export function giveClock(cluster: PostgresCluster, name: string): { readonly jump: (ms: number) => void } {
  query(
    cluster,
    `DO $$ BEGIN CREATE ROLE ${name} SUPERUSER LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
     CREATE SCHEMA ${name};
     CREATE TABLE ${name}.ahead (ms float8);
     INSERT INTO ${name}.ahead VALUES (0);
     CREATE FUNCTION ${name}.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
       $$ SELECT pg_catalog.clock_timestamp() + (SELECT ms FROM ${name}.ahead) * interval '1 millisecond' $$;
     ALTER ROLE ${name} SET search_path = ${name}, pg_catalog`,
  )
  return { jump: (ms) => void query(cluster, `UPDATE ${name}.ahead SET ms = ${ms}`) }
}
