/** A client that is told when a login ends, and a person who logs in through it. */
import { VERIFIER } from './audited-people.ts'
import { authorizeUrl, CALLBACK } from './audited-people.ts'
import { postForm } from './oauth.ts'
import { Person } from './person.ts'

/** For a configuration that extends the demo. */
export const toldAt = (url: string): string =>
  `directory: { clients: { ledgerline: { backchannelLogoutUri: '${url}' } } }`

/** Alice logs in by a browser of hers, and ledgerline gets its tokens. */
export async function logInThroughLedgerline(service: { readonly authUrl: string }) {
  const person = new Person(service.authUrl)
  const page = await person.logIn(await person.open(authorizeUrl()))
  const { location } = await person.submit(page, { decision: 'allow' })
  const params = {
    grant_type: 'authorization_code',
    code: location?.searchParams.get('code') ?? '',
    redirect_uri: CALLBACK,
    code_verifier: VERIFIER,
  }
  const { json } = await postForm(service, '/connect/token', { params, client: 'ledgerline' })
  const idToken = String(json.id_token)
  const logOut = () => person.open(`/connect/endsession?id_token_hint=${idToken}`)
  return { person, idToken, logOut }
}
