import type { Resource } from '../contracts/principal.ts'
import { Fault } from '../kernel/faults.ts'
import { userClaims } from './claims.ts'
import type { StepDependencies } from './endpoint.ts'

/**
 * The claims of C5.6 for the user of an access token (C6.3.1). The gateway has judged the token and its `openid`.
 * @throws Fault invalid_token if the user is gone or may hold no token any more, or the token is not ours;
 *   token_judge_unavailable where the directory can't be reached (C4.15)
 */
export function userinfo({
  people,
  places,
  urls,
}: Pick<StepDependencies, 'people' | 'places' | 'urls'>): Resource {
  return {
    describe: async ({ subject, issuer, scopes, target }) => {
      if (issuer !== urls.issuer) throw new Fault('invalid_token', { detail: 'of another issuer' })
      const user = await people.findUserBySubject(subject).catch((cause: unknown) => {
        throw new Fault('token_judge_unavailable', { cause })
      })
      if (user === undefined)
        throw new Fault('invalid_token', { detail: 'its user is gone or may hold none' })
      return userClaims(user, scopes, target && places.findBusiness(target.business))
    },
  }
}
