/**
 * Protection of clients beyond secrets: further methods of authentication, tokens that are bound to a key, authorization requests
 * that the browser only refers to, rules of a security profile. An extension adds it, as a whole. Without it no client has any of
 * that, and one whose record demands it may hold nothing (`unmetDemands`).
 */
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import type { Client } from '../../base/contracts/people/people.ts'
import type { NewRecord } from '../../base/contracts/records/store.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { AddedUses } from '../directory/records/people.ts'

type Params = ReadonlyMap<string, string>

export type AnswerHeaders = Readonly<Record<string, string>>

/** A method of authentication without a secret. */
export interface AddedMethod {
  /** Its name (RFC 7591 §2). */
  readonly name: string
  /** Signature algorithms, as discovery announces them. */
  readonly algorithms: readonly string[]
  isUsed(params: Params): boolean
  /** Whom a request names, before anything of it is believed: for the log. */
  namedIn(params: Params): string | undefined
  /** Rejects with Fault `invalid_client`, or another one of the same OAuth error; `identity_unavailable`. */
  authenticate(call: { readonly exchange: Exchange; readonly params: Params }): Promise<AddedCredentials>
}

interface AddedCredentials {
  readonly client: Client
  /**
   * Uses the credentials up, which count once. Called when nothing else can fail by no fault of the client.
   * @returns false if they were used before
   */
  readonly useUp: () => Promise<boolean>
}

/** The key whose possession a client has proven (RFC 7800). */
export interface ProvenKey {
  /** Its thumbprint (RFC 7638, SHA-256): what `cnf.jkt` of a bound token says. */
  readonly jkt: string
}

/** A call whose client has authenticated. */
interface ClientCall {
  readonly exchange: Exchange
  readonly client: Client
  readonly attempt: { headers?: AnswerHeaders }
}

/** An authorization request whose parameters the browser does not bring: it refers to them by `request_uri` (RFC 9101 §5.2). */
export interface ReferencedRequest {
  readonly client: string
  readonly uri: string
  readonly params: Readonly<Record<string, string>>
  /** Whether somebody has logged in for it, in this browser. */
  readonly loggedIn: boolean
  /** From now on the browser of this cookie has its time, however old the request is. */
  open(cookie: string): Promise<void>
  /** The decision, once over all browsers. Stores `creates` with it. @throws Fault `invalid_request_uri` if there was one */
  useUp(creates: readonly NewRecord[]): Promise<void>
}

/** Promises reject with Fault `identity_unavailable` if the store cannot be reached. */
export interface ClientSecurity {
  readonly methods: readonly AddedMethod[]
  /** Features that discovery announces only if some client uses them. */
  readonly uses: AddedUses
  /** Members about proofs, for the metadata of the service and of the API. @param had what clients use */
  proofMetadata(had: ReadonlySet<string>): object
  /** Further members of the service's metadata. */
  metadata(had: ReadonlySet<string>): object
  /** The `token_type` of a token that is bound to a key. */
  readonly boundType: string
  /**
   * Checks the proof of possession that comes with a request, if there is one, and uses it up. Right after the client's check, so
   * that a refused proof uses nothing else up.
   * @param place where, as the metrics name it: at `token` some clients have to send one
   */
  proveKey(place: string, call: ClientCall): Promise<ProvenKey | undefined>
  /** The fault of a request without a proof for what only comes with one. */
  proofMissing(): Fault
  /** The thumbprint of the key that an authorization request binds its code to. @throws Fault `oauth_bad_request` */
  keyOf(params: Params): string | undefined
  /** @throws Fault if the client may not send a request in this way */
  checkRequest(client: Client, reference: ReferencedRequest | undefined): void
  /**
   * @param uris each `request_uri` of the request; undefined if none of them is one of ours
   * @throws Fault `invalid_request_uri` for one that is unknown, used up, of another client, or that this browser cannot open
   */
  findRequest(
    uris: readonly string[],
    client: string,
    cookie: string | undefined,
  ): Promise<ReferencedRequest | undefined>
  /** After a login: what the browser has opened belongs to its new cookie. */
  carryOver(cookie: string, next: string): Promise<void>
}

const nothing = (): Promise<undefined> => Promise.resolve(undefined)

/** Secrets alone protect clients. */
export const NO_SECURITY: ClientSecurity = {
  methods: [],
  uses: { all: [], of: () => [] },
  proofMetadata: () => ({}),
  metadata: () => ({}),
  boundType: 'N_A',
  proveKey: nothing,
  proofMissing: () => new Fault('invalid_grant', { detail: 'bound to a key, which no proof is taken of' }),
  keyOf: () => undefined,
  checkRequest: () => undefined,
  findRequest: nothing,
  carryOver: nothing,
}
