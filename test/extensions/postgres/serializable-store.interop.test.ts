import { describe } from 'vitest'
import { describeStore } from '../../support/suites/store.contract.ts'
import { needing } from '../../support/machine.ts'
import { postgresPlace } from './support/store-places.ts'

// The strictest isolation level refuses more statements (SQLSTATE 40001), and CockroachDB knows no other by default.
describe('with a Postgres', needing('postgresql'), () => {
  describeStore({
    name: 'Postgres store at isolation level SERIALIZABLE',
    durable: true,
    place: () => postgresPlace('serializable'),
  })
})
