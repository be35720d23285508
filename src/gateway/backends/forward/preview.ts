/** The request that would be sent for a call that nobody makes (C14.1), and rules with `***` in place of what nobody may see. */
import { Buffer } from 'node:buffer'
import { buffer } from 'node:stream/consumers'
import type { Call, SentRequest } from '../../../base/contracts/calls/backend.ts'
import { type BodyRecipe, type Leaf, MASK } from '../../../base/contracts/calls/templates.ts'
import { headerLine } from '../../../base/http/head/header-text.ts'
import { requestHead, type UpstreamRequest } from '../../upstream/request.ts'
import type { UpstreamAddress } from '../../upstream/socket.ts'
import { withLeaves } from '../templates/body-tree.ts'
import { MASKED, masked } from '../templates/parse.ts'
import { compileFreeText, maskedPath } from '../templates/places.ts'
import type { Credentials } from './auth/credentials.ts'
import { bodyMaking } from './compile-body.ts'
import { identifyByHeaders, identifyNobody } from './request.ts'
import type { HttpBackendRules } from './rules.ts'
import type { CallTargets, VaryingRules } from './target/varying-targets.ts'

type Secrets = ReadonlySet<string>

/** Credentials and signed tokens are never shown: they are neither made nor fetched. */
export function maskedRules(rules: HttpBackendRules, secrets: Secrets): HttpBackendRules {
  const { path, query, headers, credentials, identify, bodyUse } = rules
  const isShown = identify === identifyByHeaders || identify === identifyNobody
  return {
    ...rules,
    path: path && maskedPath(path, secrets),
    query: new Map([...query].map(([name, template]) => [name, masked(template, secrets)])),
    headers: new Map(
      [...headers].map(([name, header]) => [name, { ...header, template: masked(header.template, secrets) }]),
    ),
    credentials: credentials && maskedCredentials(credentials),
    identify: isShown ? identify : () => headerLine('x-postern-token', MASK),
    bodyUse: bodyUse?.recipe === undefined ? bodyUse : maskedBody(bodyUse.recipe, bodyUse.pointers, secrets),
  }
}

/** The rules of a backend whose calls differ in where they go. Target and host are shown unless a secret says them. */
export function maskedTargets(
  { target, host: template }: VaryingRules,
  { addresses, host }: Pick<CallTargets, 'addresses' | 'host'>,
  call: Call,
): Pick<HttpBackendRules, 'targets' | 'host' | 'varying'> {
  const { secrets } = call.values
  const isSecret = target?.to.kind === 'value' && secrets.has(target.to.name)
  const shown = template && compileFreeText(masked(template, secrets))
  return {
    targets: isSecret ? [UNKNOWN_ADDRESS] : addresses,
    host: shown === undefined ? host : typeof shown === 'string' ? shown : shown(call),
    varying: undefined,
  }
}

const UNKNOWN_ADDRESS: UpstreamAddress = {
  name: MASK,
  origin: MASK,
  basePath: '',
  socketPath: undefined,
  host: MASK,
}

/** The mask does not even show the length of the value that it replaces. */
function maskedCredentials({ name, templates }: Credentials): Credentials {
  const line = headerLine(name, MASK)
  return { name, templates, renewable: false, line: () => line, refused: () => false }
}

function maskedBody(
  recipe: BodyRecipe,
  pointers: readonly string[],
  secrets: Secrets,
): HttpBackendRules['bodyUse'] {
  const { template, set } = recipe
  const shownLeaf = (leaf: Leaf): Leaf => maskedLeaf(leaf, secrets)
  const shown: BodyRecipe = {
    ...recipe,
    template: template && withLeaves(template, shownLeaf),
    set: set.map(({ pointer, leaf }) => ({ pointer, leaf: shownLeaf(leaf) })),
    // The call was checked with the real values before.
    require: [],
  }
  const made = bodyMaking(shown, [])
  return made && { ...made, pointers }
}

function maskedLeaf(leaf: Leaf, secrets: Secrets): Leaf {
  if (leaf.kind === 'constant') return leaf.isSecret === true ? { kind: 'constant', value: MASK } : leaf
  const template = masked(leaf.template, secrets)
  return template.length === 1 && template[0] === MASKED
    ? { kind: 'constant', value: MASK }
    : { kind: 'template', template }
}

/** Fills the templates of credentials as a call would, and drops the result. @throws Fault as `Credentials.line` */
export function tryCredentials(credentials: Credentials | undefined, call: Call): void {
  if (credentials === undefined) return
  if (!credentials.renewable) void credentials.line(call)
  // `line` of renewable credentials would fetch a token: only their templates are filled.
  for (const { template } of credentials.templates) {
    const text = compileFreeText(template)
    if (typeof text !== 'string') text(call)
  }
}

/** @throws Fault `internal` for a head that must not be sent */
export async function sentRequest(
  request: UpstreamRequest,
  targets: readonly UpstreamAddress[],
): Promise<SentRequest> {
  const [first, ...others] = targets
  if (first === undefined) throw new TypeError('a backend without a target')
  const { body = Buffer.alloc(0), method, path } = request
  const lines = requestHead(request, first.host, method !== 'HEAD').split('\r\n')
  return {
    method,
    url: urlAt(first, path),
    others: others.map((address) => urlAt(address, path)),
    headers: lines.slice(1).filter((line) => line !== ''),
    body: Buffer.isBuffer(body) ? body : await buffer(body),
  }
}

/** A socket is written as in nginx: `http://unix:/run/a.sock:/path`. */
const urlAt = ({ origin, socketPath, basePath }: UpstreamAddress, path: string): string =>
  `${socketPath === undefined ? origin : `http://unix:${socketPath}:`}${basePath}${path}`
