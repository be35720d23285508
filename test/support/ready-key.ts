/** An RSA key, which a service would make at its first start: 50 ms of a core and more, for each service of each test. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { epochSeconds, systemClock, type Clock } from '../../src/base/kernel/clock.ts'
import type { Jwk } from '../../src/base/kernel/jwk.ts'
import { generatePrivateJwk } from '../../src/identity/keys/verify/signatures.ts'

/** More than a test has services at once, so that none of them trusts another's key. */
const KEYS = 4
const made: Promise<Jwk>[] = []
let next = 0

function keyInTurn(): Promise<Jwk> {
  const at = next++ % KEYS
  return (made[at] ??= generatePrivateJwk('RS256'))
}

/** Puts one of the keys of this process into a data folder, as a service would that starts now. It makes the others. */
export async function giveKey(data: string, clock: Clock = systemClock): Promise<void> {
  const now = epochSeconds(clock)
  const jwk = { ...(await keyInTurn()), alg: 'RS256', use: 'sig', iat: now, nbf: now }
  await mkdir(join(data, 'keys'), { mode: 0o700 })
  await writeFile(join(data, 'keys', 'RS256-1.jwk'), JSON.stringify(jwk), { mode: 0o600 })
}
