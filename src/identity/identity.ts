import { openConsents } from './browser/consents.ts'
import { openSessions, sessionCookie } from './browser/sessions.ts'
import { ENDPOINTS } from './endpoints.ts'
import { openClientFailures } from './guessing/failures.ts'
import { holdersOf, type IdentityDeps } from './dependencies.ts'
import type { Endpoint, StepDependencies } from './endpoint.ts'
import { openFamiliarNetworks } from './guessing/familiar-networks.ts'
import { describeService } from './endpoints/discovery.ts'
import { guardGuessing } from './guessing/guessing.ts'
import { LocalLockouts } from './guessing/lockouts.ts'
import { compileTheme } from './pages/theme.ts'
import { openCodes } from './tokens/codes.ts'
import { openFamilies } from './tokens/families.ts'

export interface Identity {
  readonly room: StepDependencies
  /** By canonical path. */
  readonly endpoints: ReadonlyMap<string, Endpoint>
}

/** Compiles identity for one configuration: paths, discovery document and state of its own. Once, at load. */
export function openIdentity(deps: IdentityDeps): Identity {
  const issuerPath = new URL(deps.urls.issuer).pathname.replace(/\/$/, '')
  const room: StepDependencies = {
    ...deps,
    people: holdersOf(deps.people),
    families: openFamilies(deps),
    codes: openCodes(deps),
    sessions: openSessions(deps),
    consents: openConsents(deps),
    cookie: sessionCookie(deps.urls.issuer),
    look: compileTheme(deps.config.pages, issuerPath),
    networks: openFamiliarNetworks(deps),
    clientFailures: openClientFailures(deps),
    guessing: guardGuessing(deps.attempts ?? new LocalLockouts(deps.config.guessing, deps.clock)),
    metadata: JSON.stringify(describeService(deps, ENDPOINTS)),
  }
  return { room, endpoints: new Map(ENDPOINTS.map((endpoint) => [endpoint.path(issuerPath), endpoint])) }
}
