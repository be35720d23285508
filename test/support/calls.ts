import type { Call } from '../../src/base/contracts/calls/backend.ts'
import { NO_VALUES } from '../../src/base/contracts/people/places.ts'
import type { Principal } from '../../src/base/contracts/people/principal.ts'
import { compileAuthorities, parseRequestTarget } from '../../src/base/http/head/request-target.ts'
import { Standing } from '../../src/identity/keys/verify/token-verifier.ts'
import { directCarrier } from './direct-carrier.ts'
import { code, scopeOf } from './scope.ts'

const AUTHORITIES = compileAuthorities(['http://api.example'])

export type CallOverrides = Partial<Omit<Call, 'target'>> & { readonly target?: string }

/** Who calls, unless told otherwise. */
export const PRINCIPAL: Principal = {
  subject: 'subject-1',
  client: 'client-1',
  clientKey: 'client-1',
  issuer: 'http://api.example',
  ...scopeOf('fund.read target:b/ACME'),
  target: { level: 'business', business: code('ACME') },
  tokenId: 'token-1',
  family: undefined,
  issuedAt: 0,
  expiresAt: 900,
  key: new Standing(),
}

/** An authorised call as the gateway makes it; GET of ACME's fund-list unless told otherwise. */
export function makeCall({
  target = '/api/1.0/b/ACME/fund-data/fund-list',
  ...rest
}: CallOverrides = {}): Call {
  return {
    id: '0123456789abcdef0123456789abcdef',
    action: {
      area: 'fund-data',
      action: 'fund-list',
      level: 'business',
      versioned: false,
      safe: true,
      produces: undefined,
    },
    version: 1,
    method: 'GET',
    target: parseRequestTarget(target, AUTHORITIES),
    params: {},
    query: {},
    found: {},
    values: NO_VALUES,
    business: 'ACME',
    fund: undefined,
    principal: PRINCIPAL,
    place: {
      business: code(rest.business ?? 'ACME'),
      fund: rest.fund === undefined ? undefined : code(rest.fund),
    },
    issuer: 'http://api.example',
    headers: {},
    authorization: undefined,
    body: { kind: 'none' },
    accept: undefined,
    clientAddress: '192.0.2.7',
    scheme: 'https',
    cookieDropped: () => undefined,
    host: 'api.example',
    baseUrl: 'https://api.example',
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    carrier: directCarrier,
    hold: () => true,
    onCancel: () => undefined,
    ...rest,
  }
}
