/**
 * A worked example of a module over a forwarder: every request is signed by HMAC-SHA-256, over exactly what the service
 * receives. sign-requests.yaml serves it.
 */
import { createHash, createHmac } from 'node:crypto'
import type { ModuleFactory, OutgoingRequest } from 'postern/backend'

interface Options {
  readonly keyId: string
  /** The environment variable that holds the key. Options are no place for secrets: the log may show them. */
  readonly keyVariable: string
}

const createModule: ModuleFactory<Options> = ({ keyId, keyVariable }) => {
  const key = process.env[keyVariable]
  if (key === undefined || key === '')
    throw new Error(`${keyVariable} is not set: it holds the key of the signatures`)
  return {
    request: ({ upstream }) => {
      const date = new Date().toUTCString()
      const signature = createHmac('sha256', key).update(signedText(upstream, date)).digest('base64')
      return {
        headers: {
          'X-Date': date,
          Authorization: `HMAC-SHA256 KeyId="${keyId}", Signature="${signature}"`,
        },
      }
    },
  }
}

/** What is signed: method, target, date and a digest of the body, each in a line. `upstream` is what will be sent. */
const signedText = ({ method, target, body = new Uint8Array() }: OutgoingRequest, date: string): string =>
  [method, target, date, createHash('sha256').update(body).digest('hex')].join('\n')

export default createModule
