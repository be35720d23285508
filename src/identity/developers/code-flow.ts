import { html, type Html } from '../pages/layout.ts'
import { curlCommand } from './curl.ts'
import { codeBlock, paragraph, part, prose } from './elements.ts'
import { addressOf, type DeveloperParts } from './parts.ts'
import { START_TEXTS as T, timeText } from './texts/start.ts'

const STEPS = T.codeSteps

/** RFC 7636 §4.1, §4.2: 64 characters, and the hash of them. */
const PROOF = `VERIFIER=$(openssl rand -base64 48 | tr '+/' '-_' | tr -d '\\n')
CHALLENGE=$(printf %s "$VERIFIER" | openssl dgst -sha256 -binary | openssl base64 | tr '+/' '-_' | tr -d '=\\n')
STATE=$(openssl rand -hex 16)`

const REDIRECT_URI = 'https://your-app.example/callback'

/** One line a parameter; to be joined before it is used. */
const authorizeUrl = (endpoint: string, scope: string): string =>
  [
    `${endpoint}?response_type=code`,
    'client_id=CLIENT_ID',
    `redirect_uri=${encodeURIComponent(REDIRECT_URI)}`,
    `scope=${encodeURIComponent(scope)}`,
    'state=STATE',
    'code_challenge=CHALLENGE',
    'code_challenge_method=S256',
  ].join('\n  &')

const returnUrl = (issuer: string): string =>
  [`${REDIRECT_URI}?code=CODE`, 'state=STATE', `iss=${encodeURIComponent(issuer)}`].join('\n  &')

const step = (title: string, text: string, ...more: readonly Html[]): Html =>
  html`<li>
    <h3>${title}</h3>
    ${paragraph(text)} ${more}
  </li>`

/** The code flow with the addresses of this deployment (C6.2). */
export function codeFlow(parts: DeveloperParts): Html {
  const [scope = ''] = parts.api.scopes.map(({ name }) => name)
  const asked = ['openid', 'offline_access', scope, 'target:b'].filter(Boolean).join(' ')
  const issuer = addressOf(parts, 'issuer')
  const redeem = curlCommand({
    url: addressOf(parts, 'token_endpoint'),
    user: 'CLIENT_ID:CLIENT_SECRET',
    form: [
      ['grant_type', 'authorization_code'],
      ['code', 'CODE'],
      ['redirect_uri', REDIRECT_URI],
      ['code_verifier', 'VERIFIER'],
    ],
  })
  const sent = authorizeUrl(addressOf(parts, 'authorization_endpoint'), asked)
  return part(
    'code-flow',
    T.code,
    paragraph(T.codeText),
    html`<ol class="steps">
      ${step(STEPS.proof, STEPS.proofText, codeBlock('Shell', STEPS.proof, PROOF))}
      ${step(STEPS.send, STEPS.sendText, codeBlock('URL', STEPS.send, sent))}
      ${step(STEPS.back, STEPS.backText(issuer), codeBlock('URL', STEPS.back, returnUrl(issuer)))}
      ${step(
        STEPS.redeem,
        STEPS.redeemText(timeText(parts.identity.code.lifetime)),
        codeBlock('Shell', STEPS.redeem, redeem),
      )}
      <li>
        <h3>${STEPS.call}</h3>
        <p>${prose(STEPS.callText)}</p>
      </li>
    </ol>`,
  )
}
