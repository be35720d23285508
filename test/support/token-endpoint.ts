import type { OAuth2Config } from '../../src/gateway/backends/forward/schema/schema.ts'
import { answerJson, type UpstreamBehaviour } from './start-upstream.ts'

/** A token endpoint's answer; `others` beside or in place of its members. */
export const grant = (token: string, others: Readonly<Record<string, unknown>> = {}): UpstreamBehaviour =>
  answerJson({ access_token: token, token_type: 'Bearer', expires_in: 3600, ...others })

/** A token of its own with each answer: `token-1`, `token-2`, … */
export function grantEach(others: Readonly<Record<string, unknown>> = {}): UpstreamBehaviour {
  let count = 0
  return (connection) => grant(`token-${(count += 1)}`, others)(connection)
}

/** The key `auth` with an endpoint at this address, as it is after loading. */
export const oauth2 = (tokenUrl: string, others: Partial<OAuth2Config> = {}) => ({
  oauth2: {
    tokenUrl,
    clientId: 'postern',
    clientSecret: 'not-told-to-anybody',
    clientAuthentication: 'basic' as const,
    tls: {},
    ...others,
  },
})
