import { generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import type { Caller, JwsHeader } from '../../base/contracts/people/keys.ts'
import type { Client } from '../../base/contracts/people/people.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { ALGORITHMS } from '../../identity/keys/verify/algorithms.ts'
import { UnexpectedStatus, withoutMark } from '../../identity/keys/remote/fetch-json.ts'
import { admitKeys, JWKS_TYPES, parseJwks } from '../../identity/keys/remote/key-set-reader.ts'
import { type OutboundClient, OutboundRefused } from '../../identity/keys/remote/outbound.ts'
import type { Jwk } from '../../base/kernel/jwk.ts'
import {
  fitsAlgorithm,
  importPublicKey,
  isSignedBy,
  type PublicKey,
} from '../../identity/keys/verify/signatures.ts'
import type { SecuredClient } from './schema.ts'

/** How long keys that were read count, in milliseconds. Then a key that is gone counts no more. */
const FRESH = 5 * 60_000
/** How long they count while they cannot be read again, in milliseconds. */
const USABLE = 60 * 60_000
/** The shortest time between any two readings for one client, in milliseconds. */
const PAUSE = 10_000
/** The largest key set, in bytes. */
const LARGEST = 128 * 1024
/** How many clients' keys are kept, in each process. */
const MOST_CLIENTS = 1_000
/** How many keys of one set are kept, and with how many of them one signature is tried. */
const MOST_KEYS = 100
const MOST_TRIED = 10
/** How many calls may wait for readings, and how many for that of one client: a slow address must leave places for others. */
const MOST_WAITING = 1_000
const MOST_WAITING_FOR_CLIENT = 100

/** A client, as far as its keys are concerned. */
export type KeyHolder = Pick<Client, 'id'> & Pick<SecuredClient, 'jwks' | 'jwksUri'>

/** The public keys of clients: of their own records, or where those say (C6.1.2). */
export interface ClientKeys {
  /**
   * Whether a key of the client has signed a compact JWS. The header is taken as it is: the caller has checked that
   * the algorithm is one for clients. Takes as long where there is no such client or key.
   *
   * Rejects with Fault `identity_unavailable` if the keys cannot be read, or too many signatures wait.
   */
  haveSigned(jws: string, client: KeyHolder | undefined, header: JwsHeader, caller?: Caller): Promise<boolean>
}

/** The keys and readings of one address. */
interface KnownKeys {
  keys: readonly Jwk[]
  /** Clock.monotonic() at the start of the last reading that succeeded, and of the last one. */
  readAt: number
  triedAt: number
  reading: Promise<void> | undefined
  /** Calls that wait for it. */
  waiting: number
  isFailing: boolean
  /** The remarks of the last reading about keys. They are logged once. */
  remarks: string
}

interface ClientKeysParts {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly recorder: Pick<Recorder, 'count' | 'note'>
}

/** A client whose keys are at an address. */
type Remote = KeyHolder & { readonly jwksUri: string }

/** The keys that were read. They outlive a configuration, because an address may be out of reach when another one loads. */
export interface ClientKeySets {
  /** @param send the guarded client: the address is one of the client's own choice */
  readBy(send: OutboundClient): ClientKeys
}

export function openClientKeySets(parts: ClientKeysParts): ClientKeySets {
  const known = new Map<string, KnownKeys>()
  let waiting = 0

  const knownOf = ({ id, jwksUri }: Remote): KnownKeys => {
    const name = JSON.stringify([id, jwksUri])
    const found = known.get(name)
    if (found !== undefined) return found
    // The one that was added first goes: it is read again when it is needed.
    const [first] = known.keys()
    if (first !== undefined && known.size >= MOST_CLIENTS) known.delete(first)
    const never = Number.NEGATIVE_INFINITY
    const made = {
      keys: [],
      readAt: never,
      triedAt: never,
      reading: undefined,
      waiting: 0,
      isFailing: false,
      remarks: '',
    }
    known.set(name, made)
    return made
  }

  const isWithin = (ms: number, since: number): boolean => parts.clock.monotonic() - since < ms

  /** Waits for the reading under way, or for one that begins now, if that is not too soon. Never rejects. */
  const refresh = async (client: Remote, state: KnownKeys, send: OutboundClient): Promise<void> => {
    if (state.reading === undefined && isWithin(PAUSE, state.triedAt)) return
    if (waiting >= MOST_WAITING || state.waiting >= MOST_WAITING_FOR_CLIENT)
      throw unavailable('too many calls wait for keys of clients')
    waiting += 1
    state.waiting += 1
    state.reading ??= readInto(state, client, send, parts).finally(() => {
      state.reading = undefined
    })
    await state.reading.finally(() => {
      waiting -= 1
      state.waiting -= 1
    })
  }

  const currentKeys = async (client: Remote, state: KnownKeys, send: OutboundClient) => {
    if (!isWithin(FRESH, state.readAt)) await refresh(client, state, send)
    if (isWithin(USABLE, state.readAt)) return state.keys
    throw unavailable('the keys of the client cannot be read')
  }

  const haveRemoteSigned = async (
    client: Remote,
    send: OutboundClient,
    isOneOf: IsOneOf,
    kid: string | undefined,
  ): Promise<boolean> => {
    const state = knownOf(client)
    const keys = await currentKeys(client, state, send)
    if (await isOneOf(keys)) return true
    if (kid !== undefined && keys.some((jwk) => jwk['kid'] === kid)) return false
    await refresh(client, state, send)
    return state.keys !== keys && isOneOf(state.keys)
  }

  return {
    readBy: (send) => ({
      haveSigned: (jws, client, header, caller) => {
        const isOneOf: IsOneOf = (keys) => isSignedByOne(jws, keys, header, caller)
        return isRemote(client)
          ? haveRemoteSigned(client, send, isOneOf, header.kid)
          : isOneOf(client?.jwks ?? [])
      },
    }),
  }
}

type IsOneOf = (keys: readonly Jwk[]) => Promise<boolean>

const isRemote = (client: KeyHolder | undefined): client is Remote =>
  client?.jwks === undefined && client?.jwksUri !== undefined

const unavailable = (detail: string, cause?: unknown): Fault =>
  new Fault('identity_unavailable', { detail, ...(cause !== undefined && { cause }) })

/** Never rejects: what was read before stays. */
async function readInto(
  state: KnownKeys,
  { id: client, jwksUri }: Remote,
  send: OutboundClient,
  { clock, recorder }: ClientKeysParts,
): Promise<void> {
  const begunAt = clock.monotonic()
  state.triedAt = begunAt
  try {
    const { keys, remarks } = admitKeys(await readKeys(jwksUri, send), 'client')
    Object.assign(state, { keys: keys.slice(0, MOST_KEYS), readAt: begunAt })
    const told = JSON.stringify(remarks)
    if (told !== state.remarks)
      for (const { level, event, kid, reason } of remarks)
        recorder.note(level, event, { client, kid, reason })
    state.remarks = told
    recorder.count?.('clientKeyFetches', 'ok')
    if (state.isFailing) recorder.note('info', 'client_keys_reachable_again', { client })
    state.isFailing = false
  } catch (cause) {
    recorder.count?.('clientKeyFetches', cause instanceof OutboundRefused ? 'refused' : 'failed')
    if (!state.isFailing) recorder.note('warn', 'client_keys_unreachable', { client, cause })
    state.isFailing = true
  }
}

async function readKeys(url: string, send: OutboundClient): Promise<readonly Jwk[]> {
  const { status, body } = await send({ url, headers: { accept: JWKS_TYPES }, largest: LARGEST })
  if (status !== 200 || body === undefined) throw new UnexpectedStatus('the key set', status)
  return parseJwks(withoutMark(body))
}

async function isSignedByOne(
  jws: string,
  keys: readonly Jwk[],
  { alg, kid }: JwsHeader,
  caller: Caller | undefined,
): Promise<boolean> {
  const fitting = keys.filter((jwk) => fitsAlgorithm(jwk, alg) && mayBe(jwk, kid)).slice(0, MOST_TRIED)
  const opened = await Promise.all(fitting.map((jwk) => open(jwk, alg)))
  const usable = opened.filter((key) => key !== undefined)
  for (const key of usable) if (await isGenuine(jws, key, alg, caller)) return true
  if (usable.length === 0) await isGenuine(jws, await decoyOf(alg), alg, caller)
  return false
}

/** A key without an id may be any. */
const mayBe = (jwk: Jwk, kid: string | undefined): boolean =>
  kid === undefined || jwk['kid'] === undefined || jwk['kid'] === kid

const isGenuine = (jws: string, key: PublicKey, alg: string, caller: Caller | undefined): Promise<boolean> =>
  isSignedBy(jws, key, alg, caller).catch((cause: unknown) => {
    throw cause instanceof Fault && cause.code === 'client_gone'
      ? cause
      : unavailable('the signature cannot be checked at the moment', cause)
  })

/** By key, then by algorithm. */
const openedKeys = new WeakMap<Jwk, Map<string, Promise<PublicKey | undefined>>>()

/** Undefined if the key cannot be used: malformed, or too weak. */
function open(jwk: Jwk, alg: string): Promise<PublicKey | undefined> {
  const byAlgorithm = openedKeys.get(jwk) ?? new Map<string, Promise<PublicKey | undefined>>()
  openedKeys.set(jwk, byAlgorithm)
  const key = byAlgorithm.get(alg) ?? importPublicKey(jwk, alg).catch(() => undefined)
  byAlgorithm.set(alg, key)
  return key
}

const decoys = new Map<string, Promise<PublicKey>>()

const generate = promisify(generateKeyPair) as (
  type: string,
  options: object,
) => Promise<{ readonly publicKey: KeyObject }>

/** A key that nobody has: its check takes as long as that of a client that exists (T3.9). Made when it is needed first. */
function decoyOf(alg: string): Promise<PublicKey> {
  const decoy = decoys.get(alg) ?? generateDecoy(alg)
  decoys.set(alg, decoy)
  return decoy
}

async function generateDecoy(alg: string): Promise<PublicKey> {
  const { kty, crv } = ALGORITHMS.get(alg) ?? {}
  const type = { EC: 'ec', OKP: 'ed25519', RSA: 'rsa' }[kty ?? ''] ?? 'ec'
  const { publicKey } = await generate(type, { namedCurve: crv, modulusLength: 2048 })
  return importPublicKey({ ...publicKey.export({ format: 'jwk' }) }, alg)
}
