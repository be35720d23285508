import type { HashOwner } from '../../contracts/people.ts'
import { networkOf } from '../../http/network.ts'
import type { IdentityDeps } from '../deps.ts'
import { FailureTable } from './failure-table.ts'

/** Wrong secrets in a row from which on a client id is doubted where it was sent from. */
const DOUBTED_FROM = 5
/** Pairs of client id and network, in each process. */
const REMEMBERED = 20_000
/** Characters of an id that count: ids are the guesser's to choose, and so is their length. */
const LONGEST_ID = 128

/**
 * Wrong client secrets, by id and network. Nobody is slowed down or refused by them (a client's id is no secret, and
 * anybody can send wrong ones): they decide in which queue a secret waits to be hashed, so that wrong ones in bulk
 * keep nobody else from logging in (C6.3.5). Counted for ids that nobody has as well (T3.9). Each process counts alone.
 */
export interface ClientFailures {
  asker(id: string, address: string): HashOwner
  /** The secret was wrong, or right: then what was counted is forgotten. */
  count(id: string, address: string, right: boolean): void
}

export function openClientFailures({
  clock,
  config,
}: Pick<IdentityDeps, 'clock' | 'config'>): ClientFailures {
  const failures = new FailureTable<undefined>({
    clock,
    most: REMEMBERED,
    forget: () => config.guessing.forget,
  })
  const nameOf = (id: string, address: string): string =>
    JSON.stringify([id.slice(0, LONGEST_ID), networkOf(address)])
  return {
    asker(id, address) {
      const name = nameOf(id, address)
      return { name, doubted: (failures.find(name)?.failures ?? 0) >= DOUBTED_FROM }
    },
    count(id, address, right) {
      const name = nameOf(id, address)
      if (right) failures.forget(name)
      else failures.fail(name, undefined)
    },
  }
}
