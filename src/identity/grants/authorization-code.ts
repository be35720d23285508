import { hash } from 'node:crypto'
import type { Client, User } from '../../base/contracts/people/people.ts'
import type { NewRecord } from '../../base/contracts/records/store.ts'
import type { RevocationCause } from '../../base/contracts/records/tokens.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import { equalSecrets } from '../../base/kernel/ids.ts'
import { noteCall, orUnavailable } from '../dependencies/dependencies.ts'
import { flow, type GrantChosen, type Granted, type Step, type StepDependencies } from '../steps/endpoint.ts'
import { replayed } from '../steps/records.ts'
import { requireResource } from '../dependencies/resource.ts'
import {
  type GrantedScope,
  hasValue,
  limitToClient,
  limitToUser,
  readGrantedScope,
} from '../dependencies/scopes.ts'
import { requireParam, requireParams } from '../steps/read-form.ts'
import type { CodeRecord, CodeUse, FoundCode } from '../stored/codes.ts'
import { lifetimeOf } from '../tokens/signed-tokens.ts'

/** The cause of a revocation that is recorded when a code is used twice. */
const USED_AGAIN: RevocationCause = { via: 'second use of the code' }

interface CodeFound extends GrantChosen {
  readonly code: FoundCode
  /** Undefined if the code's user is gone or may hold no tokens. */
  readonly holder: User | undefined
}

interface UserFound extends CodeFound {
  readonly user: User
}

const UNKNOWN = 'unknown or expired code'

const refuse = (detail: string, cause?: unknown): Fault => new Fault('invalid_grant', { detail, cause })

/** The code is known, and this client's; another client's attempt changes nothing (C6.1.6). */
const findCode: Step<GrantChosen, CodeFound> = async (context, dependencies) => {
  const { attempt, client, params } = context
  const code = await dependencies.codes.find(requireParam(params, 'code'))
  if (code === undefined) throw refuse(UNKNOWN)
  if (code.record.client !== client.id) throw refuse('the code of another client')
  attempt.subject = code.record.subject
  if (code.entry.usedAt !== undefined)
    throw await endReplayed(code, code.record.settled ? 'settled' : 'spent', context, dependencies)
  const holder = await orUnavailable(dependencies.people.findUserBySubject(code.record.subject))
  return { ...context, code, holder }
}

/** An attempt by its own client uses up the code, also if it is refused; failures on our side do not (C6.1.6). */
const takingIfRefused =
  (steps: Step<CodeFound, Granted>): Step<CodeFound, Granted> =>
  async (context, dependencies) => {
    try {
      return await steps(context, dependencies)
    } catch (thrown) {
      if (toFault(thrown).status < 500)
        await requireFirst(await dependencies.codes.consume(context.code), context, dependencies)
      throw thrown
    }
  }

/** A second use ends what the first one gave: one of the two has stolen the code (C6.1.6, RFC 6749 §4.1.2). */
async function requireFirst(use: CodeUse, context: CodeFound, dependencies: StepDependencies): Promise<void> {
  if (use === 'gone') throw refuse(UNKNOWN)
  if (use !== 'first') throw await endReplayed(context.code, use, context, dependencies)
}

async function endReplayed(
  code: FoundCode,
  use: 'settled' | 'spent',
  context: GrantChosen,
  dependencies: StepDependencies,
): Promise<Fault> {
  const { client, family, subject } = code.record
  const end = () => dependencies.tokenRevoker.end({ family }, { cause: USED_AGAIN })
  const ended = use === 'settled' ? await end() : undefined
  await replayed({ event: 'code.replayed', family, subject, ended }, context, dependencies)
  dependencies.recorder.replay?.('code')
  noteCall(context.exchange, dependencies, 'warn', 'code_replayed', { family, client, subject })
  return refuse('the code was used before')
}

/** RFC 6749 §4.1.3, RFC 7636 §4.6, RFC 9449 §10. */
const checkBinding: Step<CodeFound, CodeFound> = (context, dependencies) => {
  const { code, params, proof } = context
  requireResource(params.get('resource'), readGrantedScope(code.record.scope), dependencies)
  if (requireParam(params, 'redirect_uri') !== code.record.redirectUri)
    throw refuse('another redirect_uri than that of the request')
  if (code.record.jkt !== undefined && code.record.jkt !== proof?.jkt)
    throw refuse('no proof of the key that the request named')
  if (!provesChallenge(params.get('code_verifier'), code.record)) throw refuse('code_verifier')
  return context
}

const VERIFIER = /^[A-Za-z0-9\-._~]{43,128}$/

/** A verifier without a challenge is refused too: somebody took the challenge out of the request (C6.2.1, RFC 9700 §4.8.2). */
function provesChallenge(verifier: string | undefined, { challenge }: CodeRecord): boolean {
  if (verifier === undefined || challenge === null) return verifier === undefined && challenge === null
  const proof = hash('sha256', verifier, 'base64url')
  return VERIFIER.test(verifier) && equalSecrets(proof, challenge)
}

const requireUser: Step<CodeFound, UserFound> = (context) => {
  const { holder: user } = context
  if (user === undefined) throw refuse('its user is gone or may no longer')
  return { ...context, user }
}

const grantScope: Step<UserFound, Granted> = async (context, dependencies) => {
  const { client, code, user } = context
  const { authTime, family, nonce, sid, words } = code.record
  const scope = await scopeOf(code.record, client, user, dependencies)
  const openid = hasValue(scope, 'openid')
  const take = async (begun: readonly NewRecord[]): Promise<void> => {
    const expiresAt = dependencies.clock.now() + lifeOfAll(scope, client, dependencies)
    await requireFirst(await dependencies.codes.redeem(code, begun, expiresAt), context, dependencies)
  }
  return {
    ...context,
    authTime,
    scope,
    openid,
    nonce: nonce ?? undefined,
    sid,
    ...(words !== undefined && { words }),
    refresh: { kind: 'open' },
    family,
    take,
  }
}

/** The scope that was consented to, limited to the values that client and user may still have. */
async function scopeOf(
  { scope }: CodeRecord,
  client: Client,
  user: User,
  dependencies: StepDependencies,
): Promise<GrantedScope> {
  const { catalogue, places } = dependencies
  try {
    const ofClient = await limitToClient(readGrantedScope(scope), client, catalogue, places)
    return limitToUser(ofClient, user, catalogue)
  } catch (cause) {
    if (toFault(cause).status >= 500) throw cause
    throw refuse('nothing of what was granted may be had any more', cause)
  }
}

/** The time from here to the issue of the tokens, generously, in milliseconds. */
const MARGIN = 5000

/** How long it takes until the last of the tokens has expired, in milliseconds. */
const lifeOfAll = (scope: GrantedScope, client: Client, { config }: StepDependencies): number =>
  hasValue(scope, 'offline_access')
    ? config.refreshToken.lifetime
    : MARGIN + lifetimeOf(client, config) * 1000

/** The grant `authorization_code` (C6.1.6), in the order of C6.1.0. */
export const redeemCode: Step<GrantChosen, Granted> = flow(
  requireParams<GrantChosen>('code'),
  findCode,
  takingIfRefused(flow(checkBinding, requireUser, grantScope)),
)
